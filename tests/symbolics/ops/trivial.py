"""Trivial formulas that the samples of an op do not tell from the op: its arguments, zeros and ones.

A wrong symbolic that returns its argument passes where the op changes it by less than the tolerance, as
``nextafter`` does. If no sample of an op differs from a trivial formula by more than the tolerance, results
of the op are compared exactly; if all of them are equal to those of the formula, the op lacks a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from tests.symbolics.ops.harness import operands, reference
from tests.symbolics.ops.samples import SAMPLES, Sample
from tmconvert.verification.compare import compare


def accepted(op_name: str, samples: Sequence[Sample]) -> dict[str, bool]:
    """The trivial formulas that every sample accepts, and whether their results are equal to all expected."""
    found: dict[str, bool] | None = None
    for sample in samples:
        expected = reference(op_name, sample.args, sample.attributes)
        constants = {"zeros": np.zeros(()), "ones": np.ones(())}
        candidates = {name: [array] for name, array in operands(op_name, sample.args).items()} | {
            name: [np.full(each.shape, value, each.dtype) for each in expected]
            for name, value in constants.items()
        }
        near = {
            name: _are_equal(made, expected) for name, made in candidates.items() if _pass(made, expected)
        }
        found = (
            near if found is None else {name: near[name] and found[name] for name in found if name in near}
        )
    return found or {}


def _pass(made: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    """Whether the types are those expected, and the values within the tolerances."""
    types = [[(each.dtype, each.shape) for each in arrays] for arrays in (made, expected)]
    return types[0] == types[1] and all(each.ok for each in compare(made, expected, ["y"] * len(made)))


def _are_equal(made: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    return all(map(lambda a, b: np.array_equal(a, b, equal_nan=b.dtype.kind == "f"), made, expected))


@cache
def tolerance_of(op_name: str) -> float | None:
    """0 if a trivial formula is within the tolerance of the results' type, else None, which is that one."""
    return 0.0 if any(not is_equal for is_equal in accepted(op_name, SAMPLES[op_name]).values()) else None
