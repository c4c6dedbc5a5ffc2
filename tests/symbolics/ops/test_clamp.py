"""aten::clamp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.symbolics.ops.harness import NEWEST_OPSET, assert_op_matches, normal, op_graph, refusal
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.elementwise.clamp import clamp
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower

BOUNDS: list[tuple[Any, Any]] = [
    (-0.5, 0.75),
    (0.25, 6),
    (-3, -1.5),
    (0, None),
    (None, 0),
    (0.5, None),
    (None, -0.5),
    (0, 6),
    (-1, 1),
    (0, 1),
    (1, -1),
]


def in_loops(x: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    values = x.reshape(-1).tolist()
    if low is not None:
        values = [max(value, low) for value in values]
    if high is not None:
        values = [min(value, high) for value in values]
    return np.array(values, x.dtype).reshape(x.shape)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 5), (2, 3, 5, 7), (2, 3, 1, 5, 7)], ids=str)
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_matches(low: Any, high: Any, shape: tuple[int, ...]) -> None:
    x = 3 * normal(0, *shape)
    assert_op_matches(
        "aten::clamp",
        [x],
        {"min": low, "max": high},
        expected=[in_loops(x, low, high)],
        opsets=[7, 10, 11, 12, NEWEST_OPSET],
    )


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_large_bounds_cost_no_precision(target: str) -> None:
    x = np.array([[-3e38, -1, 1e-30, 0.1, 7, 3e38]], np.float32)
    for bounds in ({"min": -1e30, "max": 1e30}, {"min": 1e-12}, {"max": 1e20}):
        assert_op_matches("aten::clamp", [x], bounds, targets=[target], tolerance=0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, None, ["RELU"]),
        (0.0, 6.0, ["RELU6"]),
        (-1, 1, ["RELU_N1_TO_1"]),
        (0, 1, ["RELU_0_TO_1"]),
        (0, 2, ["MAXIMUM", "MINIMUM"]),
        (None, 6, ["MINIMUM"]),
    ],
)
def test_tflite_operators(low: Any, high: Any, expected: list[str]) -> None:
    graph = op_graph("aten::clamp", [normal(0, 2, 3)], {"min": low, "max": high})
    operators = lower(graph, catalogue(), "tflite", TFLITE_RUNTIME).graph.operators
    assert [operator.type for operator in operators] == expected


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8"])
def test_integers(dtype: str) -> None:
    x = np.arange(-9, 9).reshape(3, 6).astype(dtype)
    for low, high in ((-3, 5), (0, 6), (None, 2)):
        assert_op_matches(
            "aten::clamp",
            [x],
            {"min": low, "max": high},
            expected=[in_loops(x, low, high)],
            targets=["onnx", "tflite"],
            opsets=[12, 13, NEWEST_OPSET],
        )


@pytest.mark.parametrize(("low", "high"), [(-3, 2**31 - 2), (None, 7), (5, None), (9, -9)])
def test_int32_is_exact_before_onnx_clips_it(low: int | None, high: int | None) -> None:
    x = np.array([2**31 - 1, -(2**31), 2**24 + 1, 6, 0], np.int32)
    bounds = {"min": low, "max": high}
    assert_op_matches("aten::clamp", [x], bounds, targets=["onnx"], opsets=[7, 10, 11], tolerance=0)


def test_refuses_int64_below_opset_12() -> None:
    reason = refusal("onnx", "aten::clamp", [np.arange(6)], {"min": 1}, version=11)
    assert reason == "ONNX's Clip does not support int64 at opset 11"


@pytest.mark.parametrize(
    ("dtype", "low", "high", "message"),
    [
        ("float32", None, None, "needs min or max"),
        ("float32", float("nan"), None, "are not numbers"),
        ("int32", 0.5, None, "do not have the type"),
        ("uint8", -1, None, "do not have the type"),
        ("int8", None, float("inf"), "do not have the type"),
    ],
)
def test_type_rule_refuses(dtype: str, low: Any, high: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        clamp.infer([TensorType(np.dtype(dtype), (2, 3))], {"min": low, "max": high})
