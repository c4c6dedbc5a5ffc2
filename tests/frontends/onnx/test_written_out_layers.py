"""Layers that exporters write as steps are operators of the target again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tmconvert
from tests.frontends.onnx.models import in_onnx_runtime

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 1, 5, 8)).astype(np.float32)
GELU = [
    helper.make_node("Div", ["x", "root"], ["a"]),
    helper.make_node("Erf", ["a"], ["b"]),
    helper.make_node("Add", ["b", "one"], ["c"]),
    helper.make_node("Mul", ["x", "c"], ["d"]),
    helper.make_node("Mul", ["d", "half"], ["y"]),
]
LINEAR = [helper.make_node("MatMul", ["x", "weight"], ["a"]), helper.make_node("Add", ["bias", "a"], ["y"])]
NORM = [
    helper.make_node("Mul", ["x", "x"], ["a"]),
    helper.make_node("ReduceMean", ["a"], ["b"], axes=[-1], keepdims=1),
    helper.make_node("Add", ["b", "small"], ["c"]),
    helper.make_node("Sqrt", ["c"], ["d"]),
    helper.make_node("Div", ["one", "d"], ["e"]),
    helper.make_node("Mul", ["x", "e"], ["y"]),
]
ATTENTION = [
    helper.make_node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]),
    helper.make_node("Mul", ["x", "half"], ["q"]),
    helper.make_node("Mul", ["t", "half"], ["k"]),
    helper.make_node("MatMul", ["q", "k"], ["scores"]),
    helper.make_node("Where", ["mask", "zero", "low"], ["m"]),
    helper.make_node("Add", ["scores", "m"], ["masked"]),
    helper.make_node("Softmax", ["masked"], ["p"], axis=-1),
    helper.make_node("IsNaN", ["p"], ["n"]),
    helper.make_node("Where", ["n", "zero", "p"], ["s"]),
    helper.make_node("MatMul", ["s", "x"], ["y"]),
]
CONSTANTS = {
    "root": np.float32(np.sqrt(2)),
    "one": np.float32(1),
    "half": np.float32(0.5),
    "small": np.float32(1e-5),
    "zero": np.float32(0),
    "low": np.float32(-np.inf),
    "weight": RNG.standard_normal((8, 3)).astype(np.float32),
    "bias": RNG.standard_normal(3).astype(np.float32),
}


def model(nodes: list[onnx.NodeProto], path: Path) -> Path:
    used = {name for node in nodes for name in node.input}
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, X.shape)]
    if "mask" in used:
        inputs.append(helper.make_tensor_value_info("mask", onnx.TensorProto.BOOL, [2, 1, 5, 5]))
    weights = [
        numpy_helper.from_array(np.asarray(each), name) for name, each in CONSTANTS.items() if name in used
    ]
    graph = helper.make_graph(nodes, "net", inputs, [onnx.ValueInfoProto(name="y")], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize(
    ("nodes", "operators", "opset", "types"),
    [
        (GELU, 1, 20, ["Gelu"]),
        (LINEAR, 1, 17, ["MatMul", "Add"]),
        (NORM, 5, 23, ["RMSNormalization"]),
        (ATTENTION, 6, 25, ["Attention"]),
    ],
    ids=["gelu", "linear", "norm", "attention"],
)
def test_steps_become_one_operator(tmp_path, nodes, operators, opset, types):
    path = model(nodes, tmp_path / "net.onnx")
    report = tmconvert.to_tflite(path, tmp_path / "out.tflite")
    assert report.verified
    assert report.operators == operators
    assert tmconvert.to_onnx(path, tmp_path / "out.onnx", opset=opset).verified
    assert [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node] == types


def test_a_query_that_sees_nothing_returns_zeros_as_in_the_file(tmp_path):
    path = model(ATTENTION, tmp_path / "net.onnx")
    mask = np.ones((2, 1, 5, 5), bool)
    mask[0, 0, 1] = False
    wanted = in_onnx_runtime(path, X, mask)[0]
    assert not wanted[0, 0, 1].any()
    np.testing.assert_allclose(tmconvert.load(path)(X, mask), wanted, rtol=1e-5, atol=1e-6)
    tmconvert.to_onnx(path, tmp_path / "out.onnx", opset=17)
    np.testing.assert_allclose(
        in_onnx_runtime(tmp_path / "out.onnx", X, mask)[0], wanted, rtol=1e-5, atol=1e-6
    )
