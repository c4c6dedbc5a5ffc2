"""Argument conversions of all frontends: integers, axes, shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir import TensorNode
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.ir.symbolic.journal import current_journal, validated

MAX_ELEMENTS = 64  # of a shape in a tensor
MAX_INTS = 10_000  # of a shape, a list of axes, split points
# what the structure of a graph, or the choice of its operators, depends on
# what has to be known, and what may be negative, as no size that the data gives
_STRUCTURAL = (
    "an axis", "the axis", "the axes", "the steps of", "the sizes of Pad", "a number of parts",
    "the size of an image",
)  # fmt: skip


def is_tensor(value: object) -> bool:
    return isinstance(value, (TensorNode, np.ndarray))


def rank(g: Emitter, x: object) -> int:
    return g.type(x).rank


def static_int(g: Emitter, value: object, what: str = "a size") -> Any:
    """Returns an int or Dim, from one or a one-element integer tensor; data-dependent where that is."""
    if is_tensor(value):
        array = g.sizes(value)
        if array is None:
            return counted(g, value, what)
        value = array.reshape(-1)[0] if array.size == 1 else array
    if isinstance(value, Dim):
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise Refusal(f"{what} must be an integer, not {value!r}")
    return int(value)


def counted(g: Emitter, value: Any, what: str) -> Any:
    """Returns the data-dependent size that one element of an integer tensor gives, at least 0.

    It is the number of elements of a range that ends there.
    """
    type_ = g.type(value)
    if (
        what.startswith(_STRUCTURAL)
        or type_.dtype.kind not in "iu"
        or is_symbolic(type_.shape)
        or type_.size != 1
    ):
        verb = "are" if what.startswith(("the axes", "the sizes", "the steps")) else "is"
        raise Refusal(f"{what} {verb} computed from the data", "make it a constant of the model")
    if type_.dtype not in (np.int32, np.int64):
        value = g.call("aten::to", value, dtype="int64")
    if type_.rank:
        value = g.call("aten::reshape", value, [])
    return g.type(g.call("tm::count_to", value)).shape[0]


def _elements(g: Emitter, value: object, what: str) -> list[Any]:
    """Returns the elements of a vector whose length is static, as tensors of one element."""
    shape = g.type(value).shape
    if len(shape) > 1 or is_symbolic(shape) or (shape and shape[0] > MAX_ELEMENTS):
        raise Refusal(f"{what} is computed from the data", "make it a constant of the model")
    return [value] if not shape else [g.call("aten::slice", value, 0, i, i + 1, 1) for i in range(shape[0])]


def static_ints(g: Emitter, value: object, what: str = "a shape") -> list[Any]:
    """Returns ints (or Dims) from one, a sequence of them and of integer tensors, or one integer tensor."""
    if is_tensor(value):
        array = g.sizes(value)
        if array is None:
            return [counted(g, each, what) for each in _elements(g, value, what)]
        if array.size > MAX_INTS:
            raise Refusal(f"{what} has {array.size} elements")
        return [static_int(g, item, what) for item in array.reshape(-1)]
    if isinstance(value, (list, tuple)):
        return [static_int(g, item, what) for item in value]
    return [static_int(g, value, what)]


def axis_of(g: Emitter, x: object, axis: object) -> int:
    """Returns a non-negative axis of ``x``."""
    number, extent = static_int(g, axis, "an axis"), rank(g, x)
    if not -extent <= number < extent:
        raise Refusal(f"axis {number} is out of range for a tensor of rank {extent}")
    return number % extent


def axes_of(g: Emitter, x: object, axis: object) -> list[int]:
    """Returns non-negative axes of ``x``; None means all."""
    if axis is None:
        return list(range(rank(g, x)))
    return sorted({axis_of(g, x, item) for item in (axis if isinstance(axis, (list, tuple)) else [axis])})


def cast(g: Emitter, x: Any, dtype: Any) -> Any:
    """Returns ``x`` cast to ``dtype``; ``x`` itself if it has this type."""
    dtype = np.dtype(dtype)
    return x if g.type(x).dtype == dtype else g.call("aten::to", x, dtype=dtype.name)


def floating(g: Emitter, x: object) -> Any:
    """Returns ``x`` if it is a float tensor, else ``x`` cast to float32."""
    return x if g.type(x).dtype.kind == "f" else cast(g, x, np.float32)


def _with_elements(g: Emitter, x: object, size: Any) -> Any:
    """Returns ``x`` with a data-dependent axis of the extent that a reshape to ``size`` elements implies.

    A guard says so; at another extent the reshape of the source fails.
    """
    from tmconvert.ir.symbolic.data_dependent import data_symbols

    shape = g.type(x).shape
    data = [axis for axis, extent in enumerate(shape) if data_symbols(extent)]
    rest = math.prod(extent for axis, extent in enumerate(shape) if axis not in data)
    if len(data) != 1 or is_symbolic((size, rest)) or not rest or size % rest:
        return x
    count = size // rest
    current_journal().assume(shape[data[0]] - count, frozenset({0}))
    return g.call("aten::index_select", x, data[0], g.constant(np.arange(count)))


def reshaped(g: Emitter, x: object, shape: Sequence[int]) -> Any:
    """Reshapes ``x``; one extent may be -1."""
    sizes = list(shape)
    if is_symbolic(g.type(x).shape) and -1 not in sizes:
        x = _with_elements(g, x, math.prod(sizes))
    old = g.type(x)
    if sizes.count(-1) == 1:
        rest = math.prod(size for size in sizes if size != -1)
        if not rest or old.size % rest:
            raise Refusal(f"{old} cannot be reshaped to {tuple(shape)}")
        sizes[sizes.index(-1)] = old.size // rest
    if validated(lambda: any(size < 0 for size in sizes)) or math.prod(sizes) != old.size:
        raise Refusal(f"{old} cannot be reshaped to {tuple(shape)}")
    return x if tuple(sizes) == old.shape else g.call("aten::reshape", x, sizes)


def like(g: Emitter, x: object, number: object) -> Any:
    """Returns a constant of rank 0 with the element type of ``x``."""
    return g.constant(number, g.type(x).dtype)


def known_numbers(g: Emitter, value: object, what: str) -> np.ndarray:
    """Returns the array of a constant. Raises Refusal."""
    array = g.known(value)
    if array is None:
        raise Refusal(f"{what} is computed from the data", "make it a constant of the model")
    return array


def scalar(g: Emitter, value: object, what: str) -> Any:
    """Returns the one element of a constant as a Python number. Raises Refusal."""
    array = known_numbers(g, value, what)
    if array.size != 1:
        raise Refusal(f"{what} must have one element, got {array.size}")
    return array.reshape(-1)[0].item()


def stacked(g: Emitter, parts: Sequence[Any], axis: int = 0) -> Any:
    """Concatenates tensors of one shape along a new axis."""
    rows = []
    for part in parts:
        shape = list(g.type(part).shape)
        rows.append(reshaped(g, part, [*shape[:axis], 1, *shape[axis:]]))
    return rows[0] if len(rows) == 1 else g.call("aten::cat", rows, axis)
