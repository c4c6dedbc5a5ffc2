"""Whole modules of other element types than float32."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tmconvert
from tmconvert.errors import VerificationError
from tmconvert.ir.tree import leaves

from .harness import arrays, check, run_onnx

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
def test_bfloat16_becomes_float32(name: str, tmp_path: Path) -> None:
    module, x = made(name, torch.bfloat16)
    report = tmconvert.to_onnx(module, tmp_path / "out.onnx", example_inputs=[x])
    assert any("bfloat16 becomes float32" in note for note in report.notes)
    assert {parameter.dtype for parameter in module.parameters()} == {torch.bfloat16}
    with torch.no_grad():
        wanted = arrays(copy.deepcopy(module).float()(x.float()))
    for one, two in zip(run_onnx(tmp_path / "out.onnx", [x.float().numpy()]), wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


class Narrow(nn.Module):
    """Makes bfloat16 of float32 in every way, and has weights in float8."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(4, 4).to(torch.float8_e4m3fn))
        self.scale = torch.full((4,), 0.5, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = torch.ones(4, dtype=torch.bfloat16) + x.bfloat16() + x.to(torch.bfloat16)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixed = x @ torch.eye(4)
        return (made * self.scale).float() + mixed.type(torch.bfloat16) @ self.table.to(torch.bfloat16)


def test_bfloat16_and_float8_inside_of_a_module(tmp_path: Path) -> None:
    module, x = Narrow(), torch.randn(3, 4)
    traced = tmconvert.trace(module, x, dynamic_shapes={"x": {0: "n"}})
    assert sum("float32" in note for note in traced.notes) == 2
    assert (module.table.dtype, module.scale.dtype) == (torch.float8_e4m3fn, torch.bfloat16)
    tmconvert.to_onnx(traced, tmp_path / "out.onnx")
    x = torch.randn(5, 4)
    (result,) = run_onnx(tmp_path / "out.onnx", [x.numpy()])
    wanted = (1 + 2 * x) * 0.5 + x @ module.table.float()
    np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-4, atol=1e-4)


def test_exported_programs_of_bfloat16(tmp_path: Path) -> None:
    module, x = made("attending", torch.bfloat16)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "model.pt2")
    tmconvert.to_onnx(tmp_path / "model.pt2", tmp_path / "out.onnx")
    with torch.no_grad():
        wanted = arrays(module.float()(x.float()))
    for one, two in zip(run_onnx(tmp_path / "out.onnx", [x.float().numpy()]), wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("format", [torch.channels_last, torch.contiguous_format, torch.preserve_format])
def test_memory_formats_compute_nothing(format: torch.memory_format) -> None:
    x = torch.rand(1, 2, 3, 3)
    check(lambda x: x.to(memory_format=format) * 2, x)
    check(lambda x: x.to(torch.float32, memory_format=format) * 2, x)
    check(lambda x: x.to("cpu", memory_format=format) * x.float(memory_format=format), x)
    wide = torch.rand(1, 2, 3, 3, 3)
    check(lambda x: x.to(memory_format=torch.channels_last_3d) * 2, wide)
