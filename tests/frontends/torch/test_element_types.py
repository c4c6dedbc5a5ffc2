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


@pytest.mark.slow
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


class MixedTypes(nn.Module):
    """Layers in bfloat16, norms in float32, and autocast."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(16, 16).bfloat16(), nn.Linear(16, 4).bfloat16()
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.first(x).float())
        with torch.autocast("cpu", torch.bfloat16):
            x = x + x @ torch.eye(16)
        return self.last(x.to(self.last.weight.dtype))


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_layers_of_several_types(target: str, tmp_path: Path) -> None:
    module, x = MixedTypes().eval(), torch.randn(3, 16).bfloat16()
    path = tmp_path / f"out.{target}"
    report = getattr(tmconvert, f"to_{target}")(module, path, example_inputs=[x])
    assert report.verified
    assert any(
        "float32 inputs of the file that are bfloat16 in the model: x" in note for note in report.notes
    )
    assert report.inputs[0]["dtype"] == "float32"
    if target == "onnx":
        with torch.no_grad():
            wanted = module(x).float().numpy()
        (result,) = run_onnx(path, [x.float().numpy()])
        np.testing.assert_allclose(result, wanted, rtol=0, atol=2e-2 * np.abs(wanted).max())


def test_autocast_to_bfloat16_is_said(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return (x @ x.mT).float()

    report = tmconvert.to_onnx(model, tmp_path / "o.onnx", example_inputs=[torch.randn(3, 4)])
    assert any("bfloat16 becomes float32" in note for note in report.notes)


EDGES = [0, 1e-9, 2**-10, 2**-9, 3e-3, 0.0156, 1, 1.0625, 1.1875, 17, 19, 440, 448, 456, 463.9, 57344, 61000]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_casts_to_float8_round(dtype: torch.dtype) -> None:
    most = torch.finfo(dtype).max
    x = torch.cat([torch.randn(500) * torch.logspace(-5, 2, 500), torch.tensor(EDGES).clamp(max=most)])
    x = torch.cat([x, -x, torch.tensor([most * 1.5, -most * 2])])
    traced = tmconvert.trace(lambda x: x.to(dtype).to(torch.float32), x)
    assert any("round to its numbers" in note for note in traced.notes)
    np.testing.assert_array_equal(np.asarray(traced(x.numpy())), x.to(dtype).float().numpy())


@pytest.mark.parametrize("has_rows", [False, True])
@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_products_of_float8(target: str, has_rows: bool, tmp_path: Path) -> None:
    weight = torch.randn(32, 16).to(torch.float8_e4m3fn)
    scale = torch.rand(1, 32) + 0.5 if has_rows else torch.tensor(0.5)

    def model(x: torch.Tensor) -> torch.Tensor:
        own = x.abs().amax(1, keepdim=True) / 448 if has_rows else x.abs().max() / 448
        stored = (x / own).clamp(-448, 448).to(torch.float8_e4m3fn)
        kind = torch.bfloat16 if has_rows else torch.float32
        return torch._scaled_mm(stored, weight.t(), scale_a=own, scale_b=scale, out_dtype=kind).float()

    x = torch.randn(16, 16)
    path = tmp_path / f"o.{target}"
    assert getattr(tmconvert, f"to_{target}")(model, path, example_inputs=[x]).verified
    if target == "onnx":
        wanted = model(x).numpy()
        (result,) = run_onnx(path, [x.numpy()])
        np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-2 * np.abs(wanted).max())


def test_exported_programs_of_float8(tmp_path: Path) -> None:
    module, x = Narrow(), torch.randn(3, 4)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "model.pt2")
    report = tmconvert.to_onnx(tmp_path / "model.pt2", tmp_path / "out.onnx")
    assert report.verified
    (result,) = run_onnx(tmp_path / "out.onnx", [x.numpy()])
    wanted = (1 + 2 * x) * 0.5 + x @ module.table.float()
    np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_in_float64(axes: int, groups: int) -> None:
    """ONNX Runtime has no kernels of Conv and ConvTranspose in float64."""
    convolution, transposed = (getattr(nn, f"{kind}{axes}d") for kind in ("Conv", "ConvTranspose"))
    module = nn.Sequential(
        convolution(4, 6, 2, stride=2, padding=1, groups=groups),
        transposed(6, 2, 3, stride=2, padding=1, output_padding=1, groups=groups),
        transposed(2, 2, 2, padding=1, dilation=2, bias=False),
    )
    x = torch.randn(2, 4, *(5, 6, 7)[:axes], dtype=torch.float64)
    check(module.double().eval(), x, opsets=(11, 17), tolerance=1e-9)


def test_fold_in_float64() -> None:
    check(nn.Fold((4, 5), (2, 2), padding=1), torch.randn(1, 8, 30, dtype=torch.float64), tolerance=1e-9)
