"""Tensors that a module makes of sizes: lengths and masks whose elements it reads, or branches on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor

import tmconvert

from .harness import run_onnx


def mask_of_ones(x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[0], x.shape[1], dtype=torch.bool)
    return x * 2 if mask.all() else x * mask[..., None]


def mask_of_zeros(x: Tensor) -> Tensor:
    mask = x.new_zeros(x.shape[:2])
    if mask.any():
        x = x.masked_fill(mask[..., None] > 0, -1.0)
    return x + 1


def negated(x: Tensor) -> Tensor:
    kept = torch.ones_like(x[..., 0]).bool()
    if not kept.any() or bool((~kept).all()):
        return x
    return x.masked_fill(~kept[..., None], 0) + 1


def longest(x: Tensor) -> Tensor:
    """As speech libraries make the mask of sequences that have one length."""
    lengths = torch.full((x.size(0),), x.size(1), dtype=torch.long)
    most = int(lengths.max())
    mask = torch.arange(0, most)[None].expand(len(lengths), most) >= lengths[:, None]
    return x.masked_fill(mask[..., None], 0.0) * 2


def item(x: Tensor) -> Tensor:
    lengths = x.new_full((x.size(0),), x.size(1)).long()
    return x + torch.arange(lengths.max().item()).float()[None, :, None]


def shorter(x: Tensor) -> Tensor:
    lengths = torch.full((x.size(0),), x.size(1))
    lengths = lengths // 2
    x, most = x[:, 1::2], int(lengths.max())
    return x[:, :most] * (torch.arange(most)[None] < lengths[:, None])[..., None]


def relative(x: Tensor) -> Tensor:
    """Lengths from 0 to 1, as in libraries for speech."""
    lengths = (torch.ones(x.size(0)) * x.size(1)).round().long()
    return (x * (torch.arange(x.size(1))[None] < lengths[:, None])[..., None])[:, : int(lengths.max())]


def compared(x: Tensor) -> Tensor:
    most = torch.full((x.shape[0],), x.shape[1]).max()
    return x * 0 if most > x.shape[1] else x[:, : int(most)]


def constants(x: Tensor) -> Tensor:
    scale = (torch.zeros(x.size(0)) + 0.5) * 2
    return x * 2 if (scale > 0.3).all() else x


ONE_SIDE = [
    mask_of_ones, mask_of_zeros, negated, longest, item, shorter, relative, compared, constants
]  # fmt: skip


def causal(x: Tensor) -> Tensor:
    mask = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
    scores = x @ x.transpose(1, 2)
    if (~mask).any():
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1) @ x


def positions(x: Tensor) -> Tensor:
    numbers = torch.arange(x.shape[1])
    if numbers.max() >= 16:
        numbers = numbers.clamp(max=15)
    return x + numbers[None, :, None]


def written(x: Tensor) -> Tensor:
    mask = torch.zeros(x.size(1))
    mask[7:] = 1
    return x * 2 if mask.any() else x


def rounded(x: Tensor) -> Tensor:
    scale = torch.full((x.size(0),), 0.1) * x.size(1)
    return x * 2 if scale.max() > 0.75 else x + 1


def close(x: Tensor) -> Tensor:
    """The step from 0 to 1 is below 0.06 from 18 numbers on, which no comparison of sizes says."""
    return x * 2 if torch.linspace(0, 1, x.shape[1])[1] < 0.06 else x * 3


def counted(x: Tensor) -> Tensor:
    return x * 2 if torch.ones(len(x[0])).sum() > 17 else x * 3


def cut(x: Tensor) -> Tensor:
    """No element of the mask is left at small sizes."""
    return x * 2 if torch.ones(x.shape[1])[7:].any() else x * 3


BOTH_SIDES = [causal, positions, written, rounded, close, counted, cut]


@pytest.mark.parametrize("function", ONE_SIDE + BOTH_SIDES, ids=lambda each: each.__name__)
def test_sizes_stay_open(function: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    path, sizes = tmp_path / "model.onnx", {"x": {0: "batch", 1: "time"}}
    tmconvert.to_onnx(function, path, example_inputs=(torch.randn(2, 9, 4),), dynamic_shapes=sizes)
    branches = {node.op_type for node in onnx.load(path).graph.node} & {"If", "Where"}
    assert function in BOTH_SIDES or not branches - {"Where"}
    for batch, time in ((1, 8), (3, 20), (3, 7), (2, 3), (1, 17), (1, 18), (1, 40)):
        x = torch.randn(batch, time, 4)
        (made,) = run_onnx(path, [x.numpy()])
        np.testing.assert_allclose(made, function(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [mask_of_ones, longest, positions], ids=lambda each: each.__name__)
def test_sizes_stay_open_in_tflite(function: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    path, sizes = tmp_path / "model.tflite", {"x": {0: "batch", 1: "time"}}
    tmconvert.to_tflite(function, path, example_inputs=(torch.randn(2, 9, 4),), dynamic_shapes=sizes)
    for batch, time in ((1, 8), (3, 20), (2, 3)):
        x = torch.randn(batch, time, 4)
        (made,) = tmconvert.run(path, [x.numpy()]).values()
        np.testing.assert_allclose(made, function(x), rtol=1e-5, atol=1e-5)
