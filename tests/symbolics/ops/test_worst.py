"""A failing sample shows its worst element with the operands."""

from __future__ import annotations

import numpy as np
import pytest

from tests.symbolics.ops.harness import Const, assert_decomposition_matches, assert_target_matches, reference
from tests.symbolics.ops.worst import worst_elements

X = np.arange(6, dtype=np.float32).reshape(2, 3)
BIAS = np.array([[10], [20]], np.float32)


def test_the_worst_element_is_shown_with_its_operands() -> None:
    expected = reference("aten::add", [X, Const(BIAS)], {})
    expected[0][1, 2] += 5
    with pytest.raises(AssertionError) as caught:
        assert_target_matches("onnx", 17, "aten::add", [X, Const(BIAS)], {}, expected)
    message = str(caught.value)
    assert message.startswith("aten::add on onnx 17: error[TM4001]: ")
    assert message.splitlines()[1:] == [
        "  worst of 1 wrong elements of 6: [1, 2]",
        "  got 25.0, expected 30.0",
        "  x[1, 2] = 5.0 (float32 [2, 3])",
        "  other[1, 0] = 20.0 (float32 [2, 1])",
    ]


def test_a_decomposition_shows_it_too() -> None:
    expected = reference("aten::softplus", [X], {"beta": 2})
    expected[0][0, 1] = np.nan
    with pytest.raises(
        AssertionError, match=r"worst of 1 wrong elements of 6: \[0, 1\]\n  got 1\.0\d+, expected nan"
    ):
        assert_decomposition_matches("aten::softplus", [X], {"beta": 2}, expected)


def test_attributes_and_operands_of_other_shapes_are_listed() -> None:
    shown = worst_elements([np.float32([1, 2])], [np.float32([1, 3])], {"x": X}, {"dim": 1})
    assert shown.splitlines()[-2:] == ["  x: float32 [2, 3]", "  attributes: dim=1"]


def test_what_is_right_is_not_shown() -> None:
    assert worst_elements([X], [X], {"x": X}, {"dim": 1}) == ""


def test_integers_count_exactly() -> None:
    shown = worst_elements([np.array(7)], [np.array(9)], {"x": np.array(3)}, {})
    assert shown.splitlines()[1:] == [
        "  worst of 1 wrong elements of 1: []",
        "  got 7, expected 9",
        "  x = 3 (int64 [])",
    ]
