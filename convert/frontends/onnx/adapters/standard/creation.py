"""Tensors made of nothing: ranges, constants of a shape, window functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import (
    cast,
    dtype_of,
    known_numbers,
    reshaped,
    scalar,
    static_int,
    static_ints,
)
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable()
MAX_CONSTANT = 1 << 16  # elements of a range that is stored
LARGEST = 1 << 26  # elements of a range whose number is computed in floats


@OPERATORS.add("ConstantOfShape")
def constant_of_shape(g, input, *, value=None):
    sizes = static_ints(g, input, "the shape of ConstantOfShape")
    array = np.zeros(1, np.float32) if value is None else known_numbers(g, value, "a value")
    one = g.constant(array.reshape(()))
    return one if not sizes else g.call("aten::expand", one, sizes)


@OPERATORS.add("Range")
def range_(g, start, limit, delta):
    dtype = g.type(start).dtype
    if all(g.known(each) is not None for each in (start, limit, delta)):
        first, last, step = (
            known_numbers(g, each, "a bound").reshape(())[()] for each in (start, limit, delta)
        )
        count = max(math.ceil((last.item() - first.item()) / step.item()), 0)
        if dtype.kind == "f" and count > LARGEST:
            raise Refusal(f"Range of {count} elements")
        if count <= MAX_CONSTANT or dtype.kind == "f":
            return g.constant((first + np.arange(count).astype(dtype) * step).astype(dtype))
    sizes = [g.sizes(each) for each in (start, limit, delta)]
    if any(each is None or each.size != 1 for each in sizes):
        return _counted(g, start, limit, delta)
    bounds = [_whole(each.reshape(-1)[0]) for each in sizes if each is not None]
    if None in bounds:
        return _counted(g, start, limit, delta)
    made = g.call("aten::arange", *bounds)
    return cast(g, made, dtype)


def _whole(size: Any) -> Any:
    """Returns a bound as an integer or Dim; None for other floats."""
    if is_symbolic(size) or not isinstance(size, (float, np.floating)):
        return size if is_symbolic(size) else int(size)
    return int(size) if float(size).is_integer() else None


def _counted(g, start, limit, delta):
    """Returns a range whose number of elements is computed."""
    dtype = g.type(start).dtype
    first, last, step = (
        Term(g, cast(g, reshaped(g, each, []), np.float64)) for each in (start, limit, delta)
    )
    number = ((last - first) / step).call("ceil").clamp(0.0, float(LARGEST))
    count = static_int(g, cast(g, number.value, np.int64), "the number of elements of Range")
    steps = cast(g, g.call("aten::arange", 0, count, 1), dtype)
    start, delta = (reshaped(g, each, []) for each in (start, delta))
    return g.call("aten::add", start, g.call("aten::mul", steps, delta))


def _window(name: str, shape: Callable[[np.ndarray], np.ndarray]) -> None:
    @OPERATORS.add(name)
    def adapter(g, size, *, output_datatype=1, periodic=1):
        count = int(scalar(g, size, "the size of a window"))
        steps = np.arange(count, dtype=np.float64)
        angles = 2 * np.pi * steps / max(count if periodic else count - 1, 1)
        return g.constant(shape(angles).astype(dtype_of(output_datatype)))


_window("HannWindow", lambda angles: 0.5 - 0.5 * np.cos(angles))
_window("HammingWindow", lambda angles: 25 / 46 - 21 / 46 * np.cos(angles))
_window("BlackmanWindow", lambda angles: 0.42 - 0.5 * np.cos(angles) + 0.08 * np.cos(2 * angles))


def is_open(sizes: list[Any]) -> bool:
    return is_symbolic(sizes)


# ---- random numbers, which a conversion accepts with ``allow_random`` only


def _drawn(g: Emitter, kind: str, shape: Sequence[Any], dtype: np.dtype, factor: float, term: float) -> Any:
    numbers = Term(g, g.call(f"tm::random_{kind}", list(shape), g.stream())) * factor + term
    return cast(g, numbers.value, dtype)


def _type_like(g: Emitter, x, dtype: int | None) -> np.dtype:
    return g.type(x).dtype if dtype is None else dtype_of(dtype)


@OPERATORS.add("RandomUniform")
def random_uniform(g, *, shape, dtype=1, high=1.0, low=0.0, seed=None):
    return _drawn(g, "uniform", shape, dtype_of(dtype), high - low, low)


@OPERATORS.add("RandomUniformLike")
def random_uniform_like(g, input, *, dtype=None, high=1.0, low=0.0, seed=None):
    return _drawn(g, "uniform", g.type(input).shape, _type_like(g, input, dtype), high - low, low)


@OPERATORS.add("RandomNormal")
def random_normal(g, *, shape, dtype=1, mean=0.0, scale=1.0, seed=None):
    return _drawn(g, "normal", shape, dtype_of(dtype), scale, mean)


@OPERATORS.add("RandomNormalLike")
def random_normal_like(g, input, *, dtype=None, mean=0.0, scale=1.0, seed=None):
    return _drawn(g, "normal", g.type(input).shape, _type_like(g, input, dtype), scale, mean)
