"""aten::avg_pool2d: every target, and the kernel against loops."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.symbolics.ops.harness import NEWEST_OPSET, assert_op_matches, normal, op_graph, store_channels_last
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.layers.avg_pool import avg_pool2d
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower

X = (2, 3, 5, 7)

WINDOWS: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": [3, 2], "stride": [1, 1]},
    "stride": {"kernel_size": [2, 3], "stride": [2, 3]},
    "padding": {"kernel_size": [3, 4], "stride": [2, 1], "padding": [1, 2]},
    "padding_is_same": {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]},
    "padding_above_half": {"kernel_size": [3, 2], "stride": [2, 1], "padding": [2, 1]},
    "gaps_between_windows": {"kernel_size": [1, 2], "stride": [4, 5], "padding": [0, 1]},
    "global": {"kernel_size": [5, 7], "stride": [1, 1]},
    "global_and_padding": {"kernel_size": [5, 7], "stride": [5, 7], "padding": [2, 3]},
}


def in_loops(
    x: np.ndarray,
    kernel_size: list[int],
    stride: list[int],
    padding: tuple[int, int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> np.ndarray:
    """As the loops of ATen's CPU kernel."""
    outputs = []
    for i in (0, 1):
        reach = x.shape[2 + i] + 2 * padding[i] - kernel_size[i]
        count = (reach + (stride[i] - 1 if ceil_mode else 0)) // stride[i] + 1
        if ceil_mode and (count - 1) * stride[i] >= x.shape[2 + i] + padding[i]:
            count -= 1
        outputs.append(count)
    result = np.empty((*x.shape[:2], *outputs), x.dtype)
    for n, c, oh, ow in np.ndindex(*result.shape):
        bounds = []
        pool_size = 1
        for i, index in ((0, oh), (1, ow)):
            start = index * stride[i] - padding[i]
            end = min(start + kernel_size[i], x.shape[2 + i] + padding[i])
            pool_size *= end - start
            bounds.append((max(start, 0), min(end, x.shape[2 + i])))
        (top, bottom), (left, right) = bounds
        total = 0.0
        for h, w in product(range(top, bottom), range(left, right)):
            total += float(x[n, c, h, w])
        counted = (bottom - top) * (right - left)
        result[n, c, oh, ow] = total / (divisor_override or (pool_size if count_include_pad else counted))
    return result


def check(x: np.ndarray, attributes: dict[str, Any], **options: Any) -> None:
    assert_op_matches("aten::avg_pool2d", [x], attributes, expected=[in_loops(x, **attributes)], **options)


@pytest.mark.parametrize("count_include_pad", [True, False], ids=["include", "exclude"])
@pytest.mark.parametrize("ceil_mode", [False, True], ids=["floor", "ceil"])
@pytest.mark.parametrize("window", WINDOWS)
def test_matches(window: str, ceil_mode: bool, count_include_pad: bool) -> None:
    modes = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    check(normal(0, *X) + 1, {**WINDOWS[window], **modes})


@pytest.mark.parametrize("divisor", [1, 5, -2])
def test_divisor_override(divisor: int) -> None:
    attributes = {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0], "divisor_override": divisor}
    check(normal(0, *X), attributes)
    check(normal(0, *X), {**attributes, "ceil_mode": True, "count_include_pad": False})


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_matches_for_any_window(data: st.DataObject) -> None:
    pairs = (data.draw(st.lists(st.integers(1, most), min_size=2, max_size=2)) for most in (4, 4, 9))
    kernel, stride, extent = pairs
    attributes = {
        "kernel_size": kernel,
        "stride": stride,
        "padding": [data.draw(st.integers(0, size - 1)) for size in kernel],
        "ceil_mode": data.draw(st.booleans()),
        "count_include_pad": data.draw(st.booleans()),
    }
    x = normal(1, 1, 2, *(max(pair) for pair in zip(extent, kernel, strict=True)))
    check(x, attributes, opsets=[7, NEWEST_OPSET])


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 18, 19, 22, NEWEST_OPSET])
def test_every_form_of_average_pool(opset: int) -> None:
    # ceil_mode is new in 10, dilations in 19, and 22 says what ceil_mode divides by
    for ceil_mode, count_include_pad in product((False, True), repeat=2):
        attributes = {"kernel_size": [2, 3], "stride": [3, 2], "padding": [1, 1], "ceil_mode": ceil_mode}
        check(
            normal(0, *X),
            {**attributes, "count_include_pad": count_include_pad},
            targets=["onnx"],
            opsets=[opset],
        )


@pytest.mark.parametrize(
    ("target", "version", "attributes", "expected"),
    [
        ("onnx", 7, WINDOWS["global"], ["GlobalAveragePool"]),
        ("onnx", 7, WINDOWS["padding"], ["AveragePool"]),
        ("tflite", TFLITE_RUNTIME, WINDOWS["global"], ["MEAN"]),
        ("tflite", TFLITE_RUNTIME, WINDOWS["plain"], ["AVERAGE_POOL_2D"]),
        (
            "tflite",
            TFLITE_RUNTIME,
            {**WINDOWS["padding_is_same"], "count_include_pad": False},
            ["AVERAGE_POOL_2D"],
        ),
        ("tflite", TFLITE_RUNTIME, WINDOWS["padding_is_same"], ["PAD", "AVERAGE_POOL_2D"]),
        (
            "tflite",
            TFLITE_RUNTIME,
            {**WINDOWS["padding"], "count_include_pad": False},
            ["PAD", "AVERAGE_POOL_2D", "MUL"],
        ),
        ("caffe", 0, WINDOWS["padding_is_same"], ["Pooling"]),
        (
            "caffe",
            0,
            {**WINDOWS["padding_is_same"], "count_include_pad": False},
            ["Pooling", "Reshape", "Scale", "Reshape"],
        ),
    ],
)
def test_operators(target: str, version: int, attributes: dict[str, Any], expected: list[str]) -> None:
    graph = op_graph("aten::avg_pool2d", [normal(0, *X)], attributes)
    if target == "tflite":
        store_channels_last(graph)
    operators = lower(graph, catalogue(), target, version).graph.operators
    assert [operator.type for operator in operators] == expected


def test_divisor_must_not_be_zero() -> None:
    with pytest.raises(SchemaError, match="divisor_override: 0 is not an integer other than zero"):
        avg_pool2d.bind([normal(0, *X)], {"kernel_size": 2, "stride": 2, "divisor_override": 0})
