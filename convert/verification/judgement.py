"""Decides whether a file's outputs match the reference, also where tolerances alone cannot.

What differs by more than the tolerance may still be right: an output that is zero but for rounding, and the
order of elements that are equal. Both are shown for the outputs at hand, never assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.verification.compare import Comparison, compare, refuse_wrong, with_coarser
from tmconvert.verification.reference import Reference
from tmconvert.verification.rounding import COARSE, MARGIN, UNIT
from tmconvert.verification.ties import with_equal_elements


def judged(
    reference: Reference,
    inputs: Sequence[np.ndarray],
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    names: Sequence[str],
    *,
    is_drawn: bool = False,
    is_second: bool = False,
) -> list[Comparison]:
    """Returns the comparisons, each within its tolerance. Raises VerificationError TM4001.

    For inputs of our own making, ``is_drawn``, a model may be less exact than for real ones. There, an output
    may differ as much as rounding of float32 changes it by measurement. In a second case, which is drawn,
    all that rounding can be shown to explain passes, and elements of integers that rounding decides, such as
    the sign of a sum that is zero, are left out.
    """
    comparisons = [
        with_coarser(each, array, reference.computes_in)
        for each, array in zip(compare(actual, expected, names), expected, strict=True)
    ]
    if all(each.ok for each in comparisons) or reference.lacks([]):
        return refuse_wrong(comparisons)
    comparisons = _but_for_kernels(reference, inputs, actual, expected, comparisons)
    margin = MARGIN if is_second else 1.0 if is_drawn else 0.0
    comparisons = _but_for_rounding(reference, inputs, actual, expected, comparisons, margin)
    if not all(each.ok for each in comparisons):
        decided = actual
        if is_second:
            decided = _with_undecided_integers(reference, inputs, actual, expected, comparisons)
        reordered = with_equal_elements(reference, inputs, decided, expected, comparisons)
        again = compare(reordered, expected, names)
        comparisons = [
            each if new is old else other
            for each, other, new, old in zip(comparisons, again, reordered, actual, strict=True)
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
    margin: float,
) -> list[Comparison]:
    """Returns the error of an output relative to the summed values, where it consists of rounding errors only
    or is off by less than ``margin`` times these.
    """
    found, numbers = list(comparisons), _inexact(expected, comparisons)
    try:
        noises = reference.noise(inputs, numbers) if numbers else []
    except (ValueError, IndexError):  # the data decides on shapes
        return found
    for number, noise in zip(numbers, noises, strict=True):
        each, wanted = comparisons[number], expected[number]
        most = MARGIN if noise and float(np.max(np.abs(wanted))) <= MARGIN * noise else margin
        if noise and most:
            off = _distance(actual[number], wanted)
            found[number] = each._replace(max_error=off / (noise / UNIT), tolerance=most * UNIT)
    return found


def _but_for_kernels(
    reference: Reference,
    inputs: Sequence[np.ndarray],
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    comparisons: list[Comparison],
) -> list[Comparison]:
    """Returns the error of an output that differs by no more than the absolute accuracy of some kernels.

    It is relative to the range of these kernels. A sigmoid of -12 is 6e-6, of which ONNX Runtime has one
    digit. An output that is not much larger than this is not informative.
    """
    found, numbers = list(comparisons), _inexact(expected, comparisons)
    try:
        errors = reference.kernel_errors(inputs, numbers) if numbers else []
    except (ValueError, IndexError):  # the data decides on shapes
        return found
    for number, most in zip(numbers, errors, strict=True):
        each, wanted = comparisons[number], expected[number]
        off = _distance(actual[number], wanted)
        if off <= most:
            is_noise = float(np.max(np.abs(wanted))) <= COARSE * most
            found[number] = each._replace(max_error=off / (most / UNIT), tolerance=UNIT, is_noise=is_noise)
    return found


def _inexact(expected: Sequence[np.ndarray], comparisons: Sequence[Comparison]) -> list[int]:
    """Returns the numbers of the float outputs that differ, by a finite error."""
    return [
        number
        for number, each in enumerate(comparisons)
        if not each.ok
        and expected[number].dtype.kind == "f"
        and each.shape == each.expected_shape
        and not np.isinf(each.max_error)
    ]


def _distance(actual: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.max(np.abs(actual.astype(np.float64) - wanted)))
