"""Argument conversions of ONNX's adapters: those of all frontends, and constants like a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.formats.onnx.element_types import ELEMENT_TYPES, REFUSED_TYPES, ElementType
from tmconvert.frontends.shared.arguments import (
    axes_of,
    axis_of,
    cast,
    floating,
    is_tensor,
    known_numbers,
    like,
    rank,
    reshaped,
    scalar,
    stacked,
    static_int,
    static_ints,
)
from tmconvert.ir.emitter import Emitter

__all__ = [
    "axes_of", "axis_of", "cast", "dtype_of", "element_type", "floating", "is_tensor", "known_numbers",
    "like", "per_channel", "rank", "reshaped", "scalar", "stacked", "static_int", "static_ints",
]  # fmt: skip


def dtype_of(number: int) -> np.dtype:
    """Returns the element type of a graph for a number of TensorProto.DataType. Raises Refusal."""
    return element_type(number).dtype


def element_type(number: int) -> ElementType:
    """Returns the element type with a number of TensorProto.DataType. Raises Refusal."""
    if number in ELEMENT_TYPES:
        return ELEMENT_TYPES[number]
    raise Refusal(f"elements are {REFUSED_TYPES.get(number, f'of the unknown type {number}')}")


def per_channel(g: Emitter, vector, rank_: int, axis: int) -> Any:
    """Reshapes a vector so that it lies along an axis of a tensor with ``rank_`` axes; a number stays."""
    if not g.type(vector).rank or g.type(vector).size == 1:
        return reshaped(g, vector, [])
    return reshaped(g, vector, [-1 if place == axis else 1 for place in range(rank_)])
