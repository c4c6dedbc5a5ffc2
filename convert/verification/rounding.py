"""Estimates rounding errors: runs the reference with random perturbations of the size of float32 rounding.

An output that is zero but for rounding, such as the mean of a layer norm, has no magnitude to which an error
could be relative. The effect of rounding on it is measured: the reference is run with noise of one unit in
the last place in all results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.errors import TmconvertError
from tmconvert.ir.emitter import EagerEmitter
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.traits import AbsoluteAccuracy, RanksElements

UNIT = float(np.finfo(np.float32).eps)
MARGIN = 64.0  # kernels sum in other orders, and approximate functions to a few units
COARSE = 16  # units, of a rounding that has to move an output further than one of 1 does
SMALLEST = float(np.finfo(np.float32).tiny)
_DEEPEST = 3


class Shaken:
    """Evaluates ops like the reference, with random noise of units in the last place on floats.

    Ops with a decomposition are computed by it, since intermediate results of a kernel would have no noise;
    but not those of one element each within another, such as the polynomials of an erf, whose own rounding is
    no more than that of their result. What ranks elements gets noise relative to the largest, which puts
    equal ones in any order.
    """

    def __init__(self, catalogue: Mapping[str, Op], seed: int, units: int = 1) -> None:
        self.catalogue = catalogue
        self._step = units * UNIT
        self._random = np.random.default_rng(seed)
        self._emitter = _Emitter(self)
        self._depth = 0

    def moved(self, array: object) -> Any:
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            return array
        with np.errstate(over="ignore"):
            made = (array * (1 + self._step * self._signs(array.shape))).astype(array.dtype)
        return np.where(np.isinf(made), array, made)  # the largest numbers of a type stay finite

    def _signs(self, shape: tuple[int, ...]) -> Any:
        """Returns 1 and -1 at random, in int8."""
        count = math.prod(shape)
        bits = np.frombuffer(self._random.bytes(-(-count // 8)), np.uint8)
        return (np.unpackbits(bits, count=count).view(np.int8) * 2 - 1).reshape(shape)

    def evaluated(self, op: Op, args: Sequence[object], attributes: Mapping[str, object]) -> Any:
        if op.has(RanksElements):
            args = [self._ranked(args[0]), *args[1:]]
        result = self._in_parts(op, args, attributes)
        if result is None:
            result = op.evaluate(args, attributes)
        return map_leaves(self.moved, result)

    def _ranked(self, array: Any) -> Any:
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            return array
        largest = float(np.max(np.abs(array), initial=0, where=np.isfinite(array))) or SMALLEST
        return (array + largest * self._step * self._random.uniform(-1, 1, array.shape)).astype(array.dtype)

    def _in_parts(self, op: Op, args: Sequence[object], attributes: Mapping[str, object]) -> Any:
        is_inner = self._depth > 0 and len(op.args) == 1 and op.layout is ANY
        if op.decomposition is None or self._depth == _DEEPEST or is_inner:
            return None
        self._depth += 1
        try:
            made = op.decomposition(self._emitter, **op.by_name(args, attributes))
        except (TmconvertError, TypeError, ValueError, AttributeError, IndexError):
            return None  # it is meant for graphs only
        finally:
            self._depth -= 1
        return made[0] if isinstance(made, list) and len(made) == 1 else made  # as ``Op.evaluate``


class AbsoluteErrors(Shaken):
    """Evaluates ops like the reference; results with ``AbsoluteAccuracy`` are off by a unit of 1.

    All are too large for the seed 0, too small for 1, and either for others.
    """

    def __init__(self, catalogue: Mapping[str, Op], seed: int) -> None:
        super().__init__(catalogue, seed)
        self._sign = {0: 1, 1: -1}.get(seed)

    def moved(self, array: object) -> Any:
        return array

    _ranked = moved

    def evaluated(self, op: Op, args: Sequence[object], attributes: Mapping[str, object]) -> Any:
        result = super().evaluated(op, args, attributes)
        if not op.has(AbsoluteAccuracy):
            return result
        return map_leaves(self._off, result)

    def _off(self, array: Any) -> Any:
        signs = self._sign or self._signs(array.shape)
        return (array + self._step * signs).astype(array.dtype)


class Wide(Shaken):
    """Evaluates ops like the reference, with floats in float64."""

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        super().__init__(catalogue, 0)

    def moved(self, array: object) -> Any:
        is_narrow = isinstance(array, np.ndarray) and array.dtype.kind == "f"
        return array.astype(np.float64) if is_narrow else array  # type: ignore[attr-defined]

    def evaluated(self, op: Op, args: Sequence[object], attributes: Mapping[str, object]) -> Any:
        return map_leaves(self.moved, op.evaluate(map_leaves(self.moved, list(args)), attributes))


class _Emitter(EagerEmitter):
    def __init__(self, shaken: Shaken) -> None:
        super().__init__(shaken.catalogue)
        self._shaken = shaken

    def call(self, op: str, *args: object, **attributes: object) -> Any:
        definition: Any = self.catalogue[op]
        result = self._shaken.evaluated(definition, *definition.bind(args, attributes))
        return map_leaves(np.asarray, result)
