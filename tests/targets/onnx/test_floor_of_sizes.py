"""Quotients of sizes that may be negative, or whose parts have negative terms, in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional as F

import tmconvert


def shorter_side(x: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    size = round(rows * (6 / min(rows, columns))), columns
    return F.interpolate(x[None, None], size=size, mode="bilinear")[0, 0]


MODELS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "shorter side": shorter_side,
    "negative": lambda x: x * ((3 - x.shape[0]) // 2),
    "negative divisor": lambda x: x * (7 // (2 - 3 * x.shape[0])),
}


@pytest.mark.parametrize("name", MODELS)
def test_quotients_are_rounded_down(name: str, tmp_path: Path):
    model, path = MODELS[name], tmp_path / "o.onnx"
    example = (torch.rand(3, 4),)
    tmconvert.to_onnx(model, path, example_inputs=example, dynamic_shapes={"x": {0: "n"}})
    session = onnxruntime.InferenceSession(path)
    for rows in (1, 2, 3, 4, 5, 8, 23):
        x = torch.rand(rows, 4)
        (found,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(found, model(x).numpy(), atol=1e-5, strict=True)
