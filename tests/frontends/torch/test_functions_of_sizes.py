"""Roots and logarithms of sizes, sizes that NumPy computes with, and tensors that hold a size."""

from __future__ import annotations

import math
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import agrees, assert_close, check, run_onnx


def computed_numbers(x: torch.Tensor) -> Any:
    count = x.shape[1]
    attended = F.scaled_dot_product_attention(x[None], x[None], x[None], scale=1 / sqrt(count))
    return (
        x * (np.float64(2.5) * count),
        x * (count * np.float32(0.5)) + np.int64(3) * count,
        x / np.sqrt(count) + math.log(count, 512),
        x * count**0.5 + (2 * count + 1) ** -0.5,
        x * torch.tensor(np.log2(count) + math.exp(1 / count)),
        attended + np.arange(2).dot(np.array([1.0, 2.0])) * count,
    )


def bounds(x: torch.Tensor) -> Any:
    length = torch.ceil(torch.as_tensor(160 * x.shape[1] / 441)).long()
    half = torch.ceil(torch.tensor(x.shape[1]) / 2).long().item()
    return (
        x[:, :length] * 2,
        x[..., half:] + 1,
        x[:, : int(torch.floor(torch.tensor(x.shape[1] / 3)))] * 3,
        x[:, : int(np.ceil(x.shape[1] / 4))] * 4,
    )


class Padded(torch.nn.Module):
    """Pads to whole strides, which are computed of buffers: the code of audio codecs."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel, self.stride = (torch.nn.Buffer(torch.tensor(number)) for number in (7, 4))

    def forward(self, x: torch.Tensor) -> Any:
        frames = torch.ceil((x.shape[-1] - self.kernel + 3) / self.stride + 1).to(torch.int64) - 1
        extra = frames * self.stride + self.kernel - 3 - x.shape[-1]
        halves = torch.div(torch.tensor(x.shape[-1]), 2, rounding_mode="floor")
        rest = torch.tensor(x.shape[-1]) % 3
        rows = torch.zeros(2, torch.tensor(x.shape[-1]) // 2 + 1)
        return F.pad(x, (3, extra)), F.pad(x, (rest, halves), value=2.0), rows + x.sum()


@pytest.mark.parametrize("model", [computed_numbers, bounds, Padded()])
def test_the_size_stays_open(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    report = tmconvert.to_onnx(
        model, path, example_inputs=[torch.randn(2, 6)], dynamic_shapes={"x": {1: "n"}}
    )
    assert not [note for note in report.notes if "specialized" in note]
    for size in (3, 9, 50):
        x = torch.randn(2, size)
        expected = [each.numpy() for each in model(x)]
        assert_close("ONNX Runtime", run_onnx(path, [x.numpy()]), expected, [], None)


def test_a_rounded_float32_has_no_error_within_the_range(tmp_path: Path) -> None:
    """Beyond 2^24 of the numerator torch itself may round to another size; the report states the range."""
    model = lambda x: x[:, : torch.ceil(torch.as_tensor(160 * x.shape[1] / 441)).long()]  # noqa: E731
    report = tmconvert.to_onnx(
        model, tmp_path / "a.onnx", example_inputs=[torch.randn(1, 6)], dynamic_shapes={"x": {1: "n"}}
    )
    assert [str(each) for each in report.ranges] == ["160*n < 16777216"]


def test_arrays_are_indices() -> None:
    model = lambda x: (x[:, np.array([1])], x[np.array([2, 0, 1])], x[:, np.arange(4) > 1])  # noqa: E731
    check(model, torch.randn(3, 4))


def test_functions_of_math_and_numpy_are_put_back() -> None:
    before = math.sqrt, np.sqrt, np.floor, sqrt
    tmconvert.trace(computed_numbers, torch.randn(2, 6))
    assert (math.sqrt, np.sqrt, np.floor, sqrt) == before
    assert np.sqrt.nin == 1


class DecidesByMask(torch.nn.Module):
    """Compares its mask with a causal one, as ``torch.nn.TransformerDecoder`` does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = x.shape[1]
        mask = torch.ones(count, count).triu(1)
        is_causal = bool((mask == torch.ones(count, count).triu(1)).all())
        return x.cumsum(1) if is_causal else x.sum(1, keepdim=True)


def test_what_is_decided_by_a_tensor_of_another_size(tmp_path: Path) -> None:
    traced = tmconvert.trace(DecidesByMask(), torch.randn(2, 5), dynamic_shapes={"x": {0: "batch"}})
    tmconvert.to_onnx(traced, tmp_path / "model.onnx", verify=False)
    agrees(DecidesByMask(), tmp_path, torch.randn(3, 5))
    with pytest.raises(UnsupportedError, match="decides by a number"):
        tmconvert.trace(DecidesByMask(), torch.randn(2, 5), dynamic_shapes={"x": {1: "count"}})


class FlipsLong(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last = x[:, : int(math.log2(x.shape[1])) + 1]
        return last.flip(1) if x.shape[1] >= 30 else last


def test_decisions_on_a_size_that_int_rounds(tmp_path: Path) -> None:
    traced = tmconvert.trace(FlipsLong(), torch.randn(2, 24), dynamic_shapes={"x": {1: "n"}})
    tmconvert.to_onnx(traced, tmp_path / "model.onnx", verify=False)
    for count in (9, 29, 30, 64):
        agrees(FlipsLong(), tmp_path, torch.randn(2, count))
