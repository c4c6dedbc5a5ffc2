"""Decides which outputs are undecided: those that rounding moves as far in the source itself.

An arbitrary choice among equal values explains other values, and other counts where a size depends on the
choice. It explains neither an empty output, nor a constant, nor NaN, unless the source gives these, too.
"""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import Arrays
from tmconvert.verification.compare import Comparison, max_error, scale_of
from tmconvert.verification.reference import Reference

FAR = 4.0  # times what rounding moves an output, it may differ without being wrong


def with_undecided(
    reference: Reference, inputs: Arrays, actual: Arrays, expected: Arrays, comparisons: list[Comparison]
) -> list[Comparison]:
    """Returns the comparisons, with ``is_undecided`` for outputs that differ as the source's own do."""
    found, runs = list(comparisons), list[list[np.ndarray]]()
    try:
        for run in reference.rounded_runs(inputs):
            runs.append(run)
            for number, each in enumerate(found if len(runs) > 1 else ()):
                if not each.ok and not each.is_undecided:
                    own = [other[number] for other in runs]
                    is_alike = _is_explained(each, actual[number], expected[number], own)
                    found[number] = each._replace(is_undecided=is_alike)
            if len(runs) > 1 and all(each.ok or each.is_undecided for each in found):
                break
    except (ValueError, IndexError):  # the data decides on shapes, or the budget is used up
        pass
    return found


def _is_explained(comparison: Comparison, actual: np.ndarray, expected: np.ndarray, runs: Arrays) -> bool:
    """Whether the output may be one of the source, of which ``runs`` are as many with other rounding; the
    last of them is new.
    """
    plain, last = runs[0], runs[-1]
    if {run.ndim for run in (actual, *runs)} != {expected.ndim} or _is_vacuous(actual, expected, runs):
        return False
    if actual.shape == expected.shape and last.shape == plain.shape:
        spread = max_error(last, plain) * scale_of(plain)
        if np.isfinite(spread):
            return comparison.max_error <= FAR * spread / scale_of(expected)
    sizes = zip(actual.shape, expected.shape, *(run.shape for run in runs), strict=True)
    return (
        all(_is_near(*each) for each in sizes)
        and _is_near(*(int((~np.isfinite(each)).sum()) for each in (actual, expected, *runs)))
        and _is_within(actual, [expected, *runs])
    )


def _is_near(count: int, wanted: int, plain: int, *others: int) -> bool:
    """Whether a count differs from the wanted one by little more than rounding moves that of the source."""
    moved = max(abs(other - plain) for other in others)
    return abs(count - wanted) <= FAR * moved and wanted <= 2 * count <= 4 * wanted


def _is_vacuous(actual: np.ndarray, expected: np.ndarray, runs: Arrays) -> bool:
    """Whether the output has no finite element, or equal floats, where the source's always have others."""
    finite = [each[np.isfinite(each)] for each in (actual, expected, *runs)]
    if not finite[0].size:
        return all(each.size for each in finite[1:])
    is_equal = [each.size > 1 and bool((each == each[0]).all()) for each in finite]
    return actual.dtype.kind == "f" and is_equal[0] and not any(is_equal[1:])


def _is_within(actual: np.ndarray, runs: Arrays) -> bool:
    """Whether the finite elements are in the range of those of ``runs``, or hardly beyond it."""
    known = np.concatenate([run[np.isfinite(run)] for run in runs]).astype(np.float64)
    finite = actual[np.isfinite(actual)].astype(np.float64)
    if not finite.size or not known.size:
        return not finite.size
    margin = np.ptp(known) / FAR
    return bool(finite.min() >= known.min() - margin and finite.max() <= known.max() + margin)
