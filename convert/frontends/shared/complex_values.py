"""Complex tensors inside of a model: a graph of ops has two real tensors for each."""

from __future__ import annotations

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
