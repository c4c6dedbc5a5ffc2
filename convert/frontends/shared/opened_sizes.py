"""Stored shapes that hold the size of an axis which a request makes dynamic.

A file of a fixed batch may reshape by constants such as ``[1, 512]``. When the batch is opened, the constant
follows it where the elements before it stay the same; whether all of them do is then compared with the file
itself, which runs each part of a batch by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic


def opened_shape(g: Emitter, x: object, shape: Sequence[Any], before: Sequence[int]) -> list[Any]:
    """Returns the shape of a reshape of ``x``, which had the shape ``before``; ``shape`` holds the old size.

    >>> opened_shape(g, x, [1, -1], [1, 512, 1, 1])  # x is float32[n,512,1,1]  # doctest: +SKIP
    [n, 512]
    """
    now = g.type(x).shape
    changed = [axis for axis, extent in enumerate(before) if not _equals(now[axis], extent)]
    if len(changed) != 1 or is_symbolic(tuple(shape)):
        return list(shape)
    (axis,) = changed
    made = [before[place] if size == 0 and place < len(before) else size for place, size in enumerate(shape)]
    if made.count(-1) == 1:
        rest = -math.prod(made)
        made[made.index(-1)] = math.prod(before) // rest if rest else -1
    if math.prod(made) != math.prod(before) or not before[axis]:
        return list(shape)
    # The axis begins where as many elements are before it, or ends where as many are after it. Merged axes
    # have it last, as rows of sequences that begin with the time.
    starts = [place for place in range(len(made)) if math.prod(made[:place]) == math.prod(before[:axis])]
    ends = [place for place in range(len(made)) if math.prod(made[place + 1 :]) == math.prod(before[axis:])]
    for place in [*ends, *starts] if len(made) < len(before) else [*starts, *ends]:
        follows = now[axis] * made[place] // before[axis]
        if _equals(follows * before[axis], now[axis] * made[place]):
            return [*made[:place], follows, *made[place + 1 :]]
    return list(shape)


def with_opened_batch(g: Emitter, x: object, sizes: Sequence[Any], before: Sequence[int]) -> list[Any]:
    """Returns the sizes to which ``x``, of the shape ``before``, is resized or expanded; a batch that is kept
    follows it.

    >>> with_opened_batch(g, x, [2, 1, 8, 8], [2, 1, 4, 4])  # x is float32[n,1,4,4]  # doctest: +SKIP
    [n, 1, 8, 8]
    """
    keeps_batch = 0 < len(sizes) == len(before) and _equals(sizes[0], before[0])
    return [g.type(x).shape[0], *sizes[1:]] if keeps_batch else list(sizes)


def _equals(size: object, other: object) -> bool:
    """Whether two sizes are certainly equal."""
    return size == other if isinstance(size, int) and isinstance(other, int) else hash(size) == hash(other)


def opened_parts(g: Emitter, parts: Sequence[Any], axis: int) -> list[Any]:
    """Returns operands of a concatenation along ``axis``; one of a single element follows an opened axis."""
    shapes = [g.type(part).shape for part in parts]
    made = []
    for part, shape in zip(parts, shapes, strict=True):
        target = [
            next((other[place] for other in shapes if not _equals(other[place], 1)), own)
            if place != axis and _equals(own, 1)
            else own
            for place, own in enumerate(shape)
        ]
        is_same = all(map(_equals, target, shape))
        made.append(part if is_same else g.call("aten::expand", part, target))
    return made
