"""Handles unbatched inputs, and arguments per axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tmconvert.frontends.torch.adapters.values import cast, kind_of, rank, reshaped, static_int, static_ints
from tmconvert.ir.emitter import Emitter


def per_axis(g: Emitter, value, axes: int) -> list[Any]:
    """Returns one int per axis, from one for all, a list of one, or a list of them."""
    items = static_ints(g, value)
    return items * axes if len(items) == 1 else items


def batched(g: Emitter, x, axes: int, compute: Callable[[Any], Any]) -> Any:
    """Applies ``compute`` to ``x`` [N, C, ...] with this number of spatial axes; N may be missing.

    Of several results each loses its first axis again.
    """
    if rank(g, x) != axes + 1:
        return compute(x)
    results = compute(reshaped(g, x, [1, *g.type(x).shape]))
    if isinstance(results, (list, tuple)):
        return tuple(_first(g, result) for result in results)
    return _first(g, results)


def _first(g, x):
    return reshaped(g, x, list(g.type(x).shape[1:]))


def in_one_type(g: Emitter, x, *parameters) -> list[Any]:
    """Casts ``x`` and its parameters to their widest type: parameters may be float32 where ``x`` is not."""
    dtypes = [g.type(value).dtype for value in (x, *parameters) if value is not None]
    widest = max(dtypes, key=lambda dtype: (kind_of(dtype), dtype.itemsize))
    return [None if value is None else cast(g, value, widest) for value in (x, *parameters)]


def size_of_axis(g, value, extent):
    """Returns the requested output size of an axis; None means that of the input."""
    return extent if value is None else static_int(g, value)
