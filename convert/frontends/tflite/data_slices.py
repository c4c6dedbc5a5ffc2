"""Slices whose bounds depend on the data, as converters write them around one row of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.frontends.shared.arguments import cast, rank, reshaped, static_ints
from tmconvert.frontends.shared.indexing import getitem
from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic

_VIEWS = ("aten::reshape", "aten::to")


@dataclass(frozen=True, eq=False)
class DataSlice:
    """The elements of ``x`` along ``axis`` before index ``bound``, or from there on.

    Its size is data-dependent. What writes a row of a list, ``x[:i] ++ row ++ x[i + 1:]``, has a static size;
    so the slice is computed only where it is used in another way.
    """

    x: Any
    axis: int
    bound: Any
    is_first: bool

    def computed(self, g: Emitter) -> Any:
        """Returns the tensor."""
        (at,) = static_ints(g, reshaped(g, self.bound, [1]), "the bounds of SLICE")
        index = slice(0, at) if self.is_first else slice(at, None)
        return getitem(g, self.x, (*[slice(None)] * self.axis, index))


def data_slice(g: Emitter, x: object, begin: object, size: object) -> DataSlice | None:
    """Returns the result of SLICE, if one bound of one axis depends on the data; None for others."""
    starts, sizes = elements_of(g, begin), elements_of(g, size)
    if starts is None or sizes is None or not len(starts) == len(sizes) == rank(g, x):
        return None
    shape = g.type(x).shape
    cut = [
        axis
        for axis, (start, count) in enumerate(zip(starts, sizes, strict=True))
        if isinstance(start, TensorNode) or isinstance(count, TensorNode)
    ]
    whole = all(
        axis in cut or (starts[axis] == 0 and sizes[axis] in (-1, shape[axis])) for axis in range(len(shape))
    )
    if len(cut) != 1 or not whole:
        return None
    (axis,) = cut
    if isinstance(sizes[axis], TensorNode):
        is_first = not isinstance(starts[axis], TensorNode) and starts[axis] == 0
        return DataSlice(x, axis, sizes[axis], True) if is_first else None
    return DataSlice(x, axis, starts[axis], False) if sizes[axis] == -1 else None


def with_row(g: Emitter, parts: tuple[Any, ...], axis: int) -> Any:
    """Returns ``x`` with a row replaced, for the ``parts`` x[:i], row, x[i + 1:]; None for other parts."""
    if len(parts) != 3:
        return None
    first, row, last = parts
    if not isinstance(first, DataSlice) or not isinstance(last, DataSlice) or isinstance(row, DataSlice):
        return None
    if not (first.is_first and not last.is_first and first.x is last.x and first.axis == last.axis == axis):
        return None
    shape = g.type(first.x).shape
    if g.type(row).shape != (*shape[:axis], 1, *shape[axis + 1 :]) or not _follows(
        g, last.bound, first.bound
    ):
        return None
    places: Any = g.call("aten::arange", 0, shape[axis], 1)
    if not is_symbolic(shape[axis]):
        places = g.constant(np.arange(shape[axis]), np.int32)
    bound = cast(g, reshaped(g, first.bound, []), g.type(places).dtype)
    is_row = reshaped(g, g.call("aten::eq", places, bound), [shape[axis], *[1] * (len(shape) - axis - 1)])
    return g.call("aten::where", is_row, row, first.x)


def _follows(g: Emitter, value: Any, other: Any) -> bool:
    """Whether an index is the one after another."""
    value, other = _viewed(value), _viewed(other)
    expr = value.expr if isinstance(value, TensorNode) else None
    if not isinstance(expr, CallFunction) or expr.function != "aten::add" or len(expr.args) != 2:
        return False
    terms = [_viewed(each) for each in expr.args]
    steps = [known for known in map(g.known, terms) if known is not None]
    return other in terms and len(steps) == 1 and bool((np.asarray(steps[0]) == 1).all())


def _viewed(value: Any) -> Any:
    """Returns the tensor that a reshape or cast was made of."""
    while isinstance(value, TensorNode) and isinstance(value.expr, CallFunction):
        if value.expr.function not in _VIEWS:
            break
        value = value.expr.args[0]
    return value


def elements_of(g: Emitter, vector: Any) -> list[Any] | None:
    """Returns the elements of a vector of integers: those that are known, and tensors of one element."""
    known = g.sizes(vector)
    if known is not None:
        return list(known.reshape(-1))
    if g.type(vector).shape == (1,):
        return [vector]
    expr = vector.expr if isinstance(vector, TensorNode) else None
    if not isinstance(expr, CallFunction) or expr.function != "aten::cat":
        return None
    parts = [elements_of(g, each) for each in expr.args[0]]
    return None if None in parts else [each for part in parts for each in part or ()]
