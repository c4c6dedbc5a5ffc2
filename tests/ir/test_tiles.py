"""Copies of arrays whose elements lie in another order."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from tmconvert.ir.tiles import copy_elements


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize(
    "shape", [(65, 3, 70), (64, 130, 1), (129, 1, 2), (200, 65, 0), (67, 66, 65)], ids=str
)
@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("f2", "f4"), (">i4", "<i4"), ("i1", "i8")], ids=str)
def test_elements_are_those_of_a_plain_copy(
    order: tuple[int, ...], shape: tuple[int, ...], dtypes: tuple[str, str]
) -> None:
    source = np.random.default_rng(3).uniform(-99, 99, shape).astype(dtypes[0]).transpose(order)
    out = np.full(source.shape, 7, dtypes[1])
    copy_elements(out, source)
    np.testing.assert_array_equal(out, source)


def test_a_number_and_a_vector() -> None:
    for source in (np.array(3.0), np.arange(200.0)[::2], np.arange(900.0).reshape(9, 100)[::-1, ::-1]):
        out = np.empty(source.shape)
        copy_elements(out, source)
        np.testing.assert_array_equal(out, source)


def test_a_type_that_loses_values_is_an_error() -> None:
    with pytest.raises(TypeError, match="same_kind"):
        copy_elements(np.empty((70, 70), np.int32), np.ones((70, 70), np.float32).T)
