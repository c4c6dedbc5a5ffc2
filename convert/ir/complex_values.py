"""Complex tensors inside of a model: a graph of ops has two real tensors for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# of a complex type, by its name in NumPy or PyTorch
PART_NAMES = {"complex64": "float32", "complex128": "float64", "cfloat": "float32", "cdouble": "float64"}


@dataclass(frozen=True, eq=False)
class Complex:
    """A complex tensor: two real ones of equal type."""

    real: Any
    imag: Any

    def __repr__(self) -> str:
        return "complex tensors (torch.view_as_real converts them to real ones)"


def parts_of(values: Iterable[Any]) -> list[Any]:
    """Returns values with the real and the imaginary part in the place of a complex tensor."""
    pairs = ((value.real, value.imag) if isinstance(value, Complex) else (value,) for value in values)
    return [part for pair in pairs for part in pair]


def from_parts(like: Iterable[Any], parts: Iterable[Any]) -> list[Any]:
    """Returns values of parts, complex where ``like`` has a complex tensor, or a pair of its parts."""
    found = iter(parts)
    return [
        Complex(next(found), next(found)) if isinstance(each, (Complex, tuple)) else next(found)
        for each in like
    ]
