"""aten::conv2d: every target, and the kernel against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.symbolics.ops.harness import (
    Const,
    assert_op_matches,
    normal,
    op_graph,
    prepared,
    reference,
    refusal,
    store_channels_last,
)
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower

# id: (x, weight, has a bias, attributes); no two axes are alike
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]] = {
    "plain": ((2, 3, 5, 7), (4, 3, 3, 2), True, {}),
    "no_bias": ((2, 3, 5, 7), (4, 3, 3, 2), False, {}),
    "pointwise": ((2, 3, 5, 7), (4, 3, 1, 1), True, {}),
    "stride": ((1, 3, 7, 10), (2, 3, 2, 3), True, {"stride": [2, 3]}),
    "padding": ((1, 3, 5, 7), (2, 3, 3, 5), True, {"padding": [2, 1]}),
    "padding_of_one_axis": ((1, 3, 5, 7), (2, 3, 3, 2), True, {"padding": [0, 1]}),
    "padding_is_same": ((1, 3, 5, 7), (2, 3, 3, 5), True, {"padding": [1, 2]}),
    "padding_is_same_strided": ((1, 3, 5, 7), (2, 3, 3, 3), True, {"padding": [1, 1], "stride": [2, 2]}),
    "padding_is_not_same_strided": (
        (1, 3, 6, 8),
        (2, 3, 3, 3),
        True,
        {"padding": [1, 1], "stride": [2, 2]},
    ),
    "padding_is_same_of_one_axis": ((1, 3, 5, 8), (2, 3, 3, 3), True, {"padding": [1, 1], "stride": [2, 2]}),
    # runtimes before LiteRT 2.2 take less than no padding, of the first axis here, for very much
    "padding_is_same_but_negative": (
        (1, 3, 6, 5),
        (2, 3, 1, 3),
        True,
        {"padding": [0, 1], "stride": [2, 1]},
    ),
    "padding_above_kernel": ((1, 2, 3, 4), (3, 2, 1, 2), True, {"padding": [3, 2]}),
    "dilation": ((1, 3, 9, 11), (2, 3, 3, 2), True, {"dilation": [2, 3]}),
    "dilation_padding": ((1, 3, 9, 11), (2, 3, 3, 3), True, {"dilation": [2, 3], "padding": [2, 3]}),
    "dilation_stride": ((1, 3, 9, 11), (2, 3, 3, 2), True, {"dilation": [3, 2], "stride": [2, 1]}),
    "groups": ((2, 6, 5, 7), (9, 2, 3, 2), True, {"groups": 3}),
    "groups_stride_padding": (
        (2, 6, 8, 7),
        (4, 3, 3, 2),
        False,
        {"groups": 2, "stride": [2, 1], "padding": [1, 0]},
    ),
    "depthwise": ((2, 3, 5, 7), (3, 1, 3, 2), True, {"groups": 3}),
    "depthwise_multiplier": ((2, 3, 5, 7), (6, 1, 3, 2), True, {"groups": 3, "padding": [1, 1]}),
    "depthwise_dilation": ((1, 3, 9, 11), (3, 1, 3, 2), False, {"groups": 3, "dilation": [2, 3]}),
    "depthwise_stride": (
        (1, 3, 9, 11),
        (6, 1, 3, 2),
        True,
        {"groups": 3, "stride": [2, 3], "padding": [1, 0]},
    ),
    "one_channel": ((2, 1, 5, 7), (3, 1, 2, 3), True, {}),
    "whole_image": ((2, 3, 5, 7), (4, 3, 5, 7), True, {}),
    "every_option": (
        (2, 4, 11, 13),
        (6, 2, 3, 2),
        True,
        {"stride": [2, 3], "padding": [2, 1], "dilation": [2, 3], "groups": 2},
    ),
}


def arguments(case: str) -> tuple[list[Any], dict[str, Any]]:
    x, weight, has_bias, attributes = CASES[case]
    bias = Const(normal(2, weight[0])) if has_bias else None
    return [normal(0, *x), Const(normal(1, *weight)), bias], attributes


def loops(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, attributes: dict[str, Any]
) -> np.ndarray:
    """One product at a time, in float64."""
    stride_h, stride_w = attributes.get("stride", [1, 1])
    pad_h, pad_w = attributes.get("padding", [0, 0])
    dilation_h, dilation_w = attributes.get("dilation", [1, 1])
    groups = attributes.get("groups", 1)
    (batch, channels, height, width), (out_channels, per_group, kernel_h, kernel_w) = x.shape, weight.shape
    out_h = (height + 2 * pad_h - dilation_h * (kernel_h - 1) - 1) // stride_h + 1
    out_w = (width + 2 * pad_w - dilation_w * (kernel_w - 1) - 1) // stride_w + 1
    assert per_group * groups == channels
    result = np.zeros((batch, out_channels, out_h, out_w))
    if bias is not None:
        result += bias[:, None, None]
    for n, o, i, j in np.ndindex(result.shape):
        first_channel = o // (out_channels // groups) * per_group
        for c, kh, kw in np.ndindex(per_group, kernel_h, kernel_w):
            row, column = i * stride_h - pad_h + kh * dilation_h, j * stride_w - pad_w + kw * dilation_w
            if 0 <= row < height and 0 <= column < width:
                result[n, o, i, j] += float(x[n, first_channel + c, row, column]) * float(
                    weight[o, c, kh, kw]
                )
    return result


@pytest.mark.parametrize("case", CASES)
def test_kernel_against_loops(case: str) -> None:
    (x, weight, bias), attributes = arguments(case)
    expected = loops(x, weight.array, bias.array if bias else None, attributes)
    (actual,) = reference("aten::conv2d", [x, weight, bias], attributes)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("case", CASES)
def test_matches(case: str, target: str) -> None:
    assert_op_matches("aten::conv2d", *arguments(case), targets=[target])


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("case", ["plain", "no_bias", "groups", "depthwise_multiplier"])
def test_computed_weights(case: str, target: str) -> None:
    (x, weight, bias), attributes = arguments(case)
    bias = bias.array if bias else None
    assert_op_matches("aten::conv2d", [x, weight.array, bias], attributes, targets=[target])


def test_caffe_refuses_computed_weights() -> None:
    x, weight = normal(0, 2, 3, 5, 7), normal(1, 4, 3, 3, 2)
    assert "they cannot be computed" in refusal("caffe", "aten::conv2d", [x, weight, None])


def test_tflite_needs_no_pad_where_same_padding_fits() -> None:
    made = {}
    cases = ("padding_is_same", "padding_is_same_strided", "padding_is_not_same_strided")
    for case in (*cases, "padding_is_same_but_negative"):
        graph = prepared("tflite", TFLITE_RUNTIME, "aten::conv2d", *arguments(case))
        store_channels_last(graph)
        lowered = lower(graph, catalogue(), "tflite", TFLITE_RUNTIME).graph
        made[case] = [operator.type for operator in lowered.operators]
    assert made == {
        "padding_is_same": ["CONV_2D"],
        "padding_is_same_strided": ["CONV_2D"],
        "padding_is_not_same_strided": ["PAD", "CONV_2D"],
        "padding_is_same_but_negative": ["PAD", "CONV_2D"],
    }


@pytest.mark.parametrize(
    ("weight", "attributes", "message"),
    [
        ((4, 2, 3, 2), {}, "does not fit 3 channels in 1 groups"),
        ((4, 1, 3, 2), {"groups": 3}, "does not fit 3 channels in 3 groups"),
        ((4, 3, 6, 2), {}, "a window of 6 is larger than 5"),
        ((4, 3, 3), {}, "must have rank 4"),
    ],
    ids=["channels", "groups", "window", "rank"],
)
def test_schema_refuses(weight: tuple[int, ...], attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        op_graph("aten::conv2d", [normal(0, 2, 3, 5, 7), Const(normal(1, *weight)), None], attributes)
