"""aten::upsample_nearest2d and aten::upsample_bilinear2d: every target, and the kernels against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.symbolics.ops.harness import (
    NEWEST_OPSET,
    assert_op_matches,
    normal,
    op_graph,
    reference,
    refusal,
    store_channels_last,
)
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.sampling.upsample import upsample_bilinear2d, upsample_nearest2d
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower

NEAREST, BILINEAR = "aten::upsample_nearest2d", "aten::upsample_bilinear2d"
X = (2, 3, 5, 7)
SIZES = {
    "integer_factors": [10, 21],
    "even_and_large_factors": [20, 42],
    "one_axis_larger": [15, 7],
    "one_axis_smaller": [5, 3],
    "smaller": [3, 4],
    "larger_and_smaller": [8, 6],
    "fractions": [9, 10],
    "the_same": [5, 7],
    "one_element": [1, 1],
}
EVERY_OPSET = [7, 8, 9, 10, 11, 12, 13, 17, 18, 19, NEWEST_OPSET]


def nearest_in_loops(x: np.ndarray, output_size: list[int]) -> np.ndarray:
    result = np.empty((*x.shape[:2], *output_size), x.dtype)
    ratios = [np.float32(x.shape[2 + i]) / np.float32(output_size[i]) for i in (0, 1)]
    for row, column in np.ndindex(*output_size):
        top = min(int(np.float32(row) * ratios[0]), x.shape[2] - 1)
        left = min(int(np.float32(column) * ratios[1]), x.shape[3] - 1)
        result[:, :, row, column] = x[:, :, top, left]
    return result


def bilinear_in_loops(x: np.ndarray, output_size: list[int], align_corners: bool = False) -> np.ndarray:
    """Weights of all four neighbours of a point, in double precision."""
    result = np.zeros((*x.shape[:2], *output_size), np.float64)
    for index in np.ndindex(*output_size):
        neighbours = []
        for i in (0, 1):
            extent, outputs = x.shape[2 + i], output_size[i]
            if align_corners:
                point = index[i] * (extent - 1) / (outputs - 1) if outputs > 1 else 0.0
            else:
                point = (index[i] + 0.5) * extent / outputs - 0.5
            low = int(np.floor(point))
            inside = [min(max(place, 0), extent - 1) for place in (low, low + 1)]
            neighbours.append(list(zip(inside, (1 - (point - low), point - low), strict=True)))
        for top, weight_h in neighbours[0]:
            for left, weight_w in neighbours[1]:
                result[:, :, index[0], index[1]] += weight_h * weight_w * x[:, :, top, left]
    return result.astype(x.dtype)


def check_nearest(x: np.ndarray, size: list[int], **options: Any) -> None:
    expected = [nearest_in_loops(x, size)]
    assert_op_matches(NEAREST, [x], {"output_size": size}, expected=expected, tolerance=0, **options)


def check_bilinear(x: np.ndarray, size: list[int], align_corners: bool, **options: Any) -> None:
    attributes = {"output_size": size, "align_corners": align_corners}
    expected = [bilinear_in_loops(x, **attributes)]
    assert_op_matches(BILINEAR, [x], attributes, expected=expected, **options)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_nearest(size: list[int]) -> None:
    check_nearest(normal(0, *X), size)


@pytest.mark.parametrize("align_corners", [False, True], ids=["half_pixel", "align_corners"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_bilinear(size: list[int], align_corners: bool) -> None:
    check_bilinear(normal(0, *X), size, align_corners)


@pytest.mark.parametrize("opset", EVERY_OPSET)
@pytest.mark.parametrize("size", [[10, 21], [3, 4], [8, 6]], ids=str)
def test_every_form_of_onnx(size: list[int], opset: int) -> None:
    check_nearest(normal(0, *X), size, targets=["onnx"], opsets=[opset])
    for align_corners in (False, True):
        check_bilinear(normal(0, *X), size, align_corners, targets=["onnx"], opsets=[opset])


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_sizes(data: st.DataObject) -> None:
    extents = data.draw(st.lists(st.integers(1, 30), min_size=2, max_size=2))
    size = [
        data.draw(st.one_of(st.integers(1, 30), st.integers(1, 4).map(lambda factor, n=extent: factor * n)))
        for extent in extents
    ]
    x = normal(1, 1, data.draw(st.integers(1, 3)), *extents)
    check_nearest(x, size, opsets=[9, 10, 11])
    check_bilinear(x, size, data.draw(st.booleans()), opsets=[7, 11, NEWEST_OPSET])


@pytest.mark.parametrize(
    ("extent", "outputs", "sources"),
    [
        (5, 7, [0, 0, 1, 2, 2, 3, 4]),
        (7, 5, [0, 1, 2, 4, 5]),
        (14, 2, [0, 7]),
        (14, 4, [0, 3, 7, 10]),
        (20, 12, [0, 1, 3, 5, 6, 8, 10, 11, 13, 15, 16, 18]),
        (25, 15, [0, 1, 3, 5, 6, 8, 10, 11, 13, 15, 16, 18, 20, 21, 23]),
    ],
)
def test_nearest_rounds_as_torch_does(extent: int, outputs: int, sources: list[int]) -> None:
    """The sources are what torch 2.13 took."""
    x = normal(0, 2, 3, extent, extent)
    expected = x[:, :, sources][:, :, :, sources]
    attributes = {"output_size": [outputs, outputs]}
    assert_op_matches(NEAREST, [x], attributes, expected=[expected], tolerance=0)


@pytest.mark.parametrize(
    ("outputs", "align_corners", "expected"),
    [
        (8, False, [0, 4.375, 10.625, 16.875, 23.125, 29.375, 35.625, 40]),
        (3, False, [10 / 3, 20, 110 / 3]),
        (9, True, [0, 5, 10, 15, 20, 25, 30, 35, 40]),
        (4, True, [0, 40 / 3, 80 / 3, 40]),
    ],
)
def test_bilinear_is_megengine_s(outputs: int, align_corners: bool, expected: list[float]) -> None:
    """The values are what MegEngine 1.13 computed."""
    x = np.tile(np.arange(0, 50, 10, dtype=np.float32), (1, 1, 2, 1))
    attributes = {"output_size": [2, outputs], "align_corners": align_corners}
    (actual,) = reference(BILINEAR, [x], attributes)
    np.testing.assert_allclose(actual, np.tile(expected, (1, 1, 2, 1)), rtol=1e-6)


def test_one_row_has_its_own_value_everywhere() -> None:
    x = normal(0, 2, 3, 1, 5)
    for align_corners in (False, True):
        check_bilinear(x, [4, 10], align_corners)
        check_bilinear(x, [3, 1], align_corners)


@pytest.mark.slow
def test_many_channels_and_large_factors() -> None:
    check_nearest(normal(0, 1, 33, 4, 6), [64, 48], opsets=[7, 11])
    check_bilinear(normal(0, 1, 33, 4, 6), [64, 42], False, opsets=[7, 11])


@pytest.mark.parametrize("opset", [7, 9, 10, 11, NEWEST_OPSET])
def test_float16(opset: int) -> None:
    x = normal(0, *X, dtype=np.float16)
    for size in ([10, 21], [4, 3]):
        check_nearest(x, size, targets=["onnx", "tflite"], opsets=[opset])
        attributes = {"output_size": size}
        assert_op_matches(BILINEAR, [x], attributes, targets=["onnx"], opsets=[opset], tolerance=2e-3)


@pytest.mark.parametrize(
    ("op", "target", "version", "attributes", "expected"),
    [
        (NEAREST, "onnx", 7, {"output_size": [10, 21]}, ["Upsample"]),
        (NEAREST, "onnx", 7, {"output_size": [3, 4]}, ["Gather", "Gather"]),
        (NEAREST, "onnx", 9, {"output_size": [3, 7]}, ["Gather"]),
        (NEAREST, "onnx", 10, {"output_size": [10, 21]}, ["Resize"]),
        (NEAREST, "onnx", 11, {"output_size": [3, 4]}, ["Resize"]),
        (BILINEAR, "onnx", 10, {"output_size": [10, 21]}, ["MatMul", "MatMul"]),
        (BILINEAR, "onnx", 10, {"output_size": [10, 7]}, ["MatMul"]),
        (BILINEAR, "onnx", 11, {"output_size": [10, 21]}, ["Resize"]),
        (BILINEAR, "onnx", 11, {"output_size": [3, 4], "align_corners": True}, ["Resize"]),
        (NEAREST, "tflite", TFLITE_RUNTIME, {"output_size": [10, 21]}, ["RESIZE_NEAREST_NEIGHBOR"]),
        (BILINEAR, "tflite", TFLITE_RUNTIME, {"output_size": [3, 4]}, ["RESIZE_BILINEAR"]),
        (NEAREST, "caffe", 0, {"output_size": [10, 21]}, ["Deconvolution"]),
        (NEAREST, "caffe", 0, {"output_size": [5, 4]}, ["InnerProduct"]),
        (NEAREST, "caffe", 0, {"output_size": [3, 7]}, ["Reshape", "Convolution", "Reshape"]),
        (
            BILINEAR,
            "caffe",
            0,
            {"output_size": [5, 14]},
            ["Slice", "Slice", "Silence", "Concat", "Deconvolution"],
        ),
        (
            BILINEAR,
            "caffe",
            0,
            {"output_size": [10, 21], "align_corners": True},
            ["InnerProduct", "Reshape", "Convolution", "Reshape"],
        ),
    ],
)
def test_operators(
    op: str, target: str, version: int, attributes: dict[str, Any], expected: list[str]
) -> None:
    assert operators(op, normal(0, *X), attributes, target, version) == expected


def test_what_runtimes_round_differently_is_gathered() -> None:
    x, attributes = normal(0, 1, 2, 14, 20), {"output_size": [2, 12]}
    assert operators(NEAREST, x, attributes, "tflite", TFLITE_RUNTIME) == ["GATHER", "GATHER"]
    assert operators(NEAREST, x, attributes, "onnx", 11) == ["Gather", "Gather"]


def operators(op: str, x: np.ndarray, attributes: dict[str, Any], target: str, version: int) -> list[str]:
    graph = op_graph(op, [x], attributes)
    if target == "tflite":
        store_channels_last(graph)
    return [operator.type for operator in lower(graph, catalogue(), target, version).graph.operators]


def test_refusals() -> None:
    reason = refusal("tflite", BILINEAR, [normal(0, *X, dtype=np.float16)], {"output_size": [4, 3]})
    assert reason == "TFLite's RESIZE_BILINEAR does not support float16"
    x = normal(0, *X, dtype=np.float64)
    reason = refusal("tflite", NEAREST, [x], {"output_size": [10, 21]})
    assert reason == "TFLite's RESIZE_NEAREST_NEIGHBOR does not support float64"


@pytest.mark.parametrize(
    ("shape", "size", "message"),
    [
        ((3, 5, 7), [4, 4], "must have rank 4"),
        ((1, 3, 0, 7), [4, 4], "expected an image in the last two axes"),
        (X, [4, 0], r"\[4, 0\] is not valid"),
        (X, [-1, 4], r"\[-1, 4\] is not valid"),
    ],
)
def test_types(shape: tuple[int, ...], size: list[int], message: str) -> None:
    for op in (upsample_nearest2d, upsample_bilinear2d):
        _, attributes = op.bind([np.zeros(1)], {"output_size": size})
        with pytest.raises(SchemaError, match=message):
            op.infer([TensorType(np.dtype(np.float32), shape)], attributes)
