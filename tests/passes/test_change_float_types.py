"""All floats of a graph in one type, for targets without kernels for others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tmconvert
from tests.symbolics.ops.harness import Const, op_graph, refusal, store_as
from tests.symbolics.ops.samples import SAMPLES, Sample
from tmconvert.errors import TmconvertError, UnsupportedError
from tmconvert.ir import TensorNode
from tmconvert.ir.subgraphs import nested
from tmconvert.ir.tree import map_leaves
from tmconvert.passes.change_float_types import ChangeFloatTypes, rounded
from tmconvert.passes.decompose import Decompose
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower
from tmconvert.targets.tflite.passes.align_ranks import AlignRanks


def as_type(leaf: Any, dtype: str) -> Any:
    if isinstance(leaf, Const):
        return Const(as_type(leaf.array, dtype))
    return leaf.astype(dtype) if isinstance(leaf, np.ndarray) and leaf.dtype == np.float32 else leaf


FLOAT_OPS = [
    name
    for name, samples in SAMPLES.items()
    if "tflite" not in catalogue()[name].reasons and samples and samples[0].suits("tflite", 0)
]


@pytest.mark.parametrize("name", FLOAT_OPS)
def test_tflite_refuses_no_op_for_its_float_type(name: str) -> None:
    sample = SAMPLES[name][0]
    if not refusal("tflite", name, sample.args, sample.attributes):
        for dtype in ("float64", "float16"):
            assert_lowered(name, sample, dtype)


def assert_lowered(name: str, sample: Sample, dtype: str) -> None:
    args = [map_leaves(lambda leaf: as_type(leaf, dtype), arg) for arg in sample.args]
    try:
        graph = op_graph(name, args, sample.attributes)
    except TmconvertError:  # the op itself is not defined for the type
        return
    changes = ChangeFloatTypes(("float64", "float16"), "float32")
    for each in list(nested(graph)):
        (changes if each is graph else changes.inside).run(each)
    Decompose(catalogue(), "tflite", TFLITE_RUNTIME).run(graph)
    for each in list(nested(graph)):
        AlignRanks(catalogue()).run(each)
    store_as(graph, "planned")
    assert not lower(graph, catalogue(), "tflite", TFLITE_RUNTIME).unsupported
    assert all(
        node.dtype not in (np.float64, np.float16)
        for expr in graph
        for node in expr.outputs
        if isinstance(node, TensorNode)
    )


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Linear(8, 64)
        self.table = nn.Embedding(20, 64)

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> Any:
        y = self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))
        scores = self.table(ids) @ y.unsqueeze(-1)
        lowest = torch.finfo(y.dtype).min
        return scores.masked_fill(ids.unsqueeze(-1) > 9, lowest).softmax(1), y.sum(1), y.argmax(1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_tflite_computes_in_float32(dtype: torch.dtype, tmp_path: Path) -> None:
    module = Mixed().eval().to(dtype)
    inputs = (torch.randn(2, 3, 8, 8).to(dtype), torch.randint(0, 20, (2, 5)))
    report = tmconvert.to_tflite(module, tmp_path / "out.tflite", example_inputs=inputs)
    assert report.verified
    name = str(dtype).removeprefix("torch.")
    (note,) = [note for note in report.notes if note.startswith(f"{name} as float32: input x; outputs ")]
    assert note.endswith("inside")
    assert [each["dtype"] for each in report.inputs] == ["float32", "int32"]
    with pytest.raises(UnsupportedError, match=f"does not support {name}"):
        tmconvert.to_tflite(module, tmp_path / "no.tflite", example_inputs=inputs, float_type="source")


def test_weights_of_half_precision_stay_in_tflite(tmp_path: Path) -> None:
    module = Mixed().eval()
    inputs = (torch.randn(2, 3, 8, 8), torch.randint(0, 20, (2, 5)))
    tmconvert.to_tflite(module, tmp_path / "float.tflite", example_inputs=inputs)
    module = module.half()
    report = tmconvert.to_tflite(
        module, tmp_path / "half.tflite", example_inputs=(inputs[0].half(), inputs[1])
    )
    assert any("weights as float16: 0.00 MB" in note for note in report.notes)
    sizes = [(tmp_path / f"{name}.tflite").stat().st_size for name in ("float", "half")]
    assert sizes[0] - sizes[1] > 2 * 20 * 64 - 1000


CALLS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sum": lambda x: x.sum(1),
    "matmul": lambda x: x @ x.mT,
    "cast": lambda x: (x * 3).long(),
    "cumsum": lambda x: x.cumsum(0),
    "rounding": lambda x: (x.half().double() + x, x.float().double() * 3),
    "branch": lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.exp(), (x,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_float64(name: str, tmp_path: Path) -> None:
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4)
    assert tmconvert.to_tflite(CALLS[name], tmp_path / "out.tflite", example_inputs=[x]).verified


def test_onnx_on_request(tmp_path: Path) -> None:
    module = Mixed().eval().double()
    inputs = (torch.randn(2, 3, 8, 8).double(), torch.randint(0, 20, (2, 5)))
    report = tmconvert.to_onnx(module, tmp_path / "o.onnx", example_inputs=inputs, float_type="float32")
    assert report.verified
    assert report.inputs[0]["dtype"] == "float32"


def test_finite_numbers_stay_finite() -> None:
    made = rounded(np.array([-1e300, 1e39, np.inf, np.nan, 0.5]), np.dtype("float32"))
    most = np.finfo(np.float32).max
    np.testing.assert_array_equal(made, np.array([-most, most, np.inf, np.nan, 0.5], np.float32))
