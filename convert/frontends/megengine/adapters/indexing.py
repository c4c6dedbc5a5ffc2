"""``x[...]`` with constant indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import Refusal
from ....ir.emitter import Emitter
from .values import is_tensor, reshaped, static_int


def getitem(g: Emitter, x: Any, index: Any) -> Any:
    """Basic indexing by NumPy's rules: ints, slices, Ellipsis and None, alone or in a tuple."""
    items = _expanded(g, x, index if isinstance(index, tuple) else (index,))
    axis, shape = 0, []
    for item in items:
        if item is None:
            shape.append(1)
        elif isinstance(item, slice):
            x = _sliced(g, x, axis, item)
            shape.append(g.type(x).shape[axis])
            axis += 1
        else:
            x = _selected(g, x, axis, static_int(g, item, "an index"))
    return reshaped(g, x, shape) if any(item is None for item in items) else x


def _expanded(g: Emitter, x: Any, items: tuple[Any, ...]) -> list[Any]:
    """One item for each axis of ``x`` (Nones besides), with the Ellipsis written out."""
    for item in items:
        if not _is_basic(g, item):
            raise Refusal(
                "indexing by a tensor, a mask or a list is not supported",
                "use gather, or an index that is a constant number or slice",
            )
    used = sum(item is not None and item is not Ellipsis for item in items)
    missing = g.type(x).rank - used
    if missing < 0 or sum(item is Ellipsis for item in items) > 1:
        raise Refusal(f"the index {items!r} does not fit {g.type(x)}")
    position = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
    return [*items[:position], *[slice(None)] * missing, *items[position + 1 :]]


def _is_basic(g: Emitter, item: Any) -> bool:
    if is_tensor(item):
        type_, known = g.type(item), g.known(item)
        return type_.rank == 0 and type_.dtype.kind in "iu" and known is not None
    return item is None or item is Ellipsis or (isinstance(item, (slice, int)) and not isinstance(item, bool))


def _sliced(g: Emitter, x: Any, axis: int, item: slice) -> Any:
    parts = [
        None if part is None else static_int(g, part, "a slice bound")
        for part in (item.start, item.stop, item.step)
    ]
    if parts[2] is not None and parts[2] <= 0:
        raise Refusal("slices with a negative step are not supported")
    extent = g.type(x).shape[axis]
    start, stop, step = slice(*parts).indices(extent)
    if (start, step) == (0, 1) and stop >= extent:
        return x
    return g.call("aten::slice", x, axis, start, max(stop, start), step)


def _selected(g: Emitter, x: Any, axis: int, index: int) -> Any:
    extent = g.type(x).shape[axis]
    if not -extent <= index < extent:
        raise Refusal(f"index {index} is out of range for axis {axis} of {g.type(x)}")
    return g.call("aten::select", x, axis, int(np.mod(index, extent)))
