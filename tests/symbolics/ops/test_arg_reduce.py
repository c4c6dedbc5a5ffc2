"""aten::argmax and aten::argmin: every target, and the kernels against loops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.symbolics.ops.harness import NEWEST_OPSET, assert_op_matches, normal
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.reductions.arg_reduce import argmax

NAMES = ["argmax", "argmin"]
SHAPES = [(5,), (3, 5), (2, 3, 5), (2, 3, 5, 7), (2, 3, 1, 5, 7)]


def in_loops(name: str, x: np.ndarray, dim: int, keepdim: bool) -> np.ndarray:
    """The place of the first extreme element."""
    rows = np.moveaxis(x, dim, -1)
    result = np.empty(rows.shape[:-1], np.int32)
    for index in np.ndindex(*rows.shape[:-1]):
        row = rows[index].tolist()
        result[index] = row.index(max(row) if name == "argmax" else min(row))
    return np.expand_dims(result, dim) if keepdim else result


@pytest.mark.parametrize("keepdim", [False, True], ids=["drop", "keep"])
@pytest.mark.parametrize(("shape", "dim"), [(shape, dim) for shape in SHAPES for dim in range(len(shape))])
@pytest.mark.parametrize("name", NAMES)
def test_matches(name: str, shape: tuple[int, ...], dim: int, keepdim: bool) -> None:
    x = normal(0, *shape)
    attributes = {"dim": dim - len(shape), "keepdim": keepdim}
    expected = [in_loops(name, x, dim, keepdim)]
    assert_op_matches(
        f"aten::{name}", [x], attributes, expected=expected, opsets=[7, 11, 12, 13, NEWEST_OPSET]
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_first_of_equal_elements_wins(name: str) -> None:
    x = np.random.default_rng(0).integers(0, 3, (4, 9, 5)).astype(np.float32)
    assert_op_matches(f"aten::{name}", [x], {"dim": 1}, expected=[in_loops(name, x, 1, False)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(-99, 99, (2, 9, 5)).astype(dtype)
    assert_op_matches(f"aten::{name}", [x], {"dim": 1}, expected=[in_loops(name, x, 1, False)])


def test_axis_must_have_elements() -> None:
    with pytest.raises(SchemaError, match="has no elements: its size is 0"):
        argmax.infer([TensorType(np.dtype(np.float32), (2, 0))], {"dim": 1, "keepdim": False})


@pytest.mark.parametrize(
    ("dim", "keepdim", "kind"),
    [(1, False, "any"), (-3, False, "any"), (2, False, "source"), (3, True, "any")],
)
def test_layout_rule(dim: int, keepdim: bool, kind: str) -> None:
    x = TensorType(np.dtype(np.float32), (2, 3, 5, 7))
    assert argmax.layout_rule([x], {"dim": dim, "keepdim": keepdim}).kind == kind


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_of_equal_elements_caffe_takes_the_first(name: str) -> None:
    """Its own ArgMax takes the last."""
    x = np.array([[1, 3, 3, 0, 0], [2, 2, 2, 2, 2]], np.float32)
    assert_op_matches(f"aten::{name}", [x], {"dim": 1}, targets=["caffe"])
    assert_op_matches(f"aten::{name}", [x.T.copy()], {"dim": 0, "keepdim": True}, targets=["caffe"])
