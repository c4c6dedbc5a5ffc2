"""aten::softmax: every target, and the kernel against loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.symbolics.ops.harness import (
    NEWEST_OPSET,
    assert_op_matches,
    normal,
    op_graph,
    reference,
    store_channels_last,
)
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.layers.softmax import softmax
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower

SHAPES = [(5,), (3, 5), (2, 3, 5), (2, 3, 5, 7), (2, 3, 1, 5, 7)]


def in_loops(x: np.ndarray, dim: int) -> np.ndarray:
    rows = np.moveaxis(x, dim, -1)
    result = np.empty_like(rows)
    for index in np.ndindex(*rows.shape[:-1]):
        powers = [math.exp(value) for value in rows[index].tolist()]
        result[index] = [power / math.fsum(powers) for power in powers]
    return np.moveaxis(result, -1, dim)


@pytest.mark.parametrize(("shape", "dim"), [(shape, dim) for shape in SHAPES for dim in range(len(shape))])
def test_matches(shape: tuple[int, ...], dim: int) -> None:
    x = 3 * normal(0, *shape)
    assert_op_matches("aten::softmax", [x], {"dim": dim}, expected=[in_loops(x, dim)])


@pytest.mark.parametrize("opset", [7, 10, 11, 12, 13, NEWEST_OPSET])
@pytest.mark.parametrize("dim", [-4, -3, -2, -1])
def test_onnx_below_and_from_13(dim: int, opset: int) -> None:
    x = normal(0, 2, 3, 5, 7)
    expected = [in_loops(x, dim)]
    assert_op_matches("aten::softmax", [x], {"dim": dim}, expected=expected, targets=["onnx"], opsets=[opset])


def test_channels_of_one_pixel_need_no_transpose_below_13() -> None:
    x = normal(0, 2, 5, 1, 1)
    graph = op_graph("aten::softmax", [x], {"dim": 1})
    assert [operator.type for operator in lower(graph, catalogue(), "onnx", 12).graph.operators] == [
        "Softmax"
    ]
    assert_op_matches("aten::softmax", [x], {"dim": 1}, expected=[in_loops(x, 1)])


def test_over_channels_is_one_tflite_operator_channels_last() -> None:
    graph = op_graph("aten::softmax", [normal(0, 2, 3, 5, 7)], {"dim": 1})
    store_channels_last(graph)
    operators = lower(graph, catalogue(), "tflite", TFLITE_RUNTIME).graph.operators
    assert [operator.type for operator in operators] == ["SOFTMAX"]


def test_large_numbers_do_not_overflow() -> None:
    x = np.array([[1e4, 0, -1e4], [500, 501, 502]], np.float32)
    (actual,) = reference("aten::softmax", [x], {"dim": 1})
    assert actual[0].tolist() == [1, 0, 0]
    assert_op_matches("aten::softmax", [x], {"dim": 1})


@pytest.mark.parametrize(
    ("dtype", "opsets"), [("float16", [12, 13, NEWEST_OPSET]), ("float64", [12, 13, NEWEST_OPSET])]
)
def test_dtypes_on_onnx(dtype: str, opsets: list[int]) -> None:
    x = normal(0, 2, 3, 5, dtype=dtype)
    assert_op_matches("aten::softmax", [x], {"dim": 1}, targets=["onnx"], opsets=opsets)


def test_axis_must_exist() -> None:
    with pytest.raises(SchemaError, match="axis 2 is out of range for rank 2"):
        softmax.infer([TensorType(np.dtype(np.float32), (2, 3))], {"dim": 2})
