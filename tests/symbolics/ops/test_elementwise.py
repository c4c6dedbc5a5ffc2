"""What is special of elementwise ops: digits, signed zeros, infinities, NaN, halves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.symbolics.ops.harness import Const, assert_op_matches, reference, refusal, run_op
from tmconvert.ir.emitter import EagerEmitter
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.registry import catalogue

LINE = np.linspace(-12, 12, 4001)


@pytest.mark.parametrize(("name", "function"), [("erf", math.erf), ("erfc", math.erfc)])
def test_error_functions_have_all_digits(name: str, function: object) -> None:
    ours = reference(f"aten::{name}", [LINE], {})[0]
    np.testing.assert_allclose(ours, [function(x) for x in LINE], rtol=1e-12)  # type: ignore[operator]


def test_erf_of_small_and_special_numbers() -> None:
    x = np.array([1e-300, -1e-9, 0.0, np.inf, -np.inf, np.nan, 1e300])
    np.testing.assert_allclose(reference("aten::erf", [x], {})[0], [math.erf(each) for each in x], rtol=1e-12)


def test_erfinv_inverts_erf() -> None:
    y = np.array([-1 + 1e-12, -0.999, -0.3, 0.0, 1e-9, 0.5, 0.9999999, 1 - 1e-15])
    x = reference("aten::erfinv", [y], {})[0]
    np.testing.assert_allclose([math.erf(each) for each in x], y, rtol=1e-12)
    ends = reference("aten::erfinv", [np.array([1.0, -1.0, 1.5, np.nan])], {})[0]
    np.testing.assert_array_equal(ends, [np.inf, -np.inf, np.nan, np.nan])


@pytest.mark.parametrize("name", ["erfc", "expm1", "log1p", "asinh", "sinh", "atanh"])
def test_decompositions_keep_what_is_small(name: str) -> None:
    x = np.float32([1e-6, -3e-5, 1e-3, 0.02]) if name != "erfc" else np.float32([0.5, 2, 4, 6])
    op = catalogue()[f"aten::{name}"]
    assert op.decomposition is not None
    made = op.decomposition(EagerEmitter(catalogue()), x=x)
    np.testing.assert_allclose(made, reference(f"aten::{name}", [x], {})[0], rtol=1e-5)


@pytest.mark.parametrize("opset", [7, 8, 9, 17])
def test_where_leaves_out_what_is_not_chosen(opset: int) -> None:
    x = np.float32([[1, -2, np.nan], [np.inf, 0, -0.0]])
    chosen = run_op("onnx", opset, "aten::where", [x > 0, x, Const(np.float32([[9], [np.inf]]))], {})[0]
    np.testing.assert_array_equal(chosen, np.where(x > 0, x, np.float32([[9], [np.inf]])))


@pytest.mark.parametrize("opset", [7, 9, 17])
def test_atan2_knows_signed_zeros_and_infinities(opset: int) -> None:
    values = np.float32([0.0, -0.0, 1, -2, np.inf, -np.inf])
    angles = run_op("onnx", opset, "aten::atan2", [values[:, None], values], {})[0]
    np.testing.assert_allclose(angles, np.arctan2(values[:, None], values), rtol=1e-6, atol=1e-37)
    np.testing.assert_array_equal(np.signbit(angles), np.signbit(np.arctan2(values[:, None], values)))


@pytest.mark.parametrize("opset", [7, 11])
def test_two_ways_to_round_halves(opset: int) -> None:
    x = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -7.25, 8388607.5])
    even = run_op("onnx", opset, "aten::round", [x], {})[0]
    away = run_op("onnx", opset, "tm::round_half_away", [x], {})[0]
    np.testing.assert_array_equal(even[:6], [0, 2, 2, 0, -2, -2])
    np.testing.assert_array_equal(away, [1, 2, 3, -1, -2, -3, 0, -7, 8388608])


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int64"])
@pytest.mark.parametrize("opset", [9, 13])
def test_remainders_of_integers(opset: int, dtype: str) -> None:
    low = 0 if dtype == "uint8" else -9
    x, other = np.arange(low, 10).astype(dtype)[:, None], np.array([2, 3, 7], dtype)
    if dtype != "uint8":
        other = np.concatenate([other, -other])
    for name in ("fmod", "remainder", "floor_divide"):
        assert_op_matches(f"aten::{name}", [x, other], targets=("onnx",), opsets=[opset])


def test_equality_of_floats_before_opset_11() -> None:
    x = np.float32([1, np.nan, np.inf, -np.inf, 0.0, 3])
    for name in ("eq", "ne", "le", "ge"):
        assert_op_matches(f"aten::{name}", [x[:, None], np.append(x, np.float32(-0.0))], targets=("onnx",))


@pytest.mark.parametrize("opset", [7, 11])
def test_a_clamp_on_one_side_leaves_infinities(opset: int) -> None:
    x = np.float32([-np.inf, -1, 2, np.inf])
    below = run_op("onnx", opset, "aten::clamp", [x], {"max": 1})[0]
    np.testing.assert_array_equal(below, np.float32([-np.inf, -1, 1, 1]))
    np.testing.assert_array_equal(run_op("onnx", opset, "aten::clamp", [x], {"min": 0})[0], x.clip(0))


def test_bits_before_opset_12_name_the_opset() -> None:
    x = np.int32([1, 2])
    assert "opset 11" in refusal("onnx", "aten::bitwise_and", [x, x], version=11)


def test_formulas_call_ops() -> None:
    g = EagerEmitter(catalogue())
    x = Term(g, np.float32([-2, 3]))
    np.testing.assert_array_equal((1 - x * 2 / 4).value, np.float32([2, -0.5]))
    np.testing.assert_array_equal(((x > 0) & ~(x >= 4)).where(x, -1).value, np.float32([-1, 3]))
    np.testing.assert_array_equal((x.lt(0) | (x <= 3)).where(7, x).value, np.float32([7, 7]))
    assert (x > 0).to("int8").dtype == np.int8
    with pytest.raises(AttributeError):
        x.__deepcopy__  # noqa: B018
