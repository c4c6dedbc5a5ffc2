"""aten::slice and aten::select."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.symbolics.ops.harness import NEWEST_OPSET, assert_op_matches, normal, refusal
from tmconvert.ir import InternalGraph, TensorNode, TensorType
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.symbolic.dims import dim as symbolic
from tmconvert.ir.symbolic.journal import SizeJournal, SizesSpecialized
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.shapes.slice import select, slice_
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import lower

X = (2, 3, 5, 7)


def in_loops(x: np.ndarray, dim: int, places: list[int]) -> np.ndarray:
    shape = list(x.shape)
    shape[dim] = len(places)
    result = np.empty(shape, x.dtype)
    for index in np.ndindex(*shape):
        source = list(index)
        source[dim] = places[index[dim]]
        result[index] = x[tuple(source)]
    return result


def check_slice(x: np.ndarray, dim: int, start: int, end: int, step: int) -> None:
    places: list[int] = []
    while start + len(places) * step < end:
        places.append(start + len(places) * step)
    attributes = {"dim": dim, "start": start, "end": end, "step": step}
    expected = [in_loops(x, dim, places)]
    assert_op_matches("aten::slice", [x], attributes, expected=expected, tolerance=0)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("dim", range(4))
def test_slice(dim: int, step: int) -> None:
    x = normal(0, *X)
    check_slice(x, dim, 0, X[dim], step)
    check_slice(x, dim, 1, X[dim], step)
    check_slice(x, dim, 0, X[dim] - 1, step)
    check_slice(x, dim, 1, 2, step)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_slice_at_any_rank(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    dim = data.draw(st.integers(0, len(shape) - 1))
    start = data.draw(st.integers(0, shape[dim] - 1))
    end = data.draw(st.integers(start + 1, shape[dim]))
    check_slice(normal(0, *shape), dim, start, end, data.draw(st.integers(1, 3)))


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 13, NEWEST_OPSET])
@pytest.mark.parametrize("step", [1, 2])
def test_slice_on_onnx(step: int, opset: int) -> None:
    x = normal(0, *X)
    attributes = {"dim": -1, "start": 1, "end": 6, "step": step}
    expected = [x[..., 1:6:step]]
    assert_op_matches(
        "aten::slice", [x], attributes, expected=expected, targets=["onnx"], opsets=[opset], tolerance=0
    )


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 5), X, (2, 3, 1, 5, 7), (2, 3, 1, 5, 2, 4)], ids=str)
def test_select(shape: tuple[int, ...]) -> None:
    x = normal(0, *shape)
    for dim in range(len(shape)):
        index = shape[dim] - 1
        expected = [in_loops(x, dim, [index]).reshape(shape[:dim] + shape[dim + 1 :])]
        assert_op_matches("aten::select", [x], {"dim": dim, "index": index}, expected=expected, tolerance=0)


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "uint8", "float16"])
def test_dtypes(dtype: str) -> None:
    x = np.arange(30).reshape(2, 3, 5).astype(dtype)
    for attributes in ({"start": 1, "end": 4}, {"start": 0, "end": 5, "step": 2}):
        assert_op_matches("aten::slice", [x], {"dim": 2, **attributes}, targets=["onnx", "tflite"])
    assert_op_matches("aten::select", [x], {"dim": 1, "index": 2}, targets=["onnx", "tflite"])


def test_refusals_of_caffe() -> None:
    x = normal(0, 5)
    assert refusal("caffe", "aten::slice", [x], {"dim": 0, "start": 2, "end": 2}) == (
        "a Caffe blob cannot be empty"
    )


@pytest.mark.parametrize(("start", "end", "step"), [(-1, 2, 1), (0, 4, 1), (2, 1, 1), (0, 2, 0)])
def test_slice_type_rule_refuses(start: int, end: int, step: int) -> None:
    with pytest.raises(SchemaError, match="is not a valid slice of axis 1"):
        slice_.infer([type_of(2, 3)], {"dim": 1, "start": start, "end": end, "step": step})


@pytest.mark.parametrize("index", [-1, 3])
def test_select_type_rule_refuses(index: int) -> None:
    with pytest.raises(SchemaError, match="is not a valid index of axis 1"):
        select.infer([type_of(2, 3)], {"dim": 1, "index": index})


@pytest.mark.parametrize(
    ("dim", "kind"), [(0, "source"), (1, "any"), (-3, "any"), (2, "source"), (3, "source")]
)
def test_select_layout_rule(dim: int, kind: str) -> None:
    assert select.layout_rule([type_of(*X)], {"dim": dim, "index": 0}).kind == kind


def type_of(*shape: int) -> TensorType:
    return TensorType(np.dtype(np.float32), shape)


def test_opset_10_takes_a_slice_of_constant_bounds_for_the_whole() -> None:
    """Its inference gives the result the name of the tensor's size; runtimes share memory by such names."""
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", (symbolic("n", 5), 3), np.dtype(np.float32)))
    part = GraphEmitter(graph, catalogue(), name="y").call("aten::slice", x, 0, 1, 3)
    graph.set_result(part)
    with SizeJournal() as journal, pytest.raises(SizesSpecialized):
        lower(graph, catalogue(), "onnx", 10)
    assert "at opset 10, ONNX infers for a slice with constant bounds" in journal.reasons["n"]
    for opset in (9, 11):
        with SizeJournal() as journal:
            assert not lower(graph, catalogue(), "onnx", opset).unsupported
        assert not journal.specialized
