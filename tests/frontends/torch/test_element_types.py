"""Whole modules of other element types than float32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tmconvert
from tmconvert.errors import UnsupportedError, VerificationError
from tmconvert.ir.tree import leaves

from .harness import arrays, check

HALVES = 4e-3  # torch rounds sums to halves at other places than ONNX Runtime


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8)
        self.conv, self.group = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.GroupNorm(2, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(self.norm(self.stem(x)).relu(), 3, 2, 1)
        x = F.relu(self.group(self.conv(x)) + x)
        x = F.interpolate(x, scale_factor=2, mode="bilinear")
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)).softmax(-1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru = nn.LSTM(6, 5, 2, bidirectional=True), nn.GRU(10, 4)

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.lstm(x)
        return self.gru(y), state


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        return self.norm(x + F.scaled_dot_product_attention(x, x, x, is_causal=True))


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "residual": (Residual, (2, 3, 16, 16)),
    "recurrent": (Recurrent, (4, 2, 6)),
    "attending": (Attending, (2, 5, 8)),
}


def made(name: str, dtype: torch.dtype) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    module, shape = MODULES[name]
    return module().eval().to(dtype), torch.randn(shape).to(dtype)


@pytest.mark.parametrize("name", MODULES)
def test_halves(name: str) -> None:
    module, x = made(name, torch.float16)
    check(module, x, opsets=(17, 20), tolerance=HALVES)


@pytest.mark.parametrize("name", MODULES)
def test_doubles(name: str) -> None:
    module, x = made(name, torch.float64)
    with torch.no_grad():
        wanted = arrays(module(x))
    for one, two in zip(leaves(tmconvert.trace(module, x)(x.numpy())), wanted, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


def test_a_runtime_without_doubles(tmp_path: Path) -> None:
    module, x = made("residual", torch.float64)
    with pytest.raises(
        VerificationError, match=r"Could not find an implementation for[\s\S]*module\.float\(\)"
    ):
        tmconvert.to_onnx(module, tmp_path / "out.onnx", example_inputs=[x])
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("name", MODULES)
def test_bfloat16_is_refused_by_name(name: str, tmp_path: Path) -> None:
    module, x = made(name, torch.bfloat16)
    with pytest.raises(UnsupportedError, match=r"bfloat16[\s\S]*module\.float\(\)"):
        tmconvert.to_onnx(module, tmp_path / "out.onnx", example_inputs=[x])


@pytest.mark.parametrize("format", [torch.channels_last, torch.contiguous_format, torch.preserve_format])
def test_memory_formats_compute_nothing(format: torch.memory_format) -> None:
    x = torch.rand(1, 2, 3, 3)
    check(lambda x: x.to(memory_format=format) * 2, x)
    check(lambda x: x.to(torch.float32, memory_format=format) * 2, x)
    check(lambda x: x.to("cpu", memory_format=format) * x.float(memory_format=format), x)
    wide = torch.rand(1, 2, 3, 3, 3)
    check(lambda x: x.to(memory_format=torch.channels_last_3d) * 2, wide)
