"""clip(a * x + b, 0, 1) is one HardSigmoid, where nothing else uses its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tmconvert
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx.passes.fuse_hard_sigmoid import fuse_hard_sigmoid

FLOAT = np.dtype(np.float32)


def constant(name: str, number: Any) -> Value:
    array = np.array(number, FLOAT)
    return Value(name, FLOAT, array.shape, array)


def graph(
    low: float = 0.0, factor: Any = 0.25, *, shares: bool = False, swapped: bool = False
) -> TargetGraph:
    x, product, total, y = (Value(name, FLOAT, (2, 3)) for name in ("x", "product", "total", "y"))
    factors = [x, constant("factor", factor)]
    operators = [
        Operator("Mul", factors[::-1] if swapped else factors, [product], {}, "/mul"),
        Operator("Add", [product, constant("offset", 0.5)], [total], {}, "/add"),
        Operator("Clip", [total, constant("low", low), constant("high", 1.0)], [y], {}, "/clip"),
    ]
    outputs = [y, total] if shares else [y]
    names = [value.name for value in outputs]
    return TargetGraph("onnx", 17, "net", [x], outputs, operators, ["x"], names)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_clipped_line_is_a_hard_sigmoid(swapped: bool) -> None:
    made = graph(swapped=swapped)
    assert fuse_hard_sigmoid(made)
    (operator,) = made.operators
    assert (operator.type, operator.inputs) == ("HardSigmoid", made.inputs)
    assert operator.attributes == {"alpha": 0.25, "beta": 0.5}


@pytest.mark.parametrize("changes", [{"low": -1.0}, {"factor": [0.25, 0.5, 1.0]}], ids=["bounds", "factors"])
def test_other_lines_stay(changes: dict[str, Any]) -> None:
    made = graph(**changes)
    assert not fuse_hard_sigmoid(made)
    assert [operator.type for operator in made.operators] == ["Mul", "Add", "Clip"]


def test_a_line_that_is_used_stays() -> None:
    made = graph(shares=True)
    (event,) = fuse_hard_sigmoid(made).refused
    assert str(event) == "`y` stays: another operator uses what is clipped"


def test_it_computes_the_same_in_onnx_runtime(tmp_path: Path) -> None:
    helper = onnx.helper
    constants = {"factor": 0.3, "offset": 0.4, "low": 0.0, "high": 1.0}
    nodes = [
        helper.make_node("Mul", ["x", "factor"], ["product"]),
        helper.make_node("Add", ["product", "offset"], ["total"]),
        helper.make_node("Clip", ["total", "low", "high"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(name, 1, [2, 3]) for name in ("x", "y")]
    stored = [onnx.numpy_helper.from_array(np.array(each, FLOAT), name) for name, each in constants.items()]
    made = helper.make_graph(nodes, "net", values[:1], values[1:], stored)
    source, path = tmp_path / "source.onnx", tmp_path / "m.onnx"
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), source)
    tmconvert.to_onnx(source, path, verify=False)
    assert [node.op_type for node in onnx.load(path).graph.node] == ["HardSigmoid"]
    numbers = np.linspace(-4, 4, 6, dtype=np.float32).reshape(2, 3)
    expected, found = (
        onnxruntime.InferenceSession(str(each)).run(None, {"x": numbers})[0] for each in (source, path)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
