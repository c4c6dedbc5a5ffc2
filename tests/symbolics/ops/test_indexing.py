"""What is special of gathering and scattering: repeated places, empty parts, arguments that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.symbolics.ops.harness import Const, assert_op_matches, normal, reference
from tmconvert.ir import TensorType
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Attribute, SchemaError
from tmconvert.symbolics.registry import catalogue

ROWS = normal(0, 4, 3)
TWICE = np.array([1, 3, 1])


@pytest.mark.parametrize("index", [TWICE, Const(TWICE)], ids=["computed", "constant"])
@pytest.mark.parametrize("opset", [7, 9])
def test_the_last_part_for_a_place_stays(index: Any, opset: int) -> None:
    """Where ONNX says which one it is: ScatterND, from 11 on, does not."""
    source = normal(1, 3, 3)
    expected = ROWS.copy()
    expected[3], expected[1] = source[1], source[2]
    assert_op_matches(
        "aten::index_copy",
        [ROWS, index, source],
        {"dim": 0},
        targets=("onnx",),
        opsets=[opset],
        expected=[expected],
    )


def test_sums_take_all_parts_for_a_place() -> None:
    source = normal(1, 3, 3)
    expected = ROWS.copy()
    expected[3] += source[1]
    expected[1] += source[0] + source[2]
    assert_op_matches(
        "aten::index_add", [ROWS, TWICE, source], {"dim": 0}, targets=("onnx",), expected=[expected]
    )


def test_no_places() -> None:
    nowhere = Const(np.zeros(0, np.int64))
    assert_op_matches("aten::index_select", [ROWS, nowhere], {"dim": 0}, targets=("onnx",))
    source = Const(np.zeros((0, 3), np.float32))
    for op in ("aten::index_copy", "aten::index_add"):
        assert_op_matches(op, [ROWS, nowhere, source], {"dim": 0}, targets=("onnx",), opsets=[7, 9])


def infer(name: str, tensors: list[Any], attributes: dict[str, Any]) -> None:
    op = catalogue()[name]
    names = [each.name for each in op.args if not isinstance(each, Attribute)]
    arrays, bound = op.bind((), dict(zip(names, tensors, strict=True)) | attributes)
    op.infer(map_leaves(_type, list(arrays)), bound)


def _type(array: Any) -> TensorType | None:
    return None if array is None else TensorType(array.dtype, array.shape)


@pytest.mark.parametrize(
    ("name", "tensors", "attributes"),
    [
        ("aten::index_select", [ROWS, TWICE.reshape(1, 3)], {"dim": 0}),
        ("aten::index_select", [ROWS, TWICE], {"dim": 2}),
        ("aten::index_select", [ROWS, ROWS[0]], {"dim": 0}),
        ("aten::index_copy", [ROWS, TWICE, ROWS], {"dim": 0}),
        ("aten::index", [ROWS, [TWICE, TWICE, TWICE]], {}),
        ("aten::index", [ROWS, [None]], {}),
        ("aten::index_put", [ROWS, [TWICE], normal(1, 2, 3)], {}),
        ("aten::index_put", [ROWS, [TWICE], ROWS[:3].astype(np.float16)], {}),
        ("aten::gather", [ROWS, TWICE], {"dim": 0}),
        ("aten::gather", [ROWS, np.zeros((4, 4), int)], {"dim": 0}),
        ("aten::scatter", [ROWS, np.zeros((2, 3), int), ROWS], {"dim": 0}),
        ("aten::index_reduce", [ROWS, TWICE, ROWS], {"dim": 0, "reduce": "mean"}),
        ("aten::expand", [ROWS], {"size": [3]}),
        ("aten::expand", [ROWS], {"size": [2, 3]}),
        ("aten::repeat", [ROWS], {"repeats": [2]}),
        ("aten::flip", [ROWS], {"dims": [0, -2]}),
        ("aten::roll", [ROWS], {"shifts": [1, 2], "dims": [0]}),
        ("aten::rot90", [ROWS], {"dims": [1, -1]}),
        ("aten::slice_scatter", [ROWS, ROWS], {"dim": 0, "start": 1, "end": 3}),
        ("aten::select_scatter", [ROWS, ROWS], {"dim": 0, "index": 1}),
        ("aten::diagonal", [ROWS], {"dim1": 1, "dim2": -1}),
        ("aten::one_hot", [TWICE], {"num_classes": 0}),
        ("tm::remap", [normal(0, 1, 2, 3, 4), normal(0, 1, 2, 2, 3), None], {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_that_do_not_fit(name: str, tensors: list[Any], attributes: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        infer(name, tensors, attributes)


OLD_AND_NEW = [7, 9, 11, 16, 18]


@pytest.mark.parametrize("op", ["aten::scatter_add", "aten::index_add"])
def test_infinity_and_nan_stay_in_their_places(op: str) -> None:
    """A product with zeros and ones would spread them."""
    x, index = np.zeros(4, np.float32), np.array([0, 0, 1, 2, 2])
    source = np.array([1, np.inf, 5, np.nan, 2], np.float32)
    expected = np.array([np.inf, 5, np.nan, 0], np.float32)
    assert_op_matches(
        op, [x, index, source], {"dim": 0}, targets=("onnx",), opsets=OLD_AND_NEW, expected=[expected]
    )


def test_large_integers_for_one_place() -> None:
    """No float64 holds the sum. Older opsets add by ReduceSum, which ONNX Runtime computes in float64."""
    x, index = np.array([2**60, 0]), np.array([0, 0, 1])
    assert_op_matches(
        "aten::scatter_add",
        [x, index, np.array([1, 2, -5])],
        {"dim": 0},
        targets=("onnx",),
        opsets=[16, 18],
        expected=[np.array([2**60 + 3, -5])],
    )


@pytest.mark.parametrize(
    ("include_self", "expected"), [(True, [-3, -5, 3, 9]), (False, [0, -5, 3, 9])], ids=["with", "without"]
)
def test_means_of_integers_round_down(include_self: bool, expected: list[int]) -> None:
    """As torch 2.13 does; places without an index stay as they are."""
    x, index, source = np.array([-7, -5, 3, 9]), np.array([0, 0, 1]), np.array([2, -2, -5])
    assert_op_matches(
        "aten::scatter_reduce",
        [x, index, source],
        {"dim": 0, "reduce": "mean", "include_self": include_self},
        targets=("onnx",),
        opsets=OLD_AND_NEW,
        expected=[np.array(expected)],
    )


def test_a_search_puts_nan_behind_all() -> None:
    boundaries = Const(np.array([1, 2, 3], np.float32))
    x = np.array([np.nan, 2, np.inf, -np.inf], np.float32)
    for right, expected in ((False, [3, 1, 3, 0]), (True, [3, 2, 3, 0])):
        assert_op_matches(
            "aten::bucketize",
            [x, boundaries],
            {"right": right},
            targets=("onnx",),
            opsets=OLD_AND_NEW,
            expected=[np.array(expected, np.int32)],
        )


def test_masks_beside_other_indices_or_with_many_values_depend_on_data() -> None:
    mask = ROWS > 0
    for indices, values in (([mask[:, 0], TWICE], ROWS[0, 0]), ([mask], ROWS[0])):
        with pytest.raises(SchemaError):
            infer("aten::index_put", [ROWS, indices, np.asarray(values)], {})


@pytest.mark.parametrize("index", [-1, 5])
@pytest.mark.parametrize("name", ["embedding", "embedding_bag", "one_hot"])
def test_indices_that_targets_take_differently_are_out_of_range(name: str, index: int) -> None:
    """NumPy and ONNX count negative indices from the end; PyTorch and LiteRT do not."""
    table, indices = np.ones((5, 3), np.float32), np.array([0, index])
    args: dict[str, list[Any]] = {
        "embedding": [table, indices],
        "embedding_bag": [table, indices, np.array([0])],
        "one_hot": [indices],
    }
    attributes = {"num_classes": 5} if name == "one_hot" else {}
    with pytest.raises(IndexError, match=f"index {index} is"):
        reference(f"aten::{name}", args[name], attributes)
