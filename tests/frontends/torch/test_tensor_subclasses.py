"""Weights in tensor subclasses that hold integers or float8 with scales, as torchao's do."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tmconvert

from .harness import run_onnx

CALLS: dict[Any, Callable[..., Any]] = {}


class Blocks(torch.Tensor):
    """Elements times the scale of their block; like torchao's tensors it passes on what it does not know."""

    @staticmethod
    def __new__(cls, qdata: torch.Tensor, scale: torch.Tensor, is_dynamic: bool) -> Any:
        make: Any = torch.Tensor._make_wrapper_subclass  # type: ignore[attr-defined]
        return make(cls, qdata.shape, dtype=scale.dtype, device=qdata.device)

    def __init__(self, qdata: torch.Tensor, scale: torch.Tensor, is_dynamic: bool) -> None:
        self.qdata, self.scale, self.is_dynamic = qdata, scale, is_dynamic

    def __tensor_flatten__(self) -> Any:
        return ["qdata", "scale"], self.is_dynamic

    @staticmethod
    def __tensor_unflatten__(parts: Any, context: Any, *_: Any) -> Blocks:
        return Blocks(parts["qdata"], parts["scale"], context)

    def dequantize(self) -> torch.Tensor:  # type: ignore[override]
        blocks = self.qdata.to(self.scale.dtype).reshape(*self.scale.shape, -1)
        return (blocks * self.scale.unsqueeze(-1)).reshape(self.qdata.shape).to(self.dtype)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return CALLS.get(func, func)(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return Blocks(args[0].qdata, args[0].scale, args[0].is_dynamic)
        return func(*(each.dequantize() if isinstance(each, Blocks) else each for each in args))


def linear(x: torch.Tensor, weight: Blocks, bias: torch.Tensor | None = None) -> torch.Tensor:
    assert weight.device.type == "cpu"
    if weight.is_dynamic:
        scale = x.abs().amax(-1, keepdim=True) / 127
        x = ((x / scale).round().clamp(-128, 127) * scale).to(weight.dtype)
    return F.linear(x, weight.dequantize(), bias)


CALLS[F.linear] = linear


class Model(nn.Module):
    def __init__(self, stored: torch.dtype, dtype: torch.dtype, is_dynamic: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(32, 16, dtype=dtype), nn.Linear(16, 8, bias=False, dtype=dtype)
        for each in (self.first, self.second):
            rows, columns = each.weight.shape
            qdata = torch.randint(-8, 8, (rows, columns)).to(stored)
            scale = (torch.rand(rows, columns // 8) / 8).to(dtype)
            each.weight = nn.Parameter(Blocks(qdata, scale, is_dynamic), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x.to(self.first.weight.dtype)).relu()
        return torch.mm(self.second(hidden), self.second.weight)


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("stored", [torch.int8, torch.float8_e4m3fn, torch.float8_e5m2])
def test_weights_with_scales(
    stored: torch.dtype, dtype: torch.dtype, is_dynamic: bool, tmp_path: Path
) -> None:
    module, x = Model(stored, dtype, is_dynamic).eval(), torch.randn(5, 32)
    report = tmconvert.to_onnx(module, tmp_path / "out.onnx", example_inputs=[x])
    assert report.verified
    assert (module.first.weight.dtype, module.first.weight.qdata.dtype) == (dtype, stored)
    is_narrow = [dtype == torch.bfloat16, stored != torch.int8]
    assert sum("become" in note for note in report.notes) == sum(is_narrow)
    (result,) = run_onnx(tmp_path / "out.onnx", [x.numpy()])
    with torch.no_grad():
        wanted = module(x).float().numpy()
    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-5
    np.testing.assert_allclose(result, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_tensors_that_no_module_holds(dtype: torch.dtype, tmp_path: Path) -> None:
    table = torch.randn(4, 4).to(dtype)

    def model(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return torch.cat([x @ table.to(x.dtype), table.to(torch.float32)])

    x = torch.randn(3, 4)
    report = tmconvert.to_onnx(
        functools.partial(model, table=table), tmp_path / "out.onnx", example_inputs=[x]
    )
    assert any("float32" in note for note in report.notes)
    (result,) = run_onnx(tmp_path / "out.onnx", [x.numpy()])
    np.testing.assert_allclose(result, model(x, table).numpy(), rtol=1e-5, atol=1e-5)
    assert table.dtype == dtype


def test_a_default_type_of_bfloat16(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.float() * torch.linspace(0, 1, 4) + torch.ones(4)

    torch.set_default_dtype(torch.bfloat16)
    try:
        x = torch.randn(3, 4)
        tmconvert.to_onnx(model, tmp_path / "out.onnx", example_inputs=[x])
        assert torch.get_default_dtype() == torch.bfloat16
    finally:
        torch.set_default_dtype(torch.float32)
    (result,) = run_onnx(tmp_path / "out.onnx", [x.float().numpy()])
    np.testing.assert_allclose(result, model(x.float()).numpy(), rtol=1e-5, atol=1e-5)


class Layers(nn.Module):
    """A product of each rank, a table, and names that the file may take itself."""

    def __init__(self, count: int, lowest: int, highest: int, has_zeros: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        made = {
            "table": torch.randint(lowest, highest, (40, 64), generator=generator),
            "first": torch.randint(lowest, highest, (64, 64), generator=generator),
            "second": torch.randint(lowest, highest, (64, 64), generator=generator),
        }
        for name, values in made.items():
            shape = len(values), count
            self.register_buffer(name, values.to(torch.int8))
            self.register_buffer(f"{name}_scale", torch.rand(shape, generator=generator) / 8 + 0.01)
            zeros = torch.randint(-3, 3, shape, generator=generator) * has_zeros
            self.register_buffer(f"{name}_zero_point", zeros.to(torch.int8))
        self.bias = nn.Parameter(torch.randn(64))

    def weight(self, name: str) -> torch.Tensor:
        scale, zero = getattr(self, f"{name}_scale"), getattr(self, f"{name}_zero_point")
        blocks = getattr(self, name).float().reshape(*scale.shape, -1)
        return ((blocks - zero.unsqueeze(-1)) * scale.unsqueeze(-1)).flatten(1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = F.embedding(ids, self.weight("table"))
        x = F.linear(x, self.weight("first")).relu().flatten(0, 1)
        return F.linear(x, self.weight("second"), self.bias)


BLOCKS = [(1, -8, 8, False), (2, -8, 8, True), (4, -100, 100, False), (1, -100, 100, True), (2, -2, 2, False)]


@pytest.mark.parametrize("form", ["DequantizeLinear", "MatMulNBits", "float32"])
@pytest.mark.parametrize("opset", [12, 17, 21])
@pytest.mark.parametrize("blocks", BLOCKS)
def test_integers_with_scales_in_onnx(blocks: Any, opset: int, form: str, tmp_path: Path) -> None:
    module, ids = Layers(*blocks).eval(), torch.randint(0, 40, (3, 5))
    path = tmp_path / "out.onnx"
    report = tmconvert.to_onnx(module, path, example_inputs=[ids], opset=opset, integer_weights=form)
    assert report.verified
    (result,) = run_onnx(path, [ids.numpy()], entries={"session.qdq_matmulnbits_accuracy_level": "1"})
    wanted = module(ids).detach().numpy()
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    text = " / ".join(report.notes)
    if form == "float32":
        assert not text
        return
    count = blocks[0]
    is_written = form == "MatMulNBits" or opset >= (21 if count > 1 else 13)
    assert ("stored as floats" in text) == (not is_written)
    assert ("accuracy_level" in text) == (form == "DequantizeLinear" and is_written)
    elements = (40 + 64 + 64) * 64
    if is_written and (opset == 21 or form == "MatMulNBits"):
        bits = 4 if blocks[2] <= 8 else 8
        assert path.stat().st_size < elements * bits // 8 + 8000
    if form == "MatMulNBits":
        types = Counter(node.op_type for node in onnx.load(path).graph.node)
        assert (types["MatMulNBits"], types["GatherBlockQuantized"]) == (2, 1)


def test_a_product_that_is_no_sum_of_blocks_stays(tmp_path: Path) -> None:
    table = torch.randint(-8, 8, (64, 64), dtype=torch.int8)
    noise = torch.randn(64, 64)
    x = torch.randn(3, 64)
    report = tmconvert.to_onnx(
        lambda x: x @ (table.float() + noise),
        tmp_path / "out.onnx",
        example_inputs=[x],
        opset=21,
        integer_weights="DequantizeLinear",
    )
    assert not report.notes
