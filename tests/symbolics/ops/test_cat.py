"""aten::cat."""

from __future__ import annotations

import numpy as np
import pytest

from tests.symbolics.ops.harness import NEWEST_OPSET, Const, assert_op_matches, normal
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.shapes.cat import cat

SHAPES = [(5,), (3, 5), (2, 3, 5), (2, 3, 5, 7), (2, 3, 1, 5, 7)]
CASES = [(shape, dim) for shape in SHAPES for dim in range(len(shape))]


def parts(shape: tuple[int, ...], dim: int, count: int) -> list[np.ndarray]:
    """Tensors of different lengths along ``dim``."""
    lengths = range(1, count + 1)
    return [normal(seed, *shape[:dim], seed, *shape[dim + 1 :]) for seed in lengths]


def in_loops(tensors: list[np.ndarray], dim: int) -> np.ndarray:
    shape = list(tensors[0].shape)
    shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
    result = np.empty(shape, tensors[0].dtype)
    offset = 0
    for tensor in tensors:
        for index in np.ndindex(*tensor.shape):
            place = list(index)
            place[dim] += offset
            result[tuple(place)] = tensor[index]
        offset += tensor.shape[dim]
    return result


@pytest.mark.parametrize(("shape", "dim"), CASES)
def test_matches(shape: tuple[int, ...], dim: int) -> None:
    for count in (1, 2, 7):
        tensors = parts(shape, dim, count)
        expected = [in_loops(tensors, dim)]
        assert_op_matches("aten::cat", [tensors], {"dim": dim - len(shape)}, expected=expected, tolerance=0)


def test_constants() -> None:
    x, constant = parts((2, 3, 5, 7), 1, 2)
    for tensors in ([x, Const(constant)], [Const(constant), x]):
        assert_op_matches("aten::cat", [tensors], {"dim": 1})


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int32", "int64", "bool"])
def test_dtypes(dtype: str) -> None:
    tensors = [np.arange(6).reshape(2, 3).astype(dtype), np.arange(4).reshape(2, 2).astype(dtype)]
    assert_op_matches(
        "aten::cat", [tensors], {"dim": 1}, targets=["onnx", "tflite"], opsets=[7, NEWEST_OPSET]
    )


@pytest.mark.parametrize(
    ("types", "dim"),
    [
        ([("float32", (2, 3)), ("float32", (2, 3, 1))], 1),
        ([("float32", (2, 3)), ("float32", (3, 3))], 1),
        ([("float32", (2, 3)), ("int32", (2, 3))], 0),
    ],
)
def test_type_rule_refuses(types: list[tuple[str, tuple[int, ...]]], dim: int) -> None:
    with pytest.raises(SchemaError, match="cannot join"):
        cat.infer([[TensorType(np.dtype(dtype), shape) for dtype, shape in types]], {"dim": dim})
