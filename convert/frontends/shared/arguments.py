"""Argument conversions of all frontends: integers, axes, shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import AdapterValue
from tmconvert.ir import TensorNode
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim

MAX_INTS = 10_000  # of a shape, a list of axes, split points


def is_tensor(value: AdapterValue) -> bool:
    return isinstance(value, (TensorNode, np.ndarray))


def rank(g: Emitter, x: AdapterValue) -> int:
    return g.type(x).rank


def static_int(g: Emitter, value: AdapterValue, what: str = "a size") -> Any:
    """Returns an int or a Dim, from one or from a one-element integer tensor that does not depend on the
    input.
    """
    if is_tensor(value):
        array = g.sizes(value)
        if array is None:
            raise Refusal(f"{what} is computed from the data", "make it a constant of the model")
        value = array.reshape(-1)[0] if array.size == 1 else array
    if isinstance(value, Dim):
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise Refusal(f"{what} must be an integer, not {value!r}")
    return int(value)


def static_ints(g: Emitter, value: AdapterValue, what: str = "a shape") -> list[Any]:
    """Returns ints (or Dims) from one, a sequence of them and of integer tensors, or one integer tensor."""
    if is_tensor(value):
        array = g.sizes(value)
        if array is None:
            raise Refusal(f"{what} is computed from the data", "make it a constant of the model")
        if array.size > MAX_INTS:
            raise Refusal(f"{what} has {array.size} elements")
        return [static_int(g, item, what) for item in array.reshape(-1)]
    if isinstance(value, (list, tuple)):
        return [static_int(g, item, what) for item in value]
    return [static_int(g, value, what)]


def axis_of(g: Emitter, x: AdapterValue, axis: AdapterValue) -> int:
    """Returns a non-negative axis of ``x``."""
    number, extent = static_int(g, axis, "an axis"), rank(g, x)
    if not -extent <= number < extent:
        raise Refusal(f"axis {number} is out of range for a tensor of rank {extent}")
    return number % extent


def axes_of(g: Emitter, x: AdapterValue, axis: AdapterValue) -> list[int]:
    """Returns non-negative axes of ``x``; None means all."""
    if axis is None:
        return list(range(rank(g, x)))
    return sorted({axis_of(g, x, item) for item in (axis if isinstance(axis, (list, tuple)) else [axis])})


def cast(g: Emitter, x: Any, dtype: Any) -> Any:
    """Returns ``x`` cast to ``dtype``; ``x`` itself if it has this type."""
    dtype = np.dtype(dtype)
    return x if g.type(x).dtype == dtype else g.call("aten::to", x, dtype=dtype.name)


def floating(g: Emitter, x: AdapterValue) -> Any:
    """Returns ``x`` if it is a float tensor, else ``x`` cast to float32."""
    return x if g.type(x).dtype.kind == "f" else cast(g, x, np.float32)


def reshaped(g: Emitter, x: AdapterValue, shape: Sequence[int]) -> Any:
    """Reshapes ``x``; one extent may be -1."""
    old = g.type(x)
    sizes = list(shape)
    if sizes.count(-1) == 1:
        rest = math.prod(size for size in sizes if size != -1)
        if not rest or old.size % rest:
            raise Refusal(f"{old} cannot be reshaped to {tuple(shape)}")
        sizes[sizes.index(-1)] = old.size // rest
    if any(size < 0 for size in sizes) or math.prod(sizes) != old.size:
        raise Refusal(f"{old} cannot be reshaped to {tuple(shape)}")
    return x if tuple(sizes) == old.shape else g.call("aten::reshape", x, sizes)
