"""Complex tensors inside of a model: a graph of ops has two real tensors for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Complex:
    """A complex tensor: two real ones of equal type."""

    real: Any
    imag: Any

    def __repr__(self) -> str:
        return "complex tensors (torch.view_as_real converts them to real ones)"
