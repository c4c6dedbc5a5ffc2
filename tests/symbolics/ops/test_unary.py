"""Elementwise ops of one argument."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.symbolics.ops.harness import assert_op_matches, normal, reference, refusal
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.symbolics.ops.elementwise.unary import UNARY

POSITIVE = {"log", "sqrt", "rsqrt", "reciprocal"}
SHAPES = {
    "rank_1": (5,),
    "rank_2": (2, 5),
    "rank_3": (2, 3, 5),
    "rank_4": (2, 3, 5, 7),
    "rank_5": (2, 3, 1, 5, 7),
}

SCALARS: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "neg": lambda x: -x,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "floor": math.floor,
    "ceil": math.ceil,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "relu": lambda x: max(x, 0.0),
}


def argument(name: str, shape: tuple[int, ...]) -> np.ndarray:
    x = 3 * normal(0, *shape)
    return np.asarray(np.abs(x) + np.float32(0.25) if name in POSITIVE else x)


@pytest.mark.parametrize("name", SCALARS)
def test_kernel_against_loops(name: str) -> None:
    x = argument(name, (2, 3, 5))
    expected = [SCALARS[name](value) for value in x.reshape(-1).tolist()]
    (actual,) = reference(f"aten::{name}", [x], {})
    assert actual.dtype == x.dtype
    np.testing.assert_allclose(actual.reshape(-1), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", UNARY)
def test_matches(name: str, shape: tuple[int, ...], target: str) -> None:
    assert_op_matches(f"aten::{name}", [argument(name, shape)], targets=[target])


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", UNARY)
def test_rank_0(name: str, target: str) -> None:
    assert_op_matches(f"aten::{name}", [argument(name, ())], targets=[target])


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "abs", "neg"])
def test_large_values(name: str, target: str) -> None:
    x = np.array([[-1e4, -100, -20, -1e-3, 0, 1e-3, 20, 100, 1e4]], np.float32)
    assert_op_matches(f"aten::{name}", [x], targets=[target])


@pytest.mark.parametrize(("name", "of"), [("sigmoid", lambda x: 1), ("silu", lambda x: x)])
def test_results_next_to_0_keep_their_digits(name: str, of: Callable[[float], float]) -> None:
    x = np.array([-1, -10, -17, -30, -80, np.inf, -np.inf, np.nan], np.float32)
    (actual,) = reference(f"aten::{name}", [x], {})
    expected = [of(value) / (1 + math.exp(-value)) for value in x[:5].tolist()]
    np.testing.assert_allclose(actual[:5], expected, rtol=2e-6, atol=0)
    if name == "sigmoid":
        np.testing.assert_array_equal(actual[5:], [1, 0, np.nan])


@pytest.mark.parametrize("name", ["floor", "ceil"])
def test_rounding_in_caffe(name: str) -> None:
    """By a sum that has no place for a fraction."""
    whole = np.array([-3, -1, 0, 1, 2, 1000, -1001, 2**20, -(2**21)], np.float32)
    x = np.stack([whole, np.nextafter(whole, np.inf), np.nextafter(whole, -np.inf), whole + 0.5])
    assert_op_matches(f"aten::{name}", [x], targets=["caffe"], tolerance=0)


@pytest.mark.parametrize("name", ["floor", "ceil"])
def test_chips_of_narrow_numbers_do_not_round(name: str) -> None:
    x = normal(0, 2, 3)
    assert "no layer rounds" in refusal("caffe", f"aten::{name}", [x], version=DIALECTS.index("nnie"))
    assert not refusal("caffe", f"aten::{name}", [x], version=DIALECTS.index("opencv"))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_relu_of_integers(dtype: str) -> None:
    """ONNX Runtime has no Relu of int64."""
    limits = np.iinfo(dtype)
    x = np.array([[-3, 0, 5, limits.max, limits.min]], dtype)
    assert_op_matches("aten::relu", [x], targets=["onnx", "tflite"])
    assert_op_matches("aten::relu", [x[:, :3]], targets=["caffe"])
