"""``x[...]`` and ``x[...] = value`` by NumPy's rules, which MegEngine follows.

An index is first split: slices, with numbers where no tensor is, are cuts along one axis each; numbers and
tensors of numbers choose elements. What is chosen is then cut, or put back, axis by axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import Refusal
from ....ir import TensorNode
from ....ir.data_sizes import data_symbols
from ....ir.dims import Dim
from ....ir.emitter import Emitter
from ....symbolics.idioms.indices import let_through, places
from .values import cast, is_tensor, reshaped, static_int


@dataclass
class Index:
    """An index of a tensor whose new axes are there already, one entry an axis.

    ``cuts`` are (start, stop, step) with a positive step, within the axis; ``backwards`` the axes that are
    read from the end; ``picks`` numbers and tensors of numbers, None where there are none.
    """

    shape: list[int]
    cuts: list[tuple[int, int, int]]
    backwards: list[int]
    picks: list[Any]

    @property
    def is_basic(self) -> bool:
        return not any(is_tensor(pick) for pick in self.picks)


def getitem(g: Emitter, x: Any, index: Any) -> Any:
    """``x[index]``; a list that holds more than numbers is taken for a tuple."""
    if isinstance(index, list) and not all(isinstance(item, (int, float, np.number)) for item in index):
        index = tuple(index)
    mask = _computed_mask(g, x, index)
    if mask is not None:
        _checked_mask(g, x, *mask)
        return let_through(g, x, *mask)
    parsed = _parsed(g, x, index)
    x = reshaped(g, x, parsed.shape)
    for axis, cut in enumerate(parsed.cuts):
        if not (parsed.is_basic and parsed.picks[axis] is not None):
            x = _cut(g, x, axis, cut)
    if parsed.backwards:
        x = g.call("aten::flip", x, parsed.backwards)
    return _selected(g, x, parsed.picks) if parsed.is_basic else _chosen(g, x, parsed.picks)


def setitem(g: Emitter, x: Any, index: Any, value: Any) -> Any:
    """``x`` after ``x[index] = value``, with the axes that None in the index inserts.

    The value takes the tensor's element type. An index that is ``...`` alone makes the value the tensor.
    """
    return written(g, x, index, value)


def written(g: Emitter, x: Any, index: Any, value: Any, *, adds: bool = False) -> Any:
    """``setitem``; where ``adds``, the value is added to what is there, as often as an element is named."""
    value = _tensor(g, value)
    if index is Ellipsis:
        return value
    value = cast(g, value, g.type(x).dtype)
    mask = _computed_mask(g, x, index)
    blended = None if mask is None or adds else _blended(g, x, mask, value)
    if blended is not None:
        return blended
    parsed = _parsed(g, x, index)
    x = reshaped(g, x, parsed.shape)
    if any(start == stop for start, stop, _ in parsed.cuts):
        return x
    parts = [x]
    for axis, cut in enumerate(parsed.cuts):
        parts.append(_cut(g, parts[-1], axis, cut))
    part = parts.pop()
    if parsed.is_basic:
        filled = _filled(g, part, parsed, value)
        part = g.call("aten::add", part, filled) if adds else filled
    else:
        part = _put(g, part, parsed, value, adds)
    for axis in reversed(range(len(parts))):
        part = _pasted(g, parts[axis], part, axis, parsed.cuts[axis])
    return part


def _tensor(g: Emitter, value: Any) -> Any:
    """``value``, made a tensor where it is a number or an array; numbers have 32 bits, as in MegEngine."""
    if is_tensor(value) and _belongs(g, value):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise Refusal(f"{value!r} is neither a tensor nor a number")
    narrow = {"float64": np.float32, "int64": np.int32}
    return g.constant(array, narrow.get(array.dtype.name, array.dtype))


# ---- a mask of the data


def _computed_mask(g: Emitter, x: Any, index: Any) -> tuple[int, Any] | None:
    """(its first axis, the mask), if the index is a mask that is computed, and whole axes."""
    items = list(index) if isinstance(index, tuple) else [index]
    masks = [item for item in items if is_tensor(item) and _belongs(g, item) and _is_mask(g, item)]
    if len(masks) != 1 or g.known(masks[0]) is not None:
        return None
    place = next(i for i, item in enumerate(items) if item is masks[0])
    if any(not (_is_whole(item) or item is masks[0]) for item in items):
        return None
    if Ellipsis in items[:place]:
        return g.type(x).rank - g.type(masks[0]).rank - (len(items) - place - 1), masks[0]
    return place, masks[0]


def _is_whole(item: Any) -> bool:
    return item is Ellipsis or (isinstance(item, slice) and item == slice(None))


def _checked_mask(g: Emitter, x: Any, start: int, flags: Any) -> int:
    """The number of axes behind those of the mask."""
    shape, flagged = g.type(x).shape, g.type(flags).shape
    behind = len(shape) - start - len(flagged)
    if not flagged or behind < 0 or shape[start : start + len(flagged)] != flagged:
        raise Refusal(f"the mask {g.type(flags)} does not fit {g.type(x)}")
    return behind


def _blended(g: Emitter, x: Any, mask: tuple[int, Any], value: Any) -> Any:
    """The value where the mask is true; None where the value has an element for each one.

    To NumPy, all that the mask lets through is one axis of the value.
    """
    start, flags = mask
    behind = _checked_mask(g, x, start, flags)
    flagged = g.type(flags).shape
    sizes = list(g.type(value).shape)
    if len(sizes) > behind:
        place = len(sizes) - behind - 1
        if sizes[place] != 1:
            return None
        value = reshaped(g, value, [*sizes[:place], *[1] * len(flagged), *sizes[place + 1 :]])
    flags = reshaped(g, flags, [*flagged, *[1] * behind])
    return g.call("aten::where", flags, value, x)


# ---- what an index says


def _parsed(g: Emitter, x: Any, index: Any) -> Index:
    items = [_item(g, item) for item in (index if isinstance(index, tuple) else (index,))]
    sizes = iter(g.type(x).shape)
    result = Index([], [], [], [])
    for item in _expanded(g, x, items):
        extent = 1 if item is None else next(sizes)
        axis = len(result.shape)
        result.shape.append(extent)
        cut: tuple[Any, Any, int] = (0, extent, 1)
        pick = None
        if isinstance(item, slice):
            cut, is_backwards = _bounds(g, item, extent)
            result.backwards += [axis] if is_backwards else []
        elif item is not None:
            pick = _checked(g, x, axis, item, extent)
        if isinstance(pick, (int, Dim)):  # cut out now; the axis goes, or is picked from, later
            cut = (pick, pick + 1, 1)
        result.cuts.append(cut)
        result.picks.append(pick)
    if not result.is_basic:  # then NumPy takes plain numbers for tensors, too
        for axis, pick in enumerate(result.picks):
            if isinstance(pick, (int, Dim)):
                result.picks[axis] = g.constant(0, np.int32)
    return result


def _item(g: Emitter, item: Any) -> Any:
    """None, Ellipsis, a slice, an int or a tensor of integers or bools."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if item is True:
        return None
    if isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_)):
        return int(item)
    if isinstance(item, (list, tuple, range)):
        return _listed(g, list(item))
    if not is_tensor(item):
        raise Refusal(f"{item!r} is no index", "index by numbers, slices and tensors of numbers")
    if not _belongs(g, item):
        item = g.constant(item)
    type_, known = g.type(item), g.known(item)
    if type_.rank == 0 and known is None and g.sizes(item) is not None:
        return static_int(g, item, "an index")
    if type_.dtype.kind not in "iub":
        raise Refusal(f"an index must hold integers or bools, not {type_}")
    if type_.rank == 0 and known is not None and type_.dtype.kind in "iu":
        return int(known)
    return item if type_.dtype.name in ("bool", "int32", "int64") else cast(g, item, np.int32)


def _belongs(g: Emitter, item: Any) -> bool:
    """Whether a tensor is one of ``g``'s values, not an array that is a constant of the call."""
    return isinstance(item, TensorNode) or g.known(item) is not None


def _listed(g: Emitter, items: list[Any]) -> Any:
    """A list of numbers, or of tensors of one number each, as a tensor. Only a flat list is a mask."""
    if any(is_tensor(item) for item in items):
        numbers = [cast(g, _tensor(g, item), np.int32) for item in items]
        return g.call("aten::cat", [reshaped(g, item, [1]) for item in numbers], 0)
    array = np.asarray(items)
    if array.dtype.kind not in "iub" and array.size:
        raise Refusal(f"{items!r} is no index", "index by numbers, slices and tensors of numbers")
    is_mask = array.dtype.kind == "b" and array.ndim == 1
    return g.constant(array.astype(bool if is_mask else np.int32))


def _expanded(g: Emitter, x: Any, items: list[Any]) -> list[Any]:
    """One item for each axis of ``x`` (Nones besides), with masks and the Ellipsis written out."""
    written: list[Any] = []
    for item in items:
        written += places_of(g, item) if _is_mask(g, item) else [item]
    used = sum(item is not None and item is not Ellipsis for item in written)
    missing = g.type(x).rank - used
    dots = [i for i, item in enumerate(written) if item is Ellipsis]
    if missing < 0 or len(dots) > 1:
        raise Refusal(f"the index {tuple(items)!r} does not fit {g.type(x)}")
    position = dots[0] if dots else len(written)
    return [*written[:position], *[slice(None)] * missing, *written[position + 1 :]]


def _is_mask(g: Emitter, item: Any) -> bool:
    return is_tensor(item) and g.type(item).dtype.kind == "b"


def places_of(g: Emitter, mask: Any) -> list[Any]:
    """The numbers of what a mask lets through, a tensor for each of its axes."""
    known, axes = g.known(mask), g.type(mask).rank
    if not axes:
        raise Refusal("a single bool is no index", "index by numbers, slices and tensors of numbers")
    if known is None:
        return places(g, mask)
    return [g.constant(places.astype(np.int32)) for places in known.nonzero()]


def _bounds(g: Emitter, item: slice, extent: int) -> tuple[tuple[int, int, int], bool]:
    """(start, stop, step) with a positive step, and whether the elements come in reverse order."""
    parts = [
        None if part is None else static_int(g, part, "a slice bound")
        for part in (item.start, item.stop, item.step)
    ]
    if parts[2] == 0:
        raise Refusal("the step of a slice cannot be 0")
    if parts == [None, None, -1]:
        return (0, extent, 1), True
    if data_symbols(extent):
        return _bounds_of_unknown(parts, extent), False
    start, stop, step = _indices(parts, extent)
    if step > 0:
        return (start, max(start, stop), step), False
    places = range(start, stop, step)[::-1]
    if not places:
        return (0, 0, 1), False
    return (places.start, places[-1] + 1, places.step), len(places) > 1


def _bounds_of_unknown(parts: list[Any], extent: Any) -> tuple[Any, Any, int]:
    """Bounds that aten::slice compares with the extent when it is known."""
    if any(isinstance(part, int) and part < 0 for part in parts):
        raise Refusal(
            f"a slice counts from the end of an axis of {extent} elements, a size that depends on the data",
            "count from its start",
        )
    start, stop, step = parts
    return start or 0, extent if stop is None else stop, step or 1


def _indices(parts: list[Any], extent: Any) -> tuple[Any, Any, int]:
    """``slice(*parts).indices(extent)``, for Dims too."""
    step = 1 if parts[2] is None else parts[2]
    first, last = (0, extent) if step > 0 else (-1, extent - 1)

    def bound(value: Any, default: Any) -> Any:
        if value is None:
            return default
        value = value + extent if value < 0 else value
        return first if value < first else last if value > last else value

    start = bound(parts[0], first if step > 0 else last)
    return start, bound(parts[1], last if step > 0 else first), step


def _checked(g: Emitter, x: Any, axis: int, pick: Any, extent: int) -> Any:
    """``pick`` within its axis; a number counted from the front."""
    if isinstance(pick, Dim) or (isinstance(pick, int) and isinstance(extent, Dim)):
        if not data_symbols([extent, pick]) and not -extent <= pick < extent:
            raise Refusal(f"index {pick} is out of range for axis {axis} of {g.type(x)}")
        return pick + extent if pick < 0 else pick
    known = np.asarray(pick) if isinstance(pick, int) else g.known(pick)
    if known is not None and known.size and not -extent <= known.min() <= known.max() < extent:
        raise Refusal(f"index {_outside(known, extent)} is out of range for axis {axis} of {g.type(x)}")
    return pick % extent if isinstance(pick, int) else pick


def _outside(known: np.ndarray, extent: int) -> int:
    return int(known[(known < -extent) | (known >= extent)].reshape(-1)[0])


# ---- reading


def _cut(g: Emitter, x: Any, axis: int, cut: tuple[int, int, int]) -> Any:
    start, stop, step = cut
    if (start, stop, step) == (0, g.type(x).shape[axis], 1):
        return x
    return g.call("aten::slice", x, axis, start, stop, step)


def _selected(g: Emitter, x: Any, picks: list[Any]) -> Any:
    for axis in reversed(range(len(picks))):
        if picks[axis] is not None:
            x = g.call("aten::select", x, axis, picks[axis])
    return x


def _chosen(g: Emitter, x: Any, picks: list[Any]) -> Any:
    axes = [axis for axis, pick in enumerate(picks) if pick is not None]
    pick = picks[axes[0]]
    if len(axes) > 1 or g.type(pick).rank != 1:
        return g.call("aten::index", x, picks[: axes[-1] + 1])
    known, extent = g.known(pick), g.type(x).shape[axes[0]]
    run = _run(known % extent) if known is not None and known.size else None
    if run is None:
        return g.call("aten::index_select", x, axes[0], pick)
    cut, is_backwards = run
    x = _cut(g, x, axes[0], cut)
    return g.call("aten::flip", x, axes[:1]) if is_backwards else x


def _run(known: np.ndarray) -> tuple[tuple[int, int, int], bool] | None:
    """The slice that takes the same elements, and whether in reverse order; None where there is none."""
    steps = {int(step) for step in np.diff(known)} or {1}
    if len(steps) > 1 or 0 in steps:
        return None
    step, low, high = steps.pop(), int(known.min()), int(known.max())
    return (low, high + 1, abs(step)), step < 0


# ---- writing


def _broadcast(g: Emitter, value: Any, shape: list[int]) -> Any:
    type_ = g.type(value)
    if list(type_.shape) == shape:
        return value
    new = len(shape) - type_.rank
    if new < 0 or any(old not in (1, extent) for old, extent in zip(type_.shape, shape[new:], strict=True)):
        raise Refusal(f"{type_} does not broadcast to {shape}")
    return g.call("aten::expand", value, shape)


def _filled(g: Emitter, part: Any, index: Index, value: Any) -> Any:
    """``value`` in the shape of ``part``, from which no element was picked yet."""
    shape = list(g.type(part).shape)
    kept = [extent for extent, pick in zip(shape, index.picks, strict=True) if pick is None]
    value = reshaped(g, _broadcast(g, value, kept), shape)
    return g.call("aten::flip", value, index.backwards) if index.backwards else value


def _put(g: Emitter, part: Any, index: Index, value: Any, adds: bool) -> Any:
    last = max(axis for axis, pick in enumerate(index.picks) if pick is not None)
    if index.backwards:
        part = g.call("aten::flip", part, index.backwards)
    part = g.call("aten::index_put", part, index.picks[: last + 1], value, adds)
    return g.call("aten::flip", part, index.backwards) if index.backwards else part


def _pasted(g: Emitter, x: Any, part: Any, axis: int, cut: tuple[int, int, int]) -> Any:
    """``x`` with ``part`` in place of its elements ``cut`` along ``axis``."""
    start, stop, step = cut
    extent = g.type(x).shape[axis]
    if (start, stop, step) == (0, extent, 1):
        return part
    return g.call("aten::slice_scatter", x, part, axis, start, stop, step)
