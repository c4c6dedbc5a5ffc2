"""Compares outputs with a reference, within tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir.types import Arrays, TensorType

# The largest max|a - b| / max|b| that passes; integers and booleans must be equal.
TOLERANCES: dict[str, float] = {
    "float64": 1e-4,  # targets compute in float32
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 8e-2,  # which has three bits less
    "int64": 0.0,
    "int32": 0.0,
    "int16": 0.0,
    "int8": 0.0,
    "uint64": 0.0,
    "uint32": 0.0,
    "uint16": 0.0,
    "uint8": 0.0,
    "bool": 0.0,
}


class Comparison(NamedTuple):
    """The difference of one output of a file from the reference.

    ``max_error`` is max|actual - expected| / max|expected| over finite elements; the absolute error
    where everything expected is zero, and for integers. It is infinite when the shapes differ, or
    the positions of NaN and infinities. ``is_noise`` states that the output is hardly larger than the
    accuracy of the kernels that compute it. ``is_undecided`` states that it differs by no more than rounding
    moves it in the source itself: by an arbitrary choice among equal values, for example.
    """

    output: str
    max_error: float
    tolerance: float
    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    is_noise: bool = False
    is_undecided: bool = False

    @property
    def ok(self) -> bool:
        return self.max_error <= self.tolerance

    def reason(self) -> str:
        """Returns the failure as text."""
        if self.shape != self.expected_shape:
            return f"output {self.output} has shape {list(self.shape)}, expected {list(self.expected_shape)}"
        if np.isinf(self.max_error):
            return f"output {self.output} has NaN or infinity where its source does not, or the reverse"
        return f"output {self.output} differs by {self.max_error:.1e}, more than {self.tolerance:.0e}"


def compare(actual: Arrays, expected: Arrays, names: Sequence[str]) -> list[Comparison]:
    """Returns one Comparison per output."""
    return [_compare(a, b, name) for a, b, name in zip(actual, expected, names, strict=True)]


def check(
    actual: Arrays, expected: Arrays, names: Sequence[str], *, tolerances: Sequence[float] | None = None
) -> list[Comparison]:
    """Returns the comparisons; each must be within its tolerance (by default that of its dtype).

    Raises: VerificationError TM4001 that names the worst output.
    """
    comparisons = compare(actual, expected, names)
    if tolerances is not None:
        pairs = zip(comparisons, tolerances, strict=True)
        comparisons = [each._replace(tolerance=tolerance) for each, tolerance in pairs]
    return refuse_wrong(comparisons)


def refuse_wrong(comparisons: list[Comparison]) -> list[Comparison]:
    """Returns the comparisons. Raises VerificationError TM4001 for the worst output beyond tolerance."""
    wrong = sorted(
        (each for each in comparisons if not each.ok and not each.is_undecided),
        key=lambda each: -each.max_error,
    )
    if not wrong:
        return comparisons
    notes = [("also", each.reason()) for each in wrong[1:]]
    reason = f"the outputs of the file differ from those of its source: {wrong[0].reason()}"
    error = VerificationError("TM4001", reason, notes=notes)
    error.outputs = tuple(each.output for each in wrong)
    raise error


def example_inputs(types: Sequence[TensorType], seed: int = 0) -> list[np.ndarray]:
    """Returns random arrays: floats standard normal, integers 0 or 1 (valid indices for any axis of two)."""
    random = np.random.default_rng(seed)
    arrays = []
    for type_ in types:
        if type_.dtype.kind == "f":
            arrays.append(random.standard_normal(type_.shape).astype(type_.dtype))
        else:
            arrays.append(random.integers(0, 2, type_.shape).astype(type_.dtype))
    return arrays


def _compare(actual: np.ndarray, expected: np.ndarray, name: str) -> Comparison:
    actual, expected = np.asarray(actual), np.asarray(expected)
    error = max_error(actual, expected) if actual.shape == expected.shape else float("inf")
    return Comparison(name, error, _tolerance(actual, expected), actual.shape, expected.shape)


def _tolerance(actual: np.ndarray, expected: np.ndarray) -> float:
    """Returns the tolerance of the coarser of two float types; integers are exact, also stored as floats."""
    wanted = TOLERANCES[expected.dtype.name]
    return max(wanted, TOLERANCES[actual.dtype.name]) if wanted else wanted


def with_coarser(comparison: Comparison, expected: np.ndarray, dtype: str) -> Comparison:
    """Returns the comparison of a float output with the tolerance of ``dtype``, if that is larger."""
    if not dtype or expected.dtype.kind != "f":
        return comparison
    return comparison._replace(tolerance=max(comparison.tolerance, TOLERANCES[dtype]))


def max_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Returns the ``max_error`` of the Comparison of two arrays of one shape."""
    if expected.size == 0 or np.array_equal(actual, expected):
        return 0.0
    if expected.dtype.kind != "f" and actual.dtype.kind != "f":
        differing = actual != expected  # differences of Python integers: neither wrap nor round
        pairs = zip(actual[differing].tolist(), expected[differing].tolist(), strict=True)
        return float(max(abs(int(a) - int(b)) for a, b in pairs))
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)) or not np.array_equal(
        a[~finite], b[~finite], equal_nan=True
    ):
        return float("inf")
    if not finite.any():
        return 0.0
    return float(np.abs(a[finite] - b[finite]).max() / scale_of(expected))


def scale_of(expected: np.ndarray) -> float:
    """Returns what the ``max_error`` of a Comparison with ``expected`` is relative to."""
    if expected.dtype.kind != "f":
        return 1.0
    return float(np.max(np.abs(expected), initial=0, where=np.isfinite(expected))) or 1.0
