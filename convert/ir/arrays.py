"""Converts arguments of a caller to arrays, and compares arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.ir.types import Arrays


def as_array(value: Any, name: str) -> np.ndarray:
    """Converts an array, tensor or nested lists to an array of numbers. Raises UsageError TM6003."""
    try:
        array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    except Exception as error:  # of whatever class the value is
        raise _no_array(name, value) from error
    if array.dtype.kind in "OSUMm" or array.dtype.names is not None:
        raise _no_array(name, value)
    return array


def _no_array(name: str, value: Any) -> UsageError:
    return UsageError("TM6003", f"{name} must be an array of numbers, got {type_and_value(value)}")


def are_equal(ones: Arrays, others: Arrays) -> bool:
    """Whether two runs gave the same, bit for bit."""
    return len(ones) == len(others) and all(
        np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        for one, other in zip(ones, others, strict=True)
    )
