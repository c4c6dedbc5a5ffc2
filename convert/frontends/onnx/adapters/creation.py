"""Tensors made of nothing: ranges, constants of a shape, window functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import (
    cast,
    dtype_of,
    known_numbers,
    scalar,
    static_int,
    static_ints,
)
from tmconvert.frontends.shared.adapter_table import AdapterValue
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic

OPERATORS = OperatorTable()
MAX_CONSTANT = 1 << 16  # elements of a range that is stored


@OPERATORS.add("ConstantOfShape")
def constant_of_shape(g: Emitter, input: AdapterValue, *, value: AdapterValue = None) -> Any:
    sizes = static_ints(g, input, "the shape of ConstantOfShape")
    array = np.zeros(1, np.float32) if value is None else known_numbers(g, value, "a value")
    one = g.constant(array.reshape(()))
    return one if not sizes else g.call("aten::expand", one, sizes)


@OPERATORS.add("Range")
def range_(g: Emitter, start: AdapterValue, limit: AdapterValue, delta: AdapterValue) -> Any:
    dtype = g.type(start).dtype
    if all(g.known(each) is not None for each in (start, limit, delta)):
        first, last, step = (
            known_numbers(g, each, "a bound").reshape(())[()] for each in (start, limit, delta)
        )
        count = max(math.ceil((last.item() - first.item()) / step.item()), 0)
        if count <= MAX_CONSTANT or dtype.kind == "f":
            return g.constant((first + np.arange(count).astype(dtype) * step).astype(dtype))
    bounds = [static_int(g, each, "a bound of Range") for each in (start, limit, delta)]
    made = g.call("aten::arange", *bounds)
    return cast(g, made, dtype)


def _window(name: str, shape: Callable[[np.ndarray], np.ndarray]) -> None:
    @OPERATORS.add(name)
    def adapter(g: Emitter, size: AdapterValue, *, output_datatype: int = 1, periodic: int = 1) -> Any:
        count = int(scalar(g, size, "the size of a window"))
        steps = np.arange(count, dtype=np.float64)
        angles = 2 * np.pi * steps / max(count if periodic else count - 1, 1)
        return g.constant(shape(angles).astype(dtype_of(output_datatype)))


_window("HannWindow", lambda angles: 0.5 - 0.5 * np.cos(angles))
_window("HammingWindow", lambda angles: 25 / 46 - 21 / 46 * np.cos(angles))
_window("BlackmanWindow", lambda angles: 0.42 - 0.5 * np.cos(angles) + 0.08 * np.cos(2 * angles))


def is_open(sizes: list[Any]) -> bool:
    return is_symbolic(sizes)
