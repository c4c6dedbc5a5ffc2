"""Tensor factory functions of megengine.functional.tensor.

dtype and device were positional in older releases, in this order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.values import MAX_INTS, cast, is_tensor, static_int, static_ints
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.formulas import Term

FUNCTIONS = Table("megengine.functional.tensor.")

MAX_COUNT = 1 << 24  # of numbers in a row


def _filled(g, shape, value, dtype):
    sizes = static_ints(g, shape)
    scalar = g.constant(np.asarray(value).astype(dtype))
    return g.call("aten::expand", scalar, sizes) if sizes else scalar


def _number(g: Emitter, value: Any) -> np.float32:
    """Returns a number, or the value of a one-element constant, rounded to float32 like MegEngine."""
    if is_tensor(value):
        known = g.known(value)
        value = known.reshape(-1)[0] if known is not None and known.size == 1 else static_int(g, value)
    if isinstance(value, (bool, str)) or value is None:
        raise Refusal(f"{value!r} is not a number")
    return np.float32(value)


FUNCTIONS.add("zeros")(lambda g, shape, dtype="float32", device=None: _filled(g, shape, 0, dtype))
FUNCTIONS.add("ones")(lambda g, shape, dtype="float32", device=None: _filled(g, shape, 1, dtype))


@FUNCTIONS.add("full")
def full(g, shape, value, dtype=None, device=None):
    """Without ``dtype``, floats are float32, integers int32 and bools bool."""
    if is_tensor(value):
        value = cast(g, value, dtype) if dtype is not None else value
        sizes = static_ints(g, shape)
        return g.call("aten::expand", value, sizes) if sizes else value
    kind = np.asarray(value).dtype.kind
    if kind not in "biuf":
        raise Refusal(f"{value!r} is not a number")
    return _filled(g, shape, value, dtype or {"f": "float32", "b": "bool"}.get(kind, "int32"))


@FUNCTIONS.add("full_like")
def full_like(g, inp, value):
    """Fills with a scalar or a one-element vector."""
    type_ = g.type(inp)
    return _filled(g, list(type_.shape) or [1], value, type_.dtype)


FUNCTIONS.add("zeros_like")(lambda g, inp: full_like(g, inp, 0))
FUNCTIONS.add("ones_like")(lambda g, inp: full_like(g, inp, 1))


@FUNCTIONS.add("arange")
def arange(g, start=0, stop=None, step=1, dtype="float32", device=None):
    """As many values as fit before ``stop``, computed by ``linspace`` and cast to an integer ``dtype``."""
    if stop is None:
        start, stop = 0, start
    bounds = [_size(g, value) for value in (start, stop, step)]
    if is_symbolic(bounds):
        return cast(g, g.call("aten::arange", *bounds), dtype)
    first, end, by = (_number(g, value) for value in (start, stop, step))
    count = math.ceil((end - first) / by) if by else 0
    return _spaced(g, first, first + by * np.float32(count - 1), count, dtype)


@FUNCTIONS.add("linspace")
def linspace(g, start, stop, num, dtype="float32", device=None):
    first, last, count = _number(g, start), _number(g, stop), _size(g, num)
    if not is_symbolic(count):
        return _spaced(g, first, last, int(_number(g, num)), dtype)
    places = Term(g, g.call("aten::arange", 0, count)).to("float32")
    step = Term(g, g.constant(last - first)) / Term(g, g.constant(count - 1)).to("float32")
    return cast(g, (places * step + first).value, dtype)


def _size(g, value):
    """Returns ``value`` as a Dim if it is symbolic; else unchanged."""
    sizes = g.sizes(value) if is_tensor(value) else None
    return sizes.reshape(-1)[0] if sizes is not None and sizes.size == 1 else value


def _spaced(g: Emitter, start: np.float32, stop: np.float32, count: int, dtype) -> Any:
    """Returns start + i * step for each i, in float32."""
    if not 0 < count <= MAX_COUNT:
        raise Refusal(f"linspace of {count} elements from {start} to {stop} is not supported")
    step = (stop - start) / np.float32(max(count - 1, 1))
    numbers = start + np.arange(count, dtype=np.float32) * np.float32(step)
    return g.constant(numbers.astype(np.float32).astype(dtype))


@FUNCTIONS.add("eye")
def eye(g, N, M=None, dtype="float32", device=None):
    return identity(g, static_ints(g, N) + ([] if M is None else static_ints(g, M)), 0, dtype)


def identity(g: Emitter, sizes: list[Any], diagonal: int, dtype: Any) -> Any:
    """A matrix of one or two sizes with ones on the diagonal ``diagonal`` above the main one."""
    if not 1 <= len(sizes) <= 2 or not all(0 < size <= MAX_INTS for size in sizes):
        raise Refusal(f"eye expects one or two sizes, got {sizes}")
    return g.constant(np.eye(int(sizes[0]), int(sizes[-1]), diagonal).astype(dtype))
