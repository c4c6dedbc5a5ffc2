"""ONNX files in float16 and bfloat16 of models in other types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto
from torch import nn

import tmconvert
from tests.frontends.torch.harness import run_onnx
from tests.frontends.torch.test_element_types import MODULES, made
from tests.pairwise import pairwise
from tmconvert.errors import UsageError, VerificationError
from tmconvert.targets.onnx.passes import narrow_floats

CODES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


@pytest.mark.parametrize(
    ("name", "to", "source", "opset"),
    pairwise(MODULES, ["float16", "bfloat16"], [torch.float32, torch.bfloat16, torch.float64], [13, 17, 22]),
)
def test_modules(name: str, to: str, source: torch.dtype, opset: int, tmp_path: Path) -> None:
    module, x = made(name, source)
    path = tmp_path / "out.onnx"
    report = tmconvert.to_onnx(module, path, example_inputs=[x], float_type=to, opset=opset)
    assert report.verified
    assert report.verification is not None
    assert ("rounded to bfloat16" in report.verification.runtime) == (to == "bfloat16")
    assert any("the file itself was not run" in note for note in report.notes) == (to == "bfloat16")
    graph = onnx.load(path).graph
    assert graph.input[0].type.tensor_type.elem_type == CODES[to]
    weights = {each.data_type for each in graph.initializer if len(each.dims) > 1}
    assert CODES[to] in weights or (name, to, opset < 22) == ("recurrent", "bfloat16", True)
    if to == "float16":
        with torch.no_grad():
            wanted = module.float()(x.float())
        wanted = wanted[0][0] if isinstance(wanted, tuple) else wanted
        result = run_onnx(path, [x.float().numpy().astype(np.float16)])[0]
        np.testing.assert_allclose(result, wanted.numpy(), rtol=0, atol=1e-2 * wanted.abs().max())


def test_a_wrong_file_in_bfloat16_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = narrow_floats._rounded

    def wrong(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return right(data * (1.5 if data.ndim > 1 else 1), dtype)

    monkeypatch.setattr(narrow_floats, "_rounded", wrong)
    module, x = nn.Linear(64, 32), torch.randn(3, 64)
    with pytest.raises(VerificationError, match="differs by"):
        tmconvert.to_onnx(module, tmp_path / "o.onnx", example_inputs=[x], float_type="bfloat16")


class Positions(nn.Module):
    """Angles of positions that float16 does not have, and a mask with the lowest float32."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 64)
        self.register_buffer("frequencies", 1 / 100 ** torch.linspace(0, 1, 64))

    def forward(self, ids: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        x, places = self.table(ids), start + torch.arange(ids.shape[1])
        angles = places[:, None] * self.frequencies
        x = x * angles.cos() + x.flip(-1) * angles.sin()
        mask = torch.where(ids[:, None, :] > 40, torch.finfo(torch.float32).min, 0.0)
        return (x @ x.mT + mask).softmax(-1) @ x


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
def test_positions_stay_exact(to: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, inputs = Positions().eval(), (torch.randint(0, 50, (2, 7)), torch.tensor(3001))
    report = tmconvert.to_onnx(module, tmp_path / "o.onnx", example_inputs=inputs, float_type=to)
    assert report.verified
    assert report.max_error is not None
    assert report.max_error < (5e-3 if to == "float16" else 4e-2)


@pytest.mark.parametrize(
    ("to", "kind", "float_io", "opset"),
    [
        *pairwise(["float16", "bfloat16"], ["constant", "computed"], [False, True], [10, 11, 17]),
        *pairwise(["float16", "bfloat16"], ["input"], [True], [10, 11, 17]),
    ],
)
def test_masks_of_the_lowest_float32_stay_finite(
    to: str, kind: str, float_io: bool, opset: int, tmp_path: Path
) -> None:
    lowest = torch.finfo(torch.float32).min
    if to == "bfloat16" and opset < 13:
        opset = 13

    class Masked(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            if kind == "constant":
                mask = torch.full((5, 5), lowest)
            elif kind == "computed":
                mask = torch.where(mask > 0, lowest, 0.0)
            return torch.softmax(x + mask, -1)

    x = torch.randn(2, 5, 5)
    mask = torch.ones(5, 5, dtype=torch.int64) if kind != "input" else torch.full((5, 5), lowest)
    options: dict[str, Any] = {"io_type": "float32"} if float_io else {}
    path = tmp_path / "o.onnx"
    inputs = [x, mask]
    tmconvert.to_onnx(
        Masked(), path, example_inputs=inputs, float_type=to, opset=opset, verify=False, **options
    )
    if to == "float16":
        used = [x.numpy() if float_io else x.numpy().astype(np.float16), mask.numpy()]
        count = len(onnx.load(path).graph.input)
        assert np.isfinite(run_onnx(path, used[:count])[0]).all()
    else:
        model = onnx.load(path)
        tensors = [onnx.numpy_helper.to_array(each) for each in model.graph.initializer]
        assert all(np.isfinite(each.astype(np.float32)).all() for each in tensors)
        casts = [each for each in model.graph.node if each.op_type == "Cast" and each.attribute[0].i == 16]
        makers = {name: each.op_type for each in model.graph.node for name in each.output}
        takers = {name: each.op_type for each in model.graph.node for name in each.input}
        assert all("Clip" in (makers.get(each.input[0]), takers.get(each.output[0])) for each in casts)


@pytest.mark.parametrize("seed", [0, 32])  # 32: exp is large for drawn inputs, and rounds far
def test_branches_and_loops_stay_in_float32(seed: int, tmp_path: Path) -> None:
    torch.manual_seed(seed)
    weight = torch.randn(40, 40) / 6

    def model(x: torch.Tensor) -> torch.Tensor:
        y = x @ weight
        return torch.cond(y.sum() > 0, lambda x: x * 2, lambda x: x.exp(), (y,)) + y

    for to in CODES:
        report = tmconvert.to_onnx(
            model, tmp_path / "o.onnx", example_inputs=[torch.rand(3, 40)], float_type=to, opset=17
        )
        assert report.verified


@pytest.mark.parametrize(
    ("to", "options", "message"),
    [
        ("bfloat16", {"opset": 12}, "no bfloat16 at opset 12"),
        ("float16", {"quantized": True}, "omit float_type float16"),
    ],
)
def test_what_cannot_be(to: str, options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        tmconvert.to_onnx(
            nn.Linear(4, 4), tmp_path / "o.onnx", example_inputs=[torch.rand(1, 4)], float_type=to, **options
        )


def test_a_written_file_is_verified_again(tmp_path: Path) -> None:
    module, x = nn.Linear(64, 32).eval(), torch.randn(3, 64)
    traced = tmconvert.trace(module, x)
    tmconvert.to_onnx(traced, tmp_path / "o.onnx", float_type="bfloat16")
    assert "rounded to bfloat16" in tmconvert.verify(traced, tmp_path / "o.onnx").runtime


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
def test_inputs_and_outputs_stay_float32_on_request(to: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    module, x = nn.Sequential(nn.Linear(40, 64), nn.Tanh(), nn.Linear(64, 5)).eval(), torch.randn(3, 40)
    path, model = tmp_path / "out.onnx", tmconvert.trace(module, x)
    report = tmconvert.to_onnx(model, path, float_type=to, io_type="float32", opset=22)
    assert report.verified
    graph = onnx.load(path).graph
    assert {each.type.tensor_type.elem_type for each in (*graph.input, *graph.output)} == {TensorProto.FLOAT}
    assert [each.name for each in (*graph.input, *graph.output)] == ["input", "linear_out_1"]
    assert {each.data_type for each in graph.initializer} == {CODES[to]}
    assert sum(node.op_type == "Cast" for node in graph.node) == 2
    assert 1e-6 < tmconvert.verify(model, path).max_error < 1e-2
    if to == "float16":
        half = module.half()(x.half()).float().detach().numpy()
        np.testing.assert_allclose(run_onnx(path, [x.numpy()])[0], half, rtol=0, atol=2e-3)


def test_rules_keep_modules_in_float32(tmp_path: Path) -> None:
    """What a rule keeps has its weights and results as they were; the rest is narrow."""
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(40, 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).eval()
    path, x = tmp_path / "out.onnx", torch.randn(3, 40)
    model = tmconvert.trace(module, x)
    rules = {"*": "float32", "0": "float16"}
    report = tmconvert.to_onnx(model, path, float_type="float16", io_type="float32", rules=rules)
    assert report.verified
    assert "in float32 by rules: 3 operators" in report.notes
    graph = onnx.load(path).graph
    shapes = {tuple(each.dims): each.data_type for each in graph.initializer if len(each.dims) > 1}
    assert shapes == {(64, 40): TensorProto.FLOAT16, (64, 64): TensorProto.FLOAT}
    casts = [node.op_type for node in graph.node].count("Cast")
    assert casts == 2  # of the input, and of what the second layer takes
    with torch.no_grad():
        inner = module[0].half()(x.half()).float()
        wanted = module[1:].float()(inner).numpy()
    np.testing.assert_allclose(run_onnx(path, [x.numpy()])[0], wanted, rtol=0, atol=1e-3)
    rules = {"1": "float32"}
    tmconvert.to_onnx(model, path, float_type="float16", rules=rules)
    file = onnx.load(path).graph
    assert file.output[0].type.tensor_type.elem_type == TensorProto.FLOAT16
    assert [node.op_type for node in file.node].count("Cast") == 2
    assert tmconvert.verify(model, path).max_error < 1e-2


def test_a_file_without_a_narrow_tensor_states_it(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Embedding(8, 4), torch.nn.Linear(4, 2)).eval()
    ids = torch.tensor([[1, 2]])
    report = tmconvert.to_onnx(net, tmp_path / "m.onnx", example_inputs=(ids,), float_type="float16")
    assert report.notes == ["nothing is float16: no input is float32, and no weight has 1024 elements"]
