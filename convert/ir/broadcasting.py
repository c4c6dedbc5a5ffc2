"""Broadcasting of shapes that may contain Dims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.ir.symbolic.dims import Size, is_symbolic, symbols_of


def broadcast_shapes(*shapes: Sequence[Size]) -> tuple[Size, ...]:
    """Returns the shape to which all of ``shapes`` broadcast, as in NumPy. Raises ValueError."""
    if not is_symbolic(shapes):
        is_one = shapes.count(shapes[0]) == len(shapes) if shapes else False
        return tuple(shapes[0]) if is_one else np.broadcast_shapes(*shapes)
    rank = max(map(len, shapes))
    columns = zip(*([*[1] * (rank - len(shape)), *shape] for shape in shapes), strict=True)
    return tuple(_met(column, shapes) for column in columns)


def _met(extents: Sequence[Size], shapes: Sequence[Sequence[Size]]) -> Size:
    result: Size = 1
    for extent in extents:
        if isinstance(result, int) and result == 1:
            result = extent
        elif extent == result:
            result = min(result, extent, key=_order)
        elif extent != 1:
            if result != 1:
                raise ValueError(f"the shapes {', '.join(map(str, shapes))} do not broadcast")
            result = extent
    return result


def _order(extent: Size) -> tuple[int, int, str]:
    """Orders equal sizes: numbers, sizes of inputs, data-dependent sizes; short expressions first."""
    symbols, text = symbols_of(extent), str(extent)
    kind = 1 + any(symbol.from_data for symbol in symbols.values()) if symbols else 0
    return kind, len(text), text
