"""Elementwise arithmetic of two tensors: every kind of broadcasting on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.pairwise import pairwise
from tests.symbolics.ops.harness import (
    NEWEST_OPSET,
    Const,
    assert_op_matches,
    normal,
    op_graph,
    reference,
    refusal,
    run_lowered,
)
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import lower

NAMES = ["add", "sub", "mul", "div", "maximum", "minimum"]
X = (2, 3, 5, 7)

# id: shapes of both operands
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "equal": (X, X),
    "scalar": (X, ()),
    "one_element": (X, (1,)),
    "channel": (X, (3, 1, 1)),
    "channel_rank_4": (X, (1, 3, 1, 1)),
    "column": (X, (5, 1)),
    "row": (X, (7,)),
    "image": (X, (5, 7)),
    "batch": (X, (2, 1, 1, 1)),
    "batch_and_row": (X, (2, 1, 1, 7)),
    "batch_and_column": (X, (2, 1, 5, 1)),
    "channel_and_row": (X, (1, 3, 1, 7)),
    "batch_and_channel": (X, (2, 3, 1, 1)),
    "first_is_lower": ((3, 1, 1), X),
    "first_is_scalar": ((), X),
    "first_is_full": (X, (1, 3, 5, 7)),
    "both_ways": ((2, 1, 5, 7), (3, 1, 7)),
    "both_ways_rank_4": ((2, 3, 1, 7), (2, 1, 5, 7)),
    "rank_1": ((5,), (5,)),
    "rank_1_and_scalar": ((5,), ()),
    "rank_2": ((2, 5), (5,)),
    "rank_3": ((2, 3, 5), (3, 1)),
    "rank_5": ((2, 3, 1, 5, 7), (3, 2, 1, 1)),
    "rank_0": ((), ()),
}
KINDS = ["both_computed", "second_constant", "first_constant"]


def operands(name: str, case: str, kind: str) -> list[Any]:
    x, other = (normal(seed, *shape) for seed, shape in enumerate(SHAPES[case]))
    if name == "div":  # away from zero, where the quotient would have no bound
        other = np.asarray(np.copysign(np.abs(other) + np.float32(0.5), other))
    if kind == "second_constant":
        return [x, Const(other)]
    return [Const(x), other] if kind == "first_constant" else [x, other]


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize(("name", "case", "kind"), pairwise(NAMES, SHAPES, KINDS))
def test_matches(name: str, case: str, kind: str, target: str) -> None:
    assert_op_matches(f"aten::{name}", operands(name, case, kind), targets=[target])


@pytest.mark.parametrize(("name", "case", "kind"), pairwise(NAMES, sorted({*SHAPES} - {"rank_0"}), KINDS))
def test_caffe(name: str, case: str, kind: str) -> None:
    assert_op_matches(f"aten::{name}", operands(name, case, kind), targets=["caffe"])


INTEGERS = ["int32", "int64", "int8", "uint8", "int16"]


def small_numbers(dtype: str) -> list[Any]:
    return [np.random.default_rng(seed).integers(1, 9, (2, 3, 5)).astype(dtype) for seed in (0, 1)]


@pytest.mark.parametrize("dtype", ["float16", "float64", *INTEGERS])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum"])
def test_onnx_takes_every_dtype(name: str, dtype: str) -> None:
    """Except int64 where only floats are compared, which do not hold it."""
    args = small_numbers(dtype)
    opsets = [7, 8, 11, 12, 13, 14, NEWEST_OPSET]
    if name in ("maximum", "minimum") and dtype == "int64":
        for opset in (7, 8, 11):
            assert "does not support int64 at opset" in refusal("onnx", f"aten::{name}", args, version=opset)
        opsets = [12, 13, 14, NEWEST_OPSET]
    if name in ("maximum", "minimum") and dtype == "float64":
        opsets.remove(7)  # valid; ONNX Runtime has no kernel
    assert_op_matches(f"aten::{name}", args, targets=["onnx"], opsets=opsets)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_int32_is_compared_to_the_last_bit(name: str) -> None:
    a = np.array([2**31 - 1, -(2**31), 2**24 + 1, -(2**31), 5], np.int32)
    b = np.array([-(2**31), 2**31 - 1, 2**24, -(2**31) + 1, 5], np.int32)
    assert_op_matches(f"aten::{name}", [a, b], targets=["onnx"], opsets=[7, 8, 11, 12], tolerance=0)


@pytest.mark.parametrize("dtype", ["float64", *INTEGERS])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum"])
def test_tflite_is_right_or_refuses_a_dtype(name: str, dtype: str) -> None:
    args = small_numbers(dtype)
    reason = refusal("tflite", f"aten::{name}", args)
    if reason:
        assert f"does not support {dtype}" in reason
        assert dtype not in ("int32", "int64")
    else:
        assert_op_matches(f"aten::{name}", args, targets=["tflite"])


@pytest.mark.parametrize("name", ["square", "sqrt", "reciprocal", "rsqrt"])
def test_opencv_does_not_pull_a_factor_into_a_power(name: str) -> None:
    graph = op_graph(f"aten::{name}", [np.abs(normal(0, 2, 3, 5, 7)) + np.float32(0.5)], {})
    emitter = GraphEmitter(graph, catalogue(), name="z")
    scaled = emitter.call("aten::mul", graph.outputs[0], emitter.constant(np.float32(3)))
    graph.set_result((emitter.call("aten::neg", scaled),))
    x = np.abs(normal(0, 2, 3, 5, 7)) + np.float32(0.5)
    (actual,) = run_lowered(lower(graph, catalogue(), "caffe", 0), {"x": x})
    (power,) = reference(f"aten::{name}", [x], {})
    np.testing.assert_allclose(actual, -3 * power, rtol=1e-5)


def test_floor_divide_folds() -> None:
    graph = op_graph("aten::floor_divide", [Const(np.array([7, -7])), Const(np.array(2))], {})
    (node,) = graph.outputs
    assert node.expr.value.tolist() == [3, -4]


def test_schema_refuses_mixed_dtypes() -> None:
    with pytest.raises(SchemaError, match=r"different dtypes: f32\[2\], f64\[2\]"):
        op_graph("aten::add", [normal(0, 2), normal(1, 2, dtype="float64")], {})


def test_schema_refuses_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(SchemaError, match="shape mismatch"):
        op_graph("aten::add", [normal(0, 2, 3), normal(1, 2, 5)], {})


def test_a_constant_divisor_may_hold_a_zero() -> None:
    x, zero = np.array([[1.0, -2.0, 3.0]], np.float32), np.array([[2.0, 0.0, 0.0]], np.float32)
    assert_op_matches("aten::div", [x, Const(zero)], targets=("onnx", "caffe"))
