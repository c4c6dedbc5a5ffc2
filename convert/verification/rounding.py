"""Estimates rounding errors: runs the reference with random perturbations of the size of float32 rounding.

An output that is zero but for rounding, such as the mean of a layer norm, has no magnitude to which an error
could be relative. The effect of rounding on it is measured: the reference is run with noise of one unit in
the last place in all results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.errors import TmconvertError
from tmconvert.ir.emitter import EagerEmitter
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.traits import AbsoluteAccuracy

UNIT = float(np.finfo(np.float32).eps)
MARGIN = 64.0  # kernels sum in other orders, and approximate functions to a few units
COARSE = 16  # units, of a rounding that has to move an output further than one of 1 does
_DEEPEST = 3


class Shaken:
    """Evaluates ops like the reference, with random noise of units in the last place on floats.

    Ops with a decomposition are computed by it, since intermediate results of a kernel would have no noise.
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
        signs = self._random.integers(0, 2, array.shape) * 2 - 1
        with np.errstate(over="ignore"):
            made = (array * (1 + self._step * signs)).astype(array.dtype)
        return np.where(np.isinf(made), array, made)  # the largest numbers of a type stay finite

    def evaluated(self, op: Op, args: Sequence[object], attributes: Mapping[str, object]) -> Any:
        result = self._in_parts(op, args, attributes)
        if result is None:
            result = op.evaluate(args, attributes)
        return map_leaves(self.moved, result)

    def _in_parts(self, op: Op, args: Sequence[object], attributes: Mapping[str, object]) -> Any:
        if op.decomposition is None or self._depth == _DEEPEST:
            return None
        self._depth += 1
        try:
            return op.decomposition(self._emitter, **op.by_name(args, attributes))
        except (TmconvertError, TypeError, ValueError, AttributeError, IndexError):
            return None  # it is meant for graphs only
        finally:
            self._depth -= 1


class AbsoluteErrors(Shaken):
    """Evaluates ops like the reference; results with ``AbsoluteAccuracy`` are off by a unit of 1.

    All are too large for the seed 0, too small for 1, and either for others.
    """

    def __init__(self, catalogue: Mapping[str, Op], seed: int) -> None:
        super().__init__(catalogue, seed)
        self._signs = {0: 1, 1: -1}.get(seed)

    def moved(self, array: object) -> Any:
        return array

    def evaluated(self, op: Op, args: Sequence[object], attributes: Mapping[str, object]) -> Any:
        result = super().evaluated(op, args, attributes)
        if not op.has(AbsoluteAccuracy):
            return result
        signs = self._signs or self._random.integers(0, 2, result.shape) * 2 - 1
        return (result + self._step * signs).astype(result.dtype)


class _Emitter(EagerEmitter):
    def __init__(self, shaken: Shaken) -> None:
        super().__init__(shaken.catalogue)
        self._shaken = shaken

    def call(self, op: str, *args: object, **attributes: object) -> Any:
        definition: Any = self.catalogue[op]
        result = self._shaken.evaluated(definition, *definition.bind(args, attributes))
        return map_leaves(np.asarray, result)
