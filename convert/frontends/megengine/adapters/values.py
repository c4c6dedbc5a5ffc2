"""Argument conversions of MegEngine's adapters: those of all frontends, and MegEngine's type promotion."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.arguments import (
    MAX_INTS,
    axes_of,
    axis_of,
    cast,
    floating,
    is_tensor,
    rank,
    reshaped,
    static_int,
    static_ints,
)
from tmconvert.ir.emitter import Emitter

__all__ = [
    "MAX_INTS", "axes_of", "axis_of", "cast", "floating", "is_tensor", "per_axis", "promoted", "rank",
    "reshaped", "static_int", "static_ints",
]  # fmt: skip


def per_axis(g: Emitter, value, axes: int) -> list[int]:
    """Window parameters: an int for all axes, or one per axis; also sizes of tensors."""
    items = list(value) if isinstance(value, (list, tuple)) else [value] * axes
    if len(items) != axes:
        raise Refusal(f"{value!r} is neither an int nor {axes} of them")
    return [int(item) for item in static_ints(g, items, "a number of a window")]


def promoted(g: Emitter, *values, to_float: bool = False) -> list[Any]:
    """Returns operands as tensors of one dtype, by MegEngine's promotion rules.

    A Python scalar takes the tensors' dtype (and wraps around in it), but a float makes an integer tensor
    float32; tensors of different dtypes become the wider one, those of different categories float32. NumPy's
    scalars count as tensors. ``to_float`` makes integers float32 (true division).
    """
    values = tuple(g.constant(value) if isinstance(value, np.generic) else value for value in values)
    dtypes = [g.type(value).dtype for value in values if is_tensor(value)]
    if not dtypes:
        raise Refusal(f"none of {', '.join(map(repr, values))} is a tensor")
    dtype = functools.reduce(_wider, dtypes)
    has_float = any(isinstance(value, float) for value in values)
    # MegEngine computes with bools only among each other
    has_bool = dtype.kind == "b" and not all(is_tensor(value) or isinstance(value, bool) for value in values)
    if dtype.kind != "f" and (has_float or has_bool or to_float):
        dtype = np.dtype(np.float32)
    return [cast(g, value, dtype) if is_tensor(value) else _numbers(g, value, dtype) for value in values]


def _numbers(g: Emitter, value, dtype: np.dtype) -> Any:
    """Returns a constant from a Python number or a list of numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":  # NumPy makes NaN of None, and numbers of texts
        raise Refusal(f"{value!r} is neither a tensor nor a number")
    return g.constant(array.astype(dtype) if dtype.kind in "iu" else value, dtype)


def _wider(first: np.dtype, second: np.dtype) -> np.dtype:
    kinds = {"i" if dtype.kind == "u" else dtype.kind for dtype in (first, second)}
    return np.promote_types(first, second) if len(kinds) == 1 else np.dtype(np.float32)
