"""Integers in Caffe's blobs, which are float32: exact up to 2**24, beyond it with enough factors of 2."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

EXACT = 1 << 24  # float32 holds all integers up to here


def inexact_integer(array: np.ndarray) -> int | None:
    """Returns the first element of an integer array that float32 does not hold; None where it holds all.

    >>> inexact_integer(np.array([1, (1 << 24) + 1, 1 << 25]))
    16777217
    """
    if array.dtype.kind not in "iu" or not array.size or array.dtype.itemsize < 4:
        return None
    array = np.atleast_1d(array)
    size = np.where(array < 0, ~array.astype(np.uint64) + np.uint64(1), array.astype(np.uint64))
    odd = size // np.maximum(size & (~size + np.uint64(1)), np.uint64(1))  # without its factors of 2
    wrong = array[odd >= EXACT]
    return int(wrong.flat[0]) if wrong.size else None


def float32_inputs(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the inputs as float32. Raises ValueError for integers that it does not hold."""
    for name, array in inputs.items():
        found = inexact_integer(array)
        if found is not None:
            raise ValueError(
                f"the input {name} has the integer {found}, which float32, the type of Caffe's blobs, does "
                "not hold"
            )
    return {name: np.ascontiguousarray(array, np.float32) for name, array in inputs.items()}
