"""``x[...]`` and ``x[...] = value``.

An index is first split by axis: a slice selects a range, an integer selects one element and removes the axis,
index tensors are broadcast together. The elements are then read or written axis by axis. In NumPy, whose
rules MegEngine follows, integers next to index tensors count as index tensors, which decides the position of
the resulting axes. In torch they do not, and a tensor of rank 0 counts as an integer (``numbers_first``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.arguments import cast, is_tensor, reshaped, static_int
from tmconvert.ir import TensorNode
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.clamps import maximum, minimum
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.symbolics.idioms.indices import counted_from_the_front, let_through, places


@dataclass
class Index:
    """A normalized index, with one entry per axis, of a tensor that already has the new axes.

    ``cuts`` are (start, stop, step) with a positive step, within the axis; ``backwards`` the axes that are
    read from the end; ``numbers`` are ints, Dims and tensors of rank 0, ``picks`` the index tensors, None for
    axes without one.
    """

    shape: list[int]
    cuts: list[tuple[Any, Any, int]]
    backwards: list[int]
    numbers: list[Any]
    picks: list[Any]

    @property
    def is_empty(self) -> bool:
        """Whether the index certainly selects no element."""
        return any(start == stop for start, stop, _ in self.cuts)

    @property
    def is_plain(self) -> bool:
        """Whether the index consists of slices from the front and integers."""
        return not self.backwards and self.tensors() is None

    def without_numbers(self, items: Sequence[object]) -> list[Any]:
        """Returns the items of the axes that remain."""
        return [item for item, number in zip(items, self.numbers, strict=True) if number is None]

    def tensors(self) -> list[Any] | None:
        """Returns the index tensors of the axes that remain after integer indices; None without any."""
        picks = self.without_numbers(self.picks)
        while picks and picks[-1] is None:
            picks.pop()
        return picks or None


def getitem(g: Emitter, x: object, index: object, *, numbers_first: bool = False) -> Any:
    """``x[index]``."""
    mask = _computed_mask(g, x, index)
    if mask is not None:
        _checked_mask(g, x, *mask)
        return let_through(g, x, *mask)
    parsed = _parsed(g, x, index, numbers_first)
    x = reshaped(g, x, parsed.shape)
    for axis, cut in enumerate(parsed.cuts):
        x = _cut(g, x, axis, cut)
    if parsed.backwards:
        x = g.call("aten::flip", x, parsed.backwards)
    for axis in reversed(range(len(parsed.numbers))):
        if parsed.numbers[axis] is not None:
            x = _element(g, x, axis, parsed.numbers[axis])
    picks = parsed.tensors()
    return x if picks is None else _chosen(g, x, picks)


def written(
    g: Emitter, x: object, index: object, value: object, *, adds: bool = False, numbers_first: bool = False
) -> Any:
    """Returns ``x`` after ``x[index] = value``, with the axes that None in the index inserts.

    The value takes the tensor's element type. With ``adds`` the value is added to the elements, repeatedly
    for repeated indices.
    """
    from tmconvert.frontends.shared.partial_writes import partial_axis, with_slice

    value = cast(g, value, g.type(x).dtype)
    mask = _computed_mask(g, x, index)
    blended = None if mask is None or adds else _blended(g, x, mask, value)
    if blended is not None:
        return blended
    parsed = _parsed(g, x, index, numbers_first)
    x = reshaped(g, x, parsed.shape)
    if parsed.is_empty:
        return x
    partial = (
        partial_axis(parsed.shape, parsed.cuts, parsed.numbers) if parsed.is_plain and not adds else None
    )
    if partial is not None:
        written_cut, parsed.cuts[partial] = parsed.cuts[partial], (0, parsed.shape[partial], 1)
    parts = [x]
    for axis, cut in enumerate(parsed.cuts):
        parts.append(_cut(g, parts[-1], axis, cut))
        if parsed.numbers[axis] is not None:
            parts[-1] = _element(g, parts[-1], axis, parsed.numbers[axis], keeps_axis=True)
    part = parts.pop()
    if partial is not None:
        kept = reshaped(g, part, parsed.without_numbers(list(g.type(part).shape)))
        remaining = sum(number is None for number in parsed.numbers[:partial])
        value = with_slice(g, kept, value, remaining, written_cut)
    part = _filled(g, part, parsed, value, adds)
    for axis in reversed(range(len(parts))):
        part = _pasted(g, parts[axis], part, axis, parsed.cuts[axis], parsed.numbers[axis])
    return part


def unlisted(index: object) -> Any:
    """Converts a list that contains more than integers to a tuple."""
    if isinstance(index, list) and not all(isinstance(item, (int, float, np.number)) for item in index):
        return tuple(index)
    return index


# ---- a mask of the data


def _computed_mask(g: Emitter, x: object, index: object) -> tuple[int, Any] | None:
    """Returns (its first axis, the mask) if the index is one computed mask and full slices otherwise."""
    items = list(index) if isinstance(index, tuple) else [index]
    masks = [item for item in items if is_tensor(item) and belongs(g, item) and _is_mask(g, item)]
    if len(masks) != 1 or g.known(masks[0]) is not None:
        return None
    place = next(i for i, item in enumerate(items) if item is masks[0])
    if any(not (_is_whole(item) or item is masks[0]) for item in items):
        return None
    if Ellipsis in items[:place]:
        return g.type(x).rank - g.type(masks[0]).rank - (len(items) - place - 1), masks[0]
    return place, masks[0]


def _is_whole(item: object) -> bool:
    return item is Ellipsis or (isinstance(item, slice) and item == slice(None))


def _checked_mask(g: Emitter, x: object, start: int, flags: object) -> int:
    """Returns the number of axes after those of the mask."""
    shape, flagged = g.type(x).shape, g.type(flags).shape
    after = len(shape) - start - len(flagged)
    if after < 0 or shape[start : start + len(flagged)] != flagged:
        raise Refusal(f"the mask {g.type(flags)} does not fit {g.type(x)}")
    return after


def _blended(g: Emitter, x: object, mask: tuple[int, object], value: object) -> Any:
    """Selects the value where the mask is true; None if the value has one element per true element.

    To NumPy, all that the mask lets through is one axis of the value.
    """
    start, flags = mask
    after = _checked_mask(g, x, start, flags)
    flagged = g.type(flags).shape
    sizes = list(g.type(value).shape)
    if len(sizes) > after:
        place = len(sizes) - after - 1
        if sizes[place] != 1:
            return None
        value = reshaped(g, value, [*sizes[:place], *[1] * len(flagged), *sizes[place + 1 :]])
    flags = reshaped(g, flags, [*flagged, *[1] * after])
    return g.call("aten::where", flags, value, x)


# ---- what an index says


def _parsed(g: Emitter, x: object, index: object, numbers_first: bool) -> Index:
    items = [_item(g, item) for item in (index if isinstance(index, tuple) else (index,))]
    sizes = iter(g.type(x).shape)
    result = Index([], [], [], [], [])
    for item in _expanded(g, x, items):
        is_new = item is None or isinstance(item, bool)
        extent = 1 if is_new else next(sizes)
        axis = len(result.shape)
        result.shape.append(extent)
        cut: tuple[Any, Any, int] = (0, extent, 1)
        number = pick = None
        if isinstance(item, slice):
            cut, is_backwards = _bounds(g, item, extent)
            result.backwards += [axis] if is_backwards else []
        elif isinstance(item, bool):
            pick = g.constant(np.arange(int(item)))
        elif item is not None:
            pick = _checked(g, x, axis, item, extent)
        if isinstance(pick, (int, Dim)) or (numbers_first and is_tensor(pick) and not g.type(pick).rank):
            number, pick = pick, None
        result.cuts.append(cut)
        result.numbers.append(number)
        result.picks.append(pick)
    if not numbers_first and result.tensors():
        for axis, number in enumerate(result.numbers):
            if number is not None:
                result.numbers[axis], result.picks[axis] = None, g.constant(number, np.int32)
    return result


def _item(g: Emitter, item: object) -> Any:
    """Returns None, Ellipsis, a slice, a bool, an int, a Dim or a tensor of integers or bools."""
    if item is None or item is Ellipsis or isinstance(item, (slice, bool, Dim)):
        return item
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, (list, tuple, range)):
        return _listed(g, list(item))
    if not is_tensor(item):
        raise Refusal(f"{item!r} is not an index", "use integers, slices and integer tensors as indices")
    if not belongs(g, item):
        item = g.constant(item)
    type_, known = g.type(item), g.known(item)
    if type_.rank == 0 and known is None and g.sizes(item) is not None:
        return static_int(g, item, "an index")
    if type_.dtype.kind not in "iub":
        raise Refusal(f"an index must hold integers or bools, not {type_}")
    if type_.rank == 0 and known is not None:
        return bool(known) if type_.dtype.kind == "b" else int(known)
    return item if type_.dtype.name in ("bool", "int32", "int64") else cast(g, item, np.int32)


def belongs(g: Emitter, item: object) -> bool:
    """Whether a tensor is a value of ``g``, not a constant array of the call."""
    return isinstance(item, TensorNode) or g.known(item) is not None


def _listed(g: Emitter, items: list[object]) -> Any:
    """Returns a list of numbers, or of one-element tensors, as a tensor. Only a flat list is a mask."""
    if any(is_tensor(item) for item in items):
        numbers = [cast(g, item if is_tensor(item) else g.constant(item), np.int32) for item in items]
        return g.call("aten::cat", [reshaped(g, item, [1]) for item in numbers], 0)
    array = np.asarray(items)
    if array.dtype.kind not in "iub" and array.size:
        raise Refusal(f"{items!r} is not an index", "use integers, slices and integer tensors as indices")
    is_mask = array.dtype.kind == "b" and array.ndim == 1
    return g.constant(array.astype(bool if is_mask else np.int32))


def _expanded(g: Emitter, x: object, items: list[object]) -> list[Any]:
    """Returns one item per axis of ``x`` (and Nones), with masks and the Ellipsis expanded."""
    written: list[Any] = []
    for item in items:
        written += places_of(g, item) if _is_mask(g, item) else [item]
    used = sum(not (item is None or item is Ellipsis or isinstance(item, bool)) for item in written)
    missing = g.type(x).rank - used
    dots = [i for i, item in enumerate(written) if item is Ellipsis]
    if missing < 0 or len(dots) > 1:
        raise Refusal(f"the index {tuple(items)!r} does not fit {g.type(x)}")
    position = dots[0] if dots else len(written)
    return [*written[:position], *[slice(None)] * missing, *written[position + 1 :]]


def _is_mask(g: Emitter, item: object) -> bool:
    return is_tensor(item) and g.type(item).dtype.kind == "b"


def places_of(g: Emitter, mask: object) -> list[Any]:
    """Returns the indices of true elements of a mask, one tensor per axis."""
    known, axes = g.known(mask), g.type(mask).rank
    if not axes:
        raise Refusal(
            ("a single bool is not supported as an index"),
            "use integers, slices and integer tensors as indices",
        )
    if known is None:
        return places(g, mask)
    return [g.constant(places.astype(np.int32)) for places in known.nonzero()]


def _bounds(g: Emitter, item: slice, extent: int) -> tuple[tuple[Any, Any, int], bool]:
    """Returns (start, stop, step) with a positive step, and whether the order is reversed."""
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
        return (start, maximum(start, stop), step), False
    places = range(start, stop, step)[::-1]
    if not places:
        return (0, 0, 1), False
    return (places.start, places[-1] + 1, places.step), len(places) > 1


def _bounds_of_unknown(parts: list[Any], extent: Any) -> tuple[Any, Any, int]:
    """Returns slice bounds that aten::slice compares with the extent at run time."""
    bounds: list[Any] = [
        maximum(part + extent, 0) if isinstance(part, int) and part < 0 and place < 2 else part
        for place, part in enumerate(parts)
    ]
    start, stop, step = bounds
    if isinstance(step, int) and step < 0:
        raise Refusal(f"a slice runs backwards along an axis of {extent} elements, a data-dependent size")
    return start or 0, extent if stop is None else stop, step or 1


def _indices(parts: list[Any], extent: Any) -> tuple[Any, Any, int]:
    """Like ``slice(*parts).indices(extent)``, also for Dims."""
    step = 1 if parts[2] is None else parts[2]
    first, last = (0, extent) if step > 0 else (-1, extent - 1)

    def bound(value: Any, default: Any) -> Any:
        if value is None:
            return default
        value = value + extent if value < 0 else value
        return minimum(maximum(value, first), last)

    start = bound(parts[0], first if step > 0 else last)
    return start, bound(parts[1], last if step > 0 else first), step


def _checked(g: Emitter, x: object, axis: int, pick: object, extent: int) -> Any:
    """Returns a non-negative index within its axis."""
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


def _cut(g: Emitter, x: object, axis: int, cut: tuple[int, int, int]) -> Any:
    start, stop, step = cut
    if (start, stop, step) == (0, g.type(x).shape[axis], 1):
        return x
    return g.call("aten::slice", x, axis, start, stop, step)


def _element(g: Emitter, x: Any, axis: int, number: Any, *, keeps_axis: bool = False) -> Any:
    """Selects one element of an axis, and removes or keeps the axis."""
    if not is_tensor(number):
        if keeps_axis:
            return g.call("aten::slice", x, axis, number, number + 1)
        return g.call("aten::select", x, axis, number)
    shape = list(g.type(x).shape)
    part = g.call("aten::index_select", x, axis, reshaped(g, number, [1]))
    return part if keeps_axis else reshaped(g, part, shape[:axis] + shape[axis + 1 :])


def _chosen(g: Emitter, x: object, picks: list[object]) -> Any:
    axes = [axis for axis, pick in enumerate(picks) if pick is not None]
    pick = picks[axes[0]]
    if len(axes) > 1 or g.type(pick).rank != 1:
        return g.call("aten::index", x, picks)
    known, extent = g.known(pick), g.type(x).shape[axes[0]]
    run = _run(known, extent) if known is not None and known.size else None
    if run is None:
        return g.call("aten::index_select", x, axes[0], counted_from_the_front(g, pick, extent))
    cut, is_backwards = run
    x = _cut(g, x, axes[0], cut)
    return g.call("aten::flip", x, axes[:1]) if is_backwards else x


def _run(known: np.ndarray, extent: Any) -> tuple[tuple[Any, Any, int], bool] | None:
    """Returns the slice that selects the same elements, and whether it is reversed; None without one."""
    if not isinstance(extent, Dim):
        known = known % extent
    after = 0  # what a negative index is added to
    if (known < 0).any():
        if not (known < 0).all():
            return None
        after = extent
    steps = {int(step) for step in np.diff(known)} or {1}
    if len(steps) > 1 or 0 in steps:
        return None
    step, low, high = steps.pop(), int(known.min()), int(known.max())
    return (after + low, after + high + 1, abs(step)), step < 0


# ---- writing


def _broadcast(g: Emitter, value: object, shape: list[int]) -> Any:
    type_ = g.type(value)
    if list(type_.shape) == shape:
        return value
    new = len(shape) - type_.rank
    if new < 0 or any(old not in (1, extent) for old, extent in zip(type_.shape, shape[new:], strict=True)):
        raise Refusal(f"{type_} does not broadcast to {shape}")
    return g.call("aten::expand", value, shape)


def _filled(g: Emitter, part: object, index: Index, value: object, adds: bool) -> Any:
    """Writes ``value`` to the elements of ``part`` that index tensors select."""
    shape, picks = list(g.type(part).shape), index.tensors()
    if index.backwards:
        part = g.call("aten::flip", part, index.backwards)
    kept = reshaped(g, part, index.without_numbers(shape))
    if picks is not None:
        kept = g.call("aten::index_put", kept, picks, value, adds)
    else:
        value = _broadcast(g, value, list(g.type(kept).shape))
        kept = g.call("aten::add", kept, value) if adds else value
    part = reshaped(g, kept, shape)
    return g.call("aten::flip", part, index.backwards) if index.backwards else part


def _pasted(g: Emitter, x: Any, part: Any, axis: int, cut: tuple[Any, Any, int], number: Any) -> Any:
    """Returns ``x`` with ``part`` in place of its slice ``cut``, or element ``number``, along ``axis``."""
    if is_tensor(number):
        return g.call("aten::index_copy", x, axis, reshaped(g, number, [1]), part)
    start, stop, step = cut if number is None else (number, number + 1, 1)
    if (start, stop, step) == (0, g.type(x).shape[axis], 1):
        return part
    return g.call("aten::slice_scatter", x, part, axis, start, stop, step)
