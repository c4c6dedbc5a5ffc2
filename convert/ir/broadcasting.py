"""Broadcasting of shapes that may contain Dims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.ir.symbolic.dims import Dim, Size, is_symbolic


def broadcast_shapes(*shapes: Sequence[Size]) -> tuple[Size, ...]:
    """Returns the shape to which all of ``shapes`` broadcast, as in NumPy. Raises ValueError."""
    if not is_symbolic(shapes):
        return np.broadcast_shapes(*shapes)
    rank = max(map(len, shapes))
    columns = zip(*([*[1] * (rank - len(shape)), *shape] for shape in shapes), strict=True)
    return tuple(_met(column, shapes) for column in columns)


def _met(extents: Sequence[Size], shapes: Sequence[Sequence[Size]]) -> Size:
    result: Size = 1
    for extent in extents:
        if isinstance(result, int) and result == 1:
            result = extent
        elif extent == result:
            result = min(result, extent, key=_length)
        elif extent != 1:
            if result != 1:
                raise ValueError(f"the shapes {', '.join(map(str, shapes))} do not broadcast")
            result = extent
    return result


def _length(extent: Size) -> tuple[bool, int, str]:
    """Orders sizes that are equal under a guard: numbers, then short expressions, whatever their order."""
    text = str(extent)
    return isinstance(extent, Dim), len(text), text
