"""Reductions over axes: every target, and the kernels against loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.symbolics.ops.harness import assert_op_matches, normal, reference
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.reductions.reduce import REDUCE

FOLDS: dict[str, Callable[[list[float]], float]] = {
    "mean": lambda values: math.fsum(values) / len(values),
    "sum": math.fsum,
    "amax": max,
    "amin": min,
}
AXES = [[0], [1], [2], [3], [2, 3], [1, 2], [0, 3], [1, 3], [0, 2, 3], [1, 2, 3], [0, 1, 2]]


def in_loops(name: str, x: np.ndarray, dim: list[int] | None, keepdim: bool) -> np.ndarray:
    axes = {axis % x.ndim for axis in dim or range(x.ndim)}
    groups: dict[tuple[int, ...], list[float]] = {}
    for index in np.ndindex(*x.shape):
        kept = tuple(0 if axis in axes else place for axis, place in enumerate(index))
        groups.setdefault(kept, []).append(float(x[index]))
    shape = [1 if axis in axes else extent for axis, extent in enumerate(x.shape)]
    result = np.array([FOLDS[name](groups[index]) for index in np.ndindex(*shape)], x.dtype)
    return result.reshape([shape[axis] for axis in range(x.ndim) if keepdim or axis not in axes])


def check(name: str, x: np.ndarray, dim: list[int] | None, keepdim: bool, **options: Any) -> None:
    expected = in_loops(name, x, dim, keepdim)
    assert_op_matches(f"aten::{name}", [x], {"dim": dim, "keepdim": keepdim}, expected=[expected], **options)


@pytest.mark.parametrize("keepdim", [False, True], ids=["drop", "keep"])
@pytest.mark.parametrize("dim", AXES, ids=str)
@pytest.mark.parametrize("name", FOLDS)
def test_matches(name: str, dim: list[int], keepdim: bool) -> None:
    check(name, normal(0, 2, 3, 5, 7) + 0.5, dim, keepdim)


@pytest.mark.parametrize("dim", [None, [], [0, 1, 2, 3]], ids=str)
@pytest.mark.parametrize("name", FOLDS)
def test_all_axes(name: str, dim: list[int] | None) -> None:
    x = normal(0, 2, 3, 5, 7)
    check(name, x, dim, True)
    check(name, x, dim, False)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data(), name=st.sampled_from(sorted(FOLDS)))
def test_matches_at_any_rank(data: st.DataObject, name: str) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    dim = data.draw(
        st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape) - 1, unique=True)
    )
    check(name, normal(1, *shape), [axis - len(shape) for axis in dim], data.draw(st.booleans()))


@pytest.mark.parametrize(("name", "opsets"), [("sum", [12, 13]), ("mean", [17, 18]), ("amax", [17, 18, 20])])
def test_axes_as_attribute_and_as_input(name: str, opsets: list[int]) -> None:
    check(name, normal(0, 2, 3, 5, 7), [1, 3], False, targets=["onnx"], opsets=opsets)
    check(name, normal(0, 2, 3, 5, 7), None, False, targets=["onnx"], opsets=opsets)


@pytest.mark.parametrize("name", ["sum", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_narrow_integers(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 120, (2, 3, 5)).astype(dtype)  # sums wrap around
    assert_op_matches(f"aten::{name}", [x], {"dim": [1]}, targets=["onnx", "tflite"])


@pytest.mark.parametrize("name", ["sum", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, 3, 5)).astype(dtype)
    check(name, x, [1], False, targets=["onnx", "tflite"])


def test_sum_of_integers_keeps_their_type() -> None:
    (actual,) = reference("aten::sum", [np.full((2, 3), 100, np.int8)], {"dim": [0]})
    assert actual.dtype == np.int8
    assert actual.tolist() == [-56] * 3


@pytest.mark.parametrize(
    ("dim", "message"), [([4], "out of range for rank 4"), ([1, -3], "names an axis twice")]
)
def test_type_rule_refuses(dim: list[int], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        REDUCE["mean"].infer([TensorType(np.dtype(np.float32), (2, 3, 5, 7))], {"dim": dim, "keepdim": False})


@pytest.mark.parametrize(
    ("dim", "keepdim", "kind"),
    [
        ([2, 3], False, "any"),
        ([1], False, "any"),
        ([1, 2], False, "any"),
        ([0, 2, 3], False, "any"),
        ([2], False, "source"),
        ([0], False, "source"),
        ([0, 3], False, "source"),
        ([2], True, "any"),
    ],
)
def test_layout_rule(dim: list[int], keepdim: bool, kind: str) -> None:
    x = TensorType(np.dtype(np.float32), (2, 3, 5, 7))
    assert REDUCE["sum"].layout_rule([x], {"dim": dim, "keepdim": keepdim}).kind == kind
