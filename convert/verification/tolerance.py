"""Decides whether a file's outputs match the reference, also where tolerances alone cannot.

What differs by more than the tolerance may still be right: an output that is zero but for rounding, and the
order of elements that are equal. Both are shown for the outputs at hand, never assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tmconvert.ir.types import Arrays
from tmconvert.verification.compare import (
    TOLERANCES,
    Comparison,
    compare,
    refuse_wrong,
    scale_of,
    with_coarser,
)
from tmconvert.verification.reference import Reference

OWN = 8.0  # times what the source in float32 is off its result in float64, an output of a file may be off
NARROWED = 3  # inputs, weights and results: each is rounded to a narrower type
LOOSEST = 1e-2  # of the largest element: by how much an output may differ in a first case, for drawn inputs


def comparisons_of(
    reference: Reference,
    inputs: Arrays,
    actual: Arrays,
    expected: Arrays,
    names: Sequence[str],
    *,
    is_drawn: bool = False,
    is_second: bool = False,
) -> list[Comparison]:
    """Returns the comparisons within their limits, see ``compare_within_limits``.

    An output that rounding moves as far in the source itself is undecided. Raises VerificationError TM4001
    for one that is wrong.
    """
    found = compare_within_limits(
        reference, inputs, actual, expected, names, is_drawn=is_drawn, is_second=is_second
    )
    if all(each.ok for each in found) or reference.lacks([]):
        return refuse_wrong(found)
    from tmconvert.verification.undecided import with_undecided

    found = with_undecided(reference, inputs, actual, expected, found)
    return refuse_wrong(found)


def compare_within_limits(
    reference: Reference,
    inputs: Arrays,
    actual: Arrays,
    expected: Arrays,
    names: Sequence[str],
    *,
    is_drawn: bool = False,
    is_second: bool = False,
) -> list[Comparison]:
    """Returns the comparisons, each with its limit.

    For inputs of our own making, ``is_drawn``, a model may be less exact than for real ones. There, an output
    may differ as much as rounding of float32 changes it by measurement, up to ``LOOSEST``. In a second case,
    which is drawn, all that rounding can be shown to explain passes, and elements of integers that rounding
    decides, such as the sign of a sum that is zero, are left out.
    """
    comparisons = [
        with_coarser(each, array, reference.computes_in)
        for each, array in zip(compare(actual, expected, names), expected, strict=True)
    ]
    if all(each.ok for each in comparisons) or reference.lacks([]):
        return comparisons
    comparisons = _but_for_own_error(reference, inputs, expected, comparisons)
    if all(each.ok for each in comparisons):
        return comparisons
    comparisons = _but_for_kernels(reference, inputs, actual, expected, comparisons)
    margins = [_margin(each, is_drawn, is_second) for each in comparisons]
    comparisons = _but_for_rounding(reference, inputs, actual, expected, comparisons, margins)
    if not all(each.ok for each in comparisons):
        decided = actual
        if is_second:
            decided = _with_undecided_integers(reference, inputs, actual, expected, comparisons)
        from tmconvert.verification.ties import with_equal_elements

        reordered = with_equal_elements(reference, inputs, decided, expected, comparisons)
        again = compare(reordered, expected, names)
        comparisons = [
            each if new is old else other
            for each, other, new, old in zip(comparisons, again, reordered, actual, strict=True)
        ]
    return comparisons


def _margin(comparison: Comparison, is_drawn: bool, is_second: bool) -> float:
    """Returns how many times more than by rounding an output may differ."""
    if is_second:
        from tmconvert.verification.rounding import MARGIN

        units = comparison.tolerance / TOLERANCES["float32"]  # of float32, in one of a narrower type
        return MARGIN * (NARROWED * units if units > 1 else 1.0)
    return 1.0 if is_drawn and comparison.max_error <= LOOSEST else 0.0


def _with_undecided_integers(
    reference: Reference, inputs: Arrays, actual: Arrays, expected: Arrays, comparisons: Sequence[Comparison]
) -> list[np.ndarray]:
    """Replaces integers of ``actual`` that depend on rounding in the reference by those of ``expected``."""
    made = list(actual)
    for number, each in enumerate(comparisons):
        if each.ok or expected[number].dtype.kind == "f" or each.shape != each.expected_shape:
            continue
        try:
            decided = reference.decided(inputs, number)
        except (ValueError, IndexError):  # the data decides on shapes
            return made
        made[number] = np.where(decided, actual[number], expected[number])
    return made


def _but_for_own_error(
    reference: Reference, inputs: Arrays, expected: Arrays, comparisons: list[Comparison]
) -> list[Comparison]:
    """Accepts outputs that differ by a few times what the source's own rounding to float32 costs them."""
    if not any(_is_measured(*pair) for pair in zip(comparisons, expected, strict=True)):
        return comparisons
    try:
        errors = reference.own_errors(inputs)
    except (ValueError, IndexError, TypeError):  # the data decides on shapes, or a kernel takes no float64
        return comparisons
    found = list(comparisons)
    for number, (each, error) in enumerate(zip(comparisons, errors, strict=True)):
        limit = min(OWN * error / scale_of(expected[number]), LOOSEST)
        if _is_measured(each, expected[number]) and each.max_error <= limit:
            found[number] = each._replace(tolerance=limit)
    return found


def _is_measured(each: Comparison, expected: np.ndarray) -> bool:
    """Whether a float output differs by a finite error beyond its tolerance."""
    is_finite = each.shape == each.expected_shape and not np.isinf(each.max_error)
    return not each.ok and expected.dtype.kind == "f" and is_finite


def _but_for_kernels(
    reference: Reference, inputs: Arrays, actual: Arrays, expected: Arrays, comparisons: list[Comparison]
) -> list[Comparison]:
    """Accepts outputs that differ by no more than the absolute accuracy of some kernels changes them.

    Their errors are relative to the range of these kernels: ONNX Runtime computes the sigmoid of -12, which
    is 6e-6, to one digit. An output that is not much larger than this is not informative.
    """
    found = list(comparisons)
    from tmconvert.verification.rounding import COARSE, UNIT

    for number, most in _changes(reference.kernel_errors, inputs, expected, comparisons).items():
        off = _distance(actual[number], expected[number])
        if off <= most:
            is_noise = _largest(expected[number]) <= COARSE * most
            error = off / (most / UNIT)
            found[number] = found[number]._replace(max_error=error, tolerance=UNIT, is_noise=is_noise)
    return found


def _but_for_rounding(
    reference: Reference,
    inputs: Arrays,
    actual: Arrays,
    expected: Arrays,
    comparisons: list[Comparison],
    margins: Sequence[float],
) -> list[Comparison]:
    """Accepts outputs that consist of rounding errors only, and those that differ by no more than what
    rounding changes, times one of ``margins``. Their errors are relative to the values that are summed.
    The former are not informative.
    """
    found = list(comparisons)
    from tmconvert.verification.rounding import MARGIN, UNIT

    for number, noise in _changes(reference.noise, inputs, expected, comparisons).items():
        is_noise = _largest(expected[number]) <= MARGIN * noise
        most = MARGIN if is_noise else margins[number]
        off = _distance(actual[number], expected[number])
        if noise > 0 and off <= most * noise:
            error = off / (noise / UNIT)
            found[number] = found[number]._replace(
                max_error=error, tolerance=most * UNIT, is_noise=found[number].is_noise or is_noise
            )
    return found


def _changes(
    measure: Callable[[Arrays, Sequence[int]], list[float]],
    inputs: Arrays,
    expected: Arrays,
    comparisons: Sequence[Comparison],
) -> dict[int, float]:
    """Returns how much ``measure`` changes each float output that differs by a finite error, by number."""
    numbers = [number for number, each in enumerate(comparisons) if _is_measured(each, expected[number])]
    try:
        return dict(zip(numbers, measure(inputs, numbers), strict=True)) if numbers else {}
    except (ValueError, IndexError):  # the data decides on shapes
        return {}


def _largest(array: np.ndarray) -> float:
    return float(np.max(np.abs(array)))


def _distance(actual: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.max(np.abs(actual.astype(np.float64) - wanted)))
