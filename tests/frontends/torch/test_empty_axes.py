"""Ops along an axis without elements, and next to one, as PyTorch computes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tmconvert

X = torch.randn(2, 0, 3)
NONE = torch.zeros(0, dtype=torch.long)
CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "logsumexp": lambda x: x.logsumexp(1),
    "logsumexp_of_all": lambda x: x.logsumexp((0, 1, 2)),
    "logsumexp_beside": lambda x: x.logsumexp(2),
    "sum": lambda x: x.sum(1),
    "prod": lambda x: x.prod(1),
    "mean": lambda x: x.mean(1),
    "norm": lambda x: x.norm(dim=1),
    "amax_beside": lambda x: x.amax(2),
    "argmax_beside": lambda x: x.argmax(2),
    "any": lambda x: (x > 0).any(1),
    "softmax": lambda x: x.softmax(1),
    "softmax_beside": lambda x: x.softmax(2),
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool1d(x, 2),
    "matmul_along": lambda x: x.mT @ x,
    "matmul_beside": lambda x: x @ x.mT,
    "cat": lambda x: torch.cat([x, torch.ones(2, 4, 3)], 1),
    "sort": lambda x: x.sort(1)[0],
    "sort_beside": lambda x: x.sort(2)[0],
    "topk": lambda x: x.topk(0, 1)[0],
    "cumsum": lambda x: x.cumsum(1),
    "median_beside": lambda x: x.median(2)[0],
    "index_add": lambda x: torch.zeros(2, 4, 3).index_add(1, NONE, x),
    "cdist": lambda x: torch.cdist(x.mT, x.mT),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "cross_entropy": lambda x: F.cross_entropy(x.reshape(0, 3), NONE),
}


@pytest.mark.parametrize("name", CALLS)
def test_axes_without_elements(name: str, tmp_path: Path) -> None:
    traced = tmconvert.trace(CALLS[name], X)
    np.testing.assert_array_equal(np.asarray(traced(X.numpy())), CALLS[name](X).numpy())
    tmconvert.to_onnx(traced, tmp_path / "net.onnx")
    tmconvert.to_tflite(traced, tmp_path / "net.tflite")


def test_a_reshape_to_an_open_size_that_is_empty(tmp_path: Path) -> None:
    """A computed 0 is a size: it does not copy that of the same axis, as a 0 in a constant does."""
    import onnxruntime

    def joined(x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x.reshape(-1, 8), 0).reshape(x.shape[0], x.shape[1], 8)

    sizes = {"x": {0: "batch", 1: "past"}}
    tmconvert.to_onnx(
        joined, tmp_path / "net.onnx", example_inputs=[torch.randn(2, 5, 8)], dynamic_shapes=sizes
    )
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    for shape in ((1, 0, 8), (0, 3, 8), (2, 3, 8)):
        (made,) = session.run(None, {"x": np.ones(shape, np.float32)})
        assert made.shape == shape
