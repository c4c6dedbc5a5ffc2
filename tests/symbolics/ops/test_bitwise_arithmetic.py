"""Bitwise ops by arithmetic, as below opset 18 of ONNX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tests.frontends.torch.harness import run_onnx

LIMITS = {torch.uint8: (0, 255), torch.int8: (-128, 127), torch.int32: (-(2**31), 2**31 - 1)}
LIMITS[torch.int64] = (-(2**63), 2**63 - 1)


def numbers(dtype: torch.dtype, seed: int) -> torch.Tensor:
    low, high = LIMITS[dtype]
    drawn = np.random.default_rng(seed).integers(low, high, 40, np.int64, endpoint=True)
    ends = [low, high, 0, 1, low + 1, high - 1, high // 2 + 1, low // 2]
    return torch.tensor([*ends, *drawn.tolist()], dtype=dtype)[torch.randperm(48)]


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_tensors(dtype: torch.dtype, tmp_path: Path) -> None:
    x, y = numbers(dtype, 0), numbers(dtype, 1)

    def combined(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x & y, x | y, x ^ y, ~x

    tmconvert.to_onnx(combined, tmp_path / "model.onnx", opset=17, example_inputs=[x, y], verify=False)
    for one, two in zip(
        run_onnx(tmp_path / "model.onnx", [x.numpy(), y.numpy()]), combined(x, y), strict=True
    ):
        np.testing.assert_array_equal(one, two.numpy())


MASKS = (0, 1, 6, 7, 0x55, 2**31, 2**62 - 1, 2**61, 2**63 - 1, -1, -8, -6, -(2**62), -(2**63), -(2**63) + 5)


@pytest.mark.parametrize("mask", MASKS)
def test_masks(mask: int, tmp_path: Path) -> None:
    x = numbers(torch.int64, 2)

    def masked(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x & mask, x | mask, x ^ mask

    tmconvert.to_onnx(masked, tmp_path / "model.onnx", opset=17, example_inputs=[x], verify=False)
    for one, two in zip(run_onnx(tmp_path / "model.onnx", [x.numpy()]), masked(x), strict=True):
        np.testing.assert_array_equal(one, two.numpy())
