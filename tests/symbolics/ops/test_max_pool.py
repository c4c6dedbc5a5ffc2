"""aten::max_pool2d: every target, and the kernel against loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.symbolics.ops.harness import NEWEST_OPSET, assert_op_matches, normal, reference, refusal
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.layers.max_pool import max_pool2d

X = (2, 3, 5, 7)

# id: (shape of x, attributes)
CASES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": (X, {"kernel_size": [3, 2], "stride": [1, 1]}),
    "stride": (X, {"kernel_size": [2, 3], "stride": [2, 3]}),
    "floor_drops_elements": (X, {"kernel_size": [2, 2], "stride": [2, 2]}),
    "ceil_is_same": (X, {"kernel_size": [2, 2], "stride": [2, 2], "ceil_mode": True}),
    "ceil_reaches_beyond_the_end": (X, {"kernel_size": [2, 3], "stride": [2, 3], "ceil_mode": True}),
    "padding": (X, {"kernel_size": [3, 4], "stride": [2, 1], "padding": [1, 2]}),
    "padding_is_same": (X, {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]}),
    "padding_is_not_same": ((1, 2, 6, 8), {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]}),
    "padding_above_half": (X, {"kernel_size": [3, 2], "stride": [2, 1], "padding": [2, 1]}),
    "ceil_and_padding": (X, {"kernel_size": [2, 3], "stride": [3, 2], "padding": [1, 0], "ceil_mode": True}),
    "last_window_in_the_padding": (
        (1, 2, 3, 4),
        {"kernel_size": [2, 2], "stride": [3, 3], "padding": [1, 1], "ceil_mode": True},
    ),
    "gaps_between_windows": ((1, 2, 3, 7), {"kernel_size": [2, 1], "stride": [3, 4], "padding": [1, 0]}),
    "whole": (X, {"kernel_size": [5, 7], "stride": [5, 7]}),
}


def in_loops(x: np.ndarray, attributes: dict[str, Any]) -> np.ndarray:
    """Window by window, element by element; padding is left out."""
    padding, dilation = attributes.get("padding", [0, 0]), attributes.get("dilation", [1, 1])
    ceil = attributes.get("ceil_mode", False)
    height, width = (
        indices(
            x.shape[2 + i],
            attributes["kernel_size"][i],
            attributes["stride"][i],
            padding[i],
            dilation[i],
            ceil,
        )
        for i in (0, 1)
    )
    result = np.empty((*x.shape[:2], len(height), len(width)), x.dtype)
    for n, c, i, j in np.ndindex(*result.shape):
        result[n, c, i, j] = max(float(x[n, c, h, w]) for h in height[i] for w in width[j])
    return result


def indices(
    extent: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> list[list[int]]:
    """The elements of each window along one axis."""
    places = (extent + 2 * padding - dilation * (kernel - 1) - 1) / stride
    windows = []
    for index in range((math.ceil(places) if ceil else math.floor(places)) + 1):
        start = index * stride - padding
        if start < extent:
            taps = [start + tap * dilation for tap in range(kernel)]
            windows.append([tap for tap in taps if 0 <= tap < extent])
    return windows


@pytest.mark.parametrize("name", CASES)
def test_matches(name: str) -> None:
    shape, attributes = CASES[name]
    x = normal(0, *shape) - 2  # mostly negative: padding with zeros would show
    assert_op_matches("aten::max_pool2d", [x], attributes, expected=[in_loops(x, attributes)])


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_matches_for_any_window(data: st.DataObject) -> None:
    kernel, stride, extent = (
        data.draw(st.lists(st.integers(1, most), min_size=2, max_size=2)) for most in (4, 4, 9)
    )
    padding = [data.draw(st.integers(0, size - 1)) for size in kernel]
    x = normal(1, 1, 2, *(max(e, k) for e, k in zip(extent, kernel, strict=True)))
    attributes = {
        "kernel_size": kernel,
        "stride": stride,
        "padding": padding,
        "ceil_mode": data.draw(st.booleans()),
    }
    assert_op_matches(
        "aten::max_pool2d", [x], attributes, expected=[in_loops(x, attributes)], opsets=[7, NEWEST_OPSET]
    )


def test_dilation() -> None:
    x = normal(0, 2, 3, 9, 11)
    attributes = {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0], "dilation": [2, 3]}
    for ceil_mode in (False, True):
        given_ = {**attributes, "ceil_mode": ceil_mode}
        assert_op_matches(
            "aten::max_pool2d",
            [x],
            given_,
            expected=[in_loops(x, given_)],
            targets=["onnx", "tflite"],
            opsets=[10, 12, NEWEST_OPSET],
        )


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes_on_onnx(dtype: str) -> None:
    x = normal(0, *X, dtype=dtype)
    opsets = [8, 12, NEWEST_OPSET] if dtype == "float64" else [12, NEWEST_OPSET]
    attributes = {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0]}
    assert_op_matches("aten::max_pool2d", [x], attributes, targets=["onnx"], opsets=opsets)


@pytest.mark.parametrize(
    ("target", "version", "reason"),
    [
        ("onnx", 9, "ONNX MaxPool supports dilations from opset 10 on"),
        ("caffe", None, "Caffe's Pooling does not support dilation"),
    ],
)
def test_refuses_dilation(target: str, version: int | None, reason: str) -> None:
    attributes = {"kernel_size": [2, 2], "stride": [1, 1], "dilation": [2, 1]}
    assert refusal(target, "aten::max_pool2d", [normal(0, *X)], attributes, version=version) == reason


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"kernel_size": [2, 2], "padding": [2, 0]}, "smaller than the window"),
        ({"kernel_size": [2, 2], "stride": [0, 1]}, "must be positive"),
        ({"kernel_size": [6, 2]}, "a window of 6 is larger than 5"),
    ],
)
def test_type_rule_refuses(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        infer(X, {"stride": [1, 1], **attributes})


def test_rank_must_be_4() -> None:
    with pytest.raises(SchemaError, match="must have rank 4"):
        infer((3, 5, 7), {"kernel_size": 2, "stride": 2})


def infer(shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    type_ = TensorType(np.dtype(np.float32), shape)
    max_pool2d.infer(*max_pool2d.bind([type_], attributes))


def test_kernel_keeps_infinities() -> None:
    x = np.array([[[[-np.inf, -np.inf], [-np.inf, 1]]]], np.float32)
    (actual,) = reference("aten::max_pool2d", [x], {"kernel_size": 1, "stride": 1})
    assert np.array_equal(actual, x)
