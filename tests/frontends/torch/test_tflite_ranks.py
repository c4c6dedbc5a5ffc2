"""Tensors of more axes than TFLite's operators take, in LiteRT against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tmconvert

torch = pytest.importorskip("torch")
litert = pytest.importorskip("ai_edge_litert.interpreter")


def windows(x: torch.Tensor) -> torch.Tensor:
    """[2, 64, 3] -> eight windows in each of three axes, which are split twice."""
    parts = x.reshape(2, 2, 2, 2, 2, 2, 2, 3)
    return parts.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(2, 8, 8, 3)


def reversed_axes(x: torch.Tensor) -> torch.Tensor:
    parts = x.reshape(2, 2, 2, 2, 2, 2, 2, 3)
    return parts.permute(7, 6, 5, 4, 3, 2, 1, 0).reshape(3, 128)


def nine_axes(x: torch.Tensor) -> torch.Tensor:
    parts = x.reshape(2, 2, 2, 2, 2, 2, 2, 1, 3)
    return parts.permute(8, 1, 3, 7, 5, 0, 2, 4, 6).reshape(-1, 4) + 1


@pytest.mark.slow
@pytest.mark.parametrize("function", [windows, reversed_axes, nine_axes])
def test_many_axes(function: Callable[..., torch.Tensor], tmp_path: Path) -> None:
    x = torch.randn(2, 64, 3)
    report = tmconvert.to_tflite(tmconvert.trace(function, x), tmp_path / "m.tflite", io_layout="source")
    assert report.verified and report.max_error == 0


@pytest.mark.parametrize("axis", [0, 1])
def test_reshapes_of_operands_of_different_ranks(axis: int, tmp_path: Path) -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.reshape(20, 4), y.reshape(20, 4)], axis)

    traced = tmconvert.trace(forward, torch.randn(20, 4, 1), torch.randn(20, 4, 1, 1))
    assert tmconvert.to_tflite(traced, tmp_path / "m.tflite").verified
