"""The worst element of a wrong result, with its operands: what a failing sample shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.verification.compare import compare


def worst_elements(
    results: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    operands: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any],
) -> str:
    """Lines on the worst element of each wrong result; empty where none is wrong.

    An operand that broadcasts to the result is shown at the element, another by its type.
    """
    names = [f"y{i}" for i in range(len(results))]
    lines = [
        line
        for each, result, wanted in zip(compare(results, expected, names), results, expected, strict=True)
        if not each.ok and np.shape(result) == np.shape(wanted)
        for line in _of_result(np.asarray(result), np.asarray(wanted), each.tolerance, operands)
    ]
    given = [f"{name}={value!r}" for name, value in attributes.items()]
    return "\n  ".join(["", *lines, *(["attributes: " + ", ".join(given)] if lines and given else [])])


def _of_result(
    result: np.ndarray, expected: np.ndarray, tolerance: float, operands: Mapping[str, np.ndarray]
) -> list[str]:
    errors = _errors(result, expected)
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    scale = (finite.max() if finite.size else 0.0) if expected.dtype.kind == "f" else 1.0
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(errors)), errors.shape))
    wrong = int((errors > tolerance * (scale or 1.0)).sum())
    return [
        f"worst of {wrong} wrong elements of {errors.size}: {list(index)}",
        f"got {result[index]!s}, expected {expected[index]!s}",
        *(_operand(name, array, index, errors.shape) for name, array in operands.items()),
    ]


def _errors(result: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The absolute errors; infinite where only one of the two is finite, or both differ in kind."""
    a, b = result.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isfinite(apart), apart, np.inf))


def _operand(name: str, array: np.ndarray, index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    type_ = f"{array.dtype} {list(array.shape)}"
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits or array.size == 0:
        return f"{name}: {type_}"
    own = index[len(index) - array.ndim :]
    place = tuple(0 if extent == 1 else i for i, extent in zip(own, array.shape, strict=True))
    return f"{name}{list(place) or ''} = {array[place]!s} ({type_})"
