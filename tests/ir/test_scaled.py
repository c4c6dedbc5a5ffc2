"""Constants times factors that are computed late: the numbers, the rounding, the views."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmconvert.ir.lazy_constants import Array, Scaled, computed, memory_of, scaled, viewed

LARGE = (130, 140)  # above what is computed at once


def weight(dtype: Any = np.float32, shape: tuple[int, ...] = LARGE) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


def rounded(array: np.ndarray, *factors: Any) -> np.ndarray:
    product = array.astype(np.float64)
    for factor in factors:
        product = product * factor
    return product.astype(array.dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("factor", [2.0, 0.1, np.linspace(0.1, 2, 140), np.linspace(0.1, 2, 130)[:, None]])
@pytest.mark.parametrize("shape", [LARGE, (0, 140), (1, 140)], ids=str)
def test_rounded_once_from_float64(dtype: Any, factor: Any, shape: tuple[int, ...]) -> None:
    array = weight(dtype, shape)
    factor = factor[:1] if np.ndim(factor) == 2 else factor
    np.testing.assert_array_equal(computed(scaled(array, factor)), rounded(array, factor))


def test_two_factors_are_rounded_once() -> None:
    array, rows, columns = weight(), np.linspace(0.1, 2, 130)[:, None], np.linspace(3, 0.2, 140)
    product = scaled(scaled(array, rows), columns)
    assert isinstance(product, Scaled) and product.array is array
    expected = rounded(array, rows, columns)
    np.testing.assert_array_equal(computed(viewed(product, lambda each: each.T)), expected.T)
    np.testing.assert_array_equal(product.computed(), expected)


def test_small_ones_are_computed_at_once_and_large_ones_when_they_are_read() -> None:
    assert isinstance(scaled(weight(shape=(4, 4)), 2.0), np.ndarray)
    late = scaled(weight(), 2.0)
    assert isinstance(late, Scaled) and late._computed is None
    assert late.computed() is late.computed()


VIEWS: dict[str, Any] = {
    "transposed": lambda each: each.T,
    "rows": lambda each: each[3:17],
    "one row": lambda each: each[5],
    "split": lambda each: each.reshape(13, 10, 140).transpose(1, 2, 0),
    "one axis": lambda each: each.reshape(-1),  # of a factor for each row that is a copy
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("is_read", [False, True])
@given(by_row=st.booleans())
def test_views_are_views_of_the_product(view: str, is_read: bool, by_row: bool) -> None:
    array = weight()
    factor = np.linspace(0.1, 2, 130)[:, None] if by_row else np.linspace(0.1, 2, 140)
    product = scaled(array, factor)
    if is_read:
        computed(product)
    made: Array = viewed(product, VIEWS[view])
    assert made.shape == VIEWS[view](array).shape
    np.testing.assert_array_equal(computed(made), VIEWS[view](rounded(array, factor)))


def test_equal_views_are_of_one_memory() -> None:
    product = scaled(weight(), np.linspace(0.1, 2, 140))
    first, second = (viewed(product, lambda each: each.T) for _ in range(2))
    assert memory_of(first) == memory_of(second) != memory_of(product)


@pytest.mark.filterwarnings("error")
def test_overflow_gives_infinity_without_a_warning() -> None:
    array = np.full(LARGE, 3e38, np.float32)
    assert np.isinf(computed(scaled(array, 1e10))).all()
    assert np.isinf(computed(scaled(array, 1e300))).all()
