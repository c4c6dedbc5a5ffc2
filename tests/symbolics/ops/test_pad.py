"""aten::pad: every target and mode, and the kernel against loops."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.symbolics.ops.harness import NEWEST_OPSET, assert_op_matches, normal, op_graph, refusal
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.ops.shapes.pad import MODES, pad
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import lower

X = (2, 3, 5, 7)
SPATIAL = [0, 0, 0, 0, 1, 2, 3, 0]


def in_loops(x: np.ndarray, amounts: list[int], mode: str, value: float) -> np.ndarray:
    pairs = [amounts[i : i + 2] for i in range(0, len(amounts), 2)]
    shape = [extent + sum(pair) for extent, pair in zip(x.shape, pairs, strict=True)]
    result = np.empty(shape, x.dtype)
    for index in np.ndindex(*shape):
        source = [place - pair[0] for place, pair in zip(index, pairs, strict=True)]
        if mode == "replicate":
            source = [min(max(place, 0), x.shape[axis] - 1) for axis, place in enumerate(source)]
        elif mode == "reflect":
            source = [abs(place) for place in source]
            source = [min(place, 2 * (x.shape[axis] - 1) - place) for axis, place in enumerate(source)]
        inside = all(0 <= place < x.shape[axis] for axis, place in enumerate(source))
        result[index] = x[tuple(source)] if inside else value
    return result


def check(
    x: np.ndarray, amounts: list[int], mode: str = "constant", value: float = 0.0, **options: Any
) -> None:
    expected = [in_loops(x, amounts, mode, value)]
    attributes = {"pad": amounts, "mode": mode, "value": value}
    assert_op_matches("aten::pad", [x], attributes, expected=expected, tolerance=0, **options)


@pytest.mark.parametrize(
    "amounts",
    [
        SPATIAL,
        [0, 0, 0, 0, 2, 2, 1, 1],
        [0, 0, 0, 0, 1, 1, 0, 0],
        [0, 0, 1, 2, 0, 0, 0, 0],
        [1, 0, 0, 2, 0, 0, 0, 0],
        [0, 1, 0, 0, 2, 1, 0, 3],
        [0] * 8,
    ],
    ids=str,
)
@pytest.mark.parametrize("value", [0, 2.5])
def test_constant(value: float, amounts: list[int]) -> None:
    check(normal(0, *X), amounts, value=value)


@pytest.mark.parametrize("value", [0.0, -1.0])
@pytest.mark.parametrize(
    "amounts", [[0, 0, 0, 0, -1, -2, 0, -3], [0, 0, -1, 0, 2, -1, -3, 4], [-1, 1, 0, 0, 0, 0, 0, 0]], ids=str
)
def test_negative_amounts_cut(amounts: list[int], value: float) -> None:
    check(normal(0, *X), amounts, value=value)


@pytest.mark.parametrize("amounts", [SPATIAL, [0, 0, 0, 0, 0, 0, 2, 1], [1, 0, 2, 1, 0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_mirrored(mode: str, amounts: list[int]) -> None:
    check(normal(0, *X), amounts, mode)


@pytest.mark.parametrize("value", [0, 1])
def test_bools(value: int) -> None:
    check(normal(0, 2, 3) > 0, [0, 1, 2, 0], value=value)


def test_value_is_exact() -> None:
    check(normal(0, *X), SPATIAL, value=float(np.finfo(np.float32).min))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data(), mode=st.sampled_from(MODES))
def test_matches_at_any_rank(data: st.DataObject, mode: str) -> None:
    shape = data.draw(st.lists(st.integers(3, 5), min_size=1, max_size=5))
    least = -1 if mode == "constant" else 0
    amounts = data.draw(st.lists(st.integers(least, 1), min_size=2 * len(shape), max_size=2 * len(shape)))
    check(normal(1, *shape), amounts, mode, data.draw(st.sampled_from([0.0, -1.5])))


@pytest.mark.parametrize("opset", [7, 10, 11, 12, 13, 18, 19, NEWEST_OPSET])
def test_onnx_attributes_and_inputs(opset: int) -> None:
    for mode, value in product(MODES, (0.0, 1.5)):
        check(normal(0, *X), SPATIAL, mode, value, targets=["onnx"], opsets=[opset])


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8"])
def test_integers(dtype: str) -> None:
    x = np.arange(30).reshape(5, 6).astype(dtype)
    for value in (0, 3):
        check(x, [1, 0, 2, 1], value=value, targets=["onnx", "tflite"], opsets=[11, 13, NEWEST_OPSET])


def test_refusals() -> None:
    x = normal(0, *X)
    attributes = {"pad": [0, 0, 0, 0, 4, 4, 6, 6], "mode": "reflect"}
    assert refusal("caffe", "aten::pad", [x], attributes) == (
        "Caffe has no layer for the padding mode reflect, and emulating it would need 20 slices"
    )
    assert refusal("caffe", "aten::pad", [x], {"pad": [-1, -1, 0, 0, 0, 0, 0, 0]}) == (
        "a Caffe blob cannot be empty"
    )


@pytest.mark.parametrize(
    "attributes",
    [
        {"pad": [1, 2, -1, 0], "value": -9},
        {"pad": [2, 1, 0, 3], "mode": "reflect"},
        {"pad": [2, 1, 3, 0], "mode": "replicate"},
        {"pad": [-1, 0, 0, -2]},
        {"pad": [0, 0, 0, 0]},
    ],
    ids=str,
)
def test_large_integers_at_opsets_whose_pad_takes_floats_only(attributes: dict[str, Any]) -> None:
    x = np.arange(12).reshape(3, 4) + 2**60 + 1  # no float64
    assert_op_matches("aten::pad", [x], attributes, targets=("onnx",), opsets=[7, 10, 11])


def test_caffe_pads_height_and_width_with_one_convolution() -> None:
    graph = op_graph("aten::pad", [normal(0, *X)], {"pad": [0, 0, 0, 0, 2, 2, 1, 1]})
    operators = lower(graph, catalogue(), "caffe", 0).graph.operators
    assert [operator.type for operator in operators] == ["Convolution"]


@pytest.mark.parametrize(
    ("amounts", "mode", "value", "message"),
    [
        ([1, 1], "constant", 0, "two entries for each axis"),
        ([0, 0, 3, 0], "reflect", 0, "cannot pad 3 elements by 3 and 0 in mode reflect"),
        ([0, 0, -1, 0], "replicate", 0, "cannot pad 3 elements by -1 and 0"),
        ([0, 0, -2, -2], "constant", 0, "cannot crop 2 and 2 elements from an axis of 3"),
        ([0, 0, 1, 1], "constant", 0.5, "does not have the type"),
    ],
)
def test_type_rule_refuses(amounts: list[int], mode: str, value: float, message: str) -> None:
    x = TensorType(np.dtype(np.int32), (2, 3))
    with pytest.raises(SchemaError, match=message):
        pad.infer([x], {"pad": amounts, "mode": mode, "value": value})
