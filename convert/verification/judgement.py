"""Decides whether a file's outputs match the reference, also where tolerances alone cannot.

What differs by more than the tolerance may still be right: an output that is zero but for rounding, and the
order of elements that are equal. Both are shown for the outputs at hand, never assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.verification.compare import Comparison, compare, refuse_wrong, with_coarser
from tmconvert.verification.reference import Reference
from tmconvert.verification.rounding import MARGIN, UNIT
from tmconvert.verification.ties import with_equal_elements


def judged(
    reference: Reference,
    inputs: Sequence[np.ndarray],
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    names: Sequence[str],
    *,
    is_second: bool = False,
) -> list[Comparison]:
    """Returns the comparisons, each within its tolerance. Raises VerificationError TM4001.

    A second case has inputs of our own making, for which a model may be less exact than for real ones: there,
    all that rounding of float32 can be shown to explain passes, and elements of integers that rounding
    decides, such as the sign of a sum that is zero, are left out.
    """
    comparisons = [
        with_coarser(each, array, reference.computes_in)
        for each, array in zip(compare(actual, expected, names), expected, strict=True)
    ]
    if all(each.ok for each in comparisons) or reference.lacks([]):
        return refuse_wrong(comparisons)
    comparisons = _but_for_rounding(reference, inputs, actual, expected, comparisons, is_second)
    if not all(each.ok for each in comparisons):
        if is_second:
            actual = _with_undecided_integers(reference, inputs, actual, expected, comparisons)
        reordered = with_equal_elements(reference, inputs, actual, expected, comparisons)
        again = compare(reordered, expected, names)
        comparisons = [
            one if one.ok and other.ok else other for one, other in zip(comparisons, again, strict=True)
        ]
    return refuse_wrong(comparisons)


def _with_undecided_integers(
    reference: Reference,
    inputs: Sequence[np.ndarray],
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    comparisons: Sequence[Comparison],
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


def _but_for_rounding(
    reference: Reference,
    inputs: Sequence[np.ndarray],
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    comparisons: list[Comparison],
    is_second: bool,
) -> list[Comparison]:
    """Returns the error of an output that consists of rounding errors only, relative to the summed values."""
    found = list(comparisons)
    numbers = [
        number
        for number, each in enumerate(comparisons)
        if not each.ok
        and expected[number].dtype.kind == "f"
        and each.shape == each.expected_shape
        and not np.isinf(each.max_error)
    ]
    try:
        noises = reference.noise(inputs, numbers) if numbers else []
    except (ValueError, IndexError):  # the data decides on shapes
        return found
    for number, noise in zip(numbers, noises, strict=True):
        each, wanted = comparisons[number], expected[number]
        if noise and (is_second or float(np.max(np.abs(wanted))) <= MARGIN * noise):
            off = float(np.max(np.abs(actual[number].astype(np.float64) - wanted)))
            found[number] = each._replace(max_error=off / (noise / UNIT), tolerance=MARGIN * UNIT)
    return found
