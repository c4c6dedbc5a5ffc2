"""Negative indices: converts -extent to extent - 1 to non-negative ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import is_symbolic

if TYPE_CHECKING:
    from tmconvert.ir.emitter import Emitter
    from tmconvert.lowering.target_graph import Value
    from tmconvert.targets.onnx.builder import OnnxBuilder


def from_the_front(g: OnnxBuilder, index: Value, extent: Any) -> Value:
    """ONNX: returns non-negative indices."""
    if index.data is not None and isinstance(extent, int):
        return g.const(np.asarray(index.data % max(extent, 1), index.dtype))
    wide = index if isinstance(extent, int) else g.cast(index, "int64")
    size = g.const(np.array(extent, index.dtype)) if isinstance(extent, int) else g.ints(extent)
    if data_symbols(extent):  # ONNX Runtime refuses a divisor of 0 even where there is nothing to divide
        size = g.op("Add", size, g.cast(g.op("Equal", size, g.ints(0), dtype="bool"), "int64"))
    shifted = g.op("Add", wide, size)  # not negative, so that Div rounds down
    wrapped = g.op("Sub", shifted, g.op("Mul", g.op("Div", shifted, size), size))
    return g.cast(wrapped, index.dtype.name)


def scattered(g: Any, operator: str, x: Value, index: Value, updates: Value, **attributes: Any) -> Value:
    """ONNX: ScatterND or ScatterElements with a reduction, in a type that ONNX Runtime supports."""
    wide = {"f": "float32" if x.dtype.itemsize < 8 else "float64"}.get(x.dtype.kind)
    wide = wide or ("int64" if x.dtype == np.int64 else "int32")
    made = g.op(
        operator, g.cast(x, wide), index, g.cast(updates, wide), shape=x.shape, dtype=wide, **attributes
    )
    return g.cast(made, x.dtype.name)


def numbers(g: Emitter, start: Any, end: Any, step: Any = 1) -> Any:
    """Returns int64 ``start``, ``start + step``, ... below ``end``: a constant, except for symbolic sizes."""
    if is_symbolic([start, end, step]):
        return g.call("aten::arange", start, end, step)
    return g.constant(np.arange(start, end, step, dtype=np.int64))


def pairs(g: Emitter, extent: Any, offset: int) -> tuple[Any, Any]:
    """Returns the rows and columns of a square matrix from the diagonal ``offset``, 0 or 1, on."""
    if not is_symbolic(extent):
        first, second = np.triu_indices(extent, offset)
        return g.constant(first.astype(np.int64)), g.constant(second.astype(np.int64))
    from tmconvert.symbolics.idioms.formulas import Term

    line = Term(g, g.call("aten::arange", 0, extent))
    rows, size = line.reshape(shape=[extent, 1]), line.like(extent)
    is_kept = (line - rows) >= offset
    keys = is_kept.where(rows * size + line, line.like(extent * extent)).reshape(shape=[extent * extent])
    ordered = Term(g, g.call("aten::sort", keys.value, 0, False)[0])  # what is not kept comes last
    count = extent * (extent + 1 - 2 * offset) // 2
    kept = Term(g, g.call("aten::slice", ordered.value, 0, 0, count, 1))
    found = kept.floor_divide(size)
    return found.value, (kept - found * size).value


def places(g: Emitter, mask: Any) -> list[Any]:
    """Returns the indices of true elements of a mask, one list per axis."""
    rows = g.call("aten::nonzero", mask)
    return [g.call("aten::select", rows, 1, axis) for axis in range(g.type(mask).rank)]


def let_through(g: Emitter, x: Any, start: int, mask: Any) -> Any:
    """``x[mask]`` for a mask over the axes from ``start`` on, which one axis replaces."""
    shape, size = g.type(x).shape, math.prod(g.type(mask).shape)
    rows = g.call("aten::reshape", x, [*shape[:start], size, *shape[start + g.type(mask).rank :]])
    (found,) = places(g, g.call("aten::reshape", mask, [size]))
    return g.call("aten::index_select", rows, start, found)


def counted_from_the_front(g: Emitter, index: Any, extent: Any) -> Any:
    """The same in ATen-style ops; ``extent`` may be a Dim."""
    known = g.known(index)
    if known is not None and (known >= 0).all():
        return index
    if known is not None and isinstance(extent, int):
        return g.constant(np.asarray(known % max(extent, 1), known.dtype))
    return g.call("tm::wrap_index", index, extent)
