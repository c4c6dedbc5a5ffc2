"""Transpositions in steps of few axes do what they do at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tmconvert.symbolics.idioms.transposes import in_steps


@st.composite
def transpositions(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=9))
    return shape, draw(st.permutations(range(len(shape))))


@given(transpositions(), st.integers(5, 6))
def test_steps(given: tuple[list[int], list[int]], most: int) -> None:
    shape, order = given
    x = np.arange(np.prod(shape)).reshape(shape)
    moved = x
    for sizes, places in in_steps(shape, order, most):
        assert len(places) <= most
        moved = moved.reshape(sizes).transpose(places)
    np.testing.assert_array_equal(moved.reshape(x.transpose(order).shape), x.transpose(order))
