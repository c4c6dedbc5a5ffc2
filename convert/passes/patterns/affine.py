"""Products and sums with constants, and constants that are changed by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Constant, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.lazy_constants import Array, scaled
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.passes.patterns.matching import array_of, is_float_constant
from tmconvert.symbolics.registry import trait_of
from tmconvert.symbolics.traits import Arithmetic

_FRACTION_BITS = {"float16": 10, "float32": 23, "float64": 52}


class Affine(NamedTuple):
    """``x`` times or plus a constant, which has the rank of ``x``."""

    x: TensorNode
    constant: np.ndarray  # float64
    is_factor: bool

    @staticmethod
    def of(expr: CallFunction) -> Affine | None:
        arithmetic = trait_of(expr, Arithmetic)
        if arithmetic is None:
            return None
        x, other = expr.args
        if not arithmetic.is_inverse and array_of(x) is not None:
            x, other = other, x
        constant = array_of(other)
        if constant is None or array_of(x) is not None or x.type.shape != expr.output.type.shape:
            return None
        if x.type.dtype.kind != "f" or constant.ndim > x.type.rank or x.qparams or expr.output.qparams:
            return None
        constant = constant.reshape([1] * (x.type.rank - constant.ndim) + list(constant.shape))
        constant = constant.astype(np.float64)
        with np.errstate(all="ignore"):
            if arithmetic.is_inverse:
                constant = 1 / constant if arithmetic.is_product else -constant
        if not np.isfinite(constant).all() or (not arithmetic.is_product and _rounds(constant, x.type.dtype)):
            return None
        return Affine(x, constant, arithmetic.is_product)

    def combined(self, g: GraphEmitter, outer: Affine) -> TensorNode:
        """Emits one op for this one and ``outer``, an op of the same kind, with their constants combined."""
        both = self.constant * outer.constant if self.is_factor else self.constant + outer.constant
        made: TensorNode = g.call(
            "aten::mul" if self.is_factor else "aten::add", self.x, small_constant(g, both, self)
        )
        return made

    def along(self, axis: int) -> np.ndarray | None:
        return along_axis(self.constant, self.x.type.shape, axis)


def _rounds(summand: np.ndarray, dtype: np.dtype) -> bool:
    """Whether a sum with ``summand`` rounds to halves or more: added and subtracted, it rounds on purpose."""
    bits = _FRACTION_BITS.get(dtype.name)
    return bits is not None and bool((np.abs(summand) >= 2.0 ** (bits - 1)).any())


def small_constant(g: GraphEmitter, value: np.ndarray, like: Affine) -> TensorNode:
    made: TensorNode = g.constant(value.astype(like.x.type.dtype))
    return made


def along_axis(constant: np.ndarray, shape: Sequence[int], axis: int) -> np.ndarray | None:
    """``constant`` as one number for each index of ``axis``; None where it is more than that, or where the
    number of indices is symbolic.
    """
    if not shape or constant.size not in (1, constant.shape[axis]) or is_symbolic(shape[axis]):
        return None
    return np.broadcast_to(constant.reshape(-1), shape[axis])


def changed_constant(g: GraphEmitter, value: np.ndarray, like: TensorNode) -> TensorNode:
    """A constant called as ``like`` is, of its type."""
    return _called(g, value.astype(like.type.dtype, copy=False), like)


def scaled_constant(g: GraphEmitter, constant: TensorNode, factor: object) -> TensorNode:
    """The constant times a factor, as if in float64."""
    assert isinstance(constant.expr, Constant)
    return _called(g, scaled(constant.expr.stored, factor), constant)


def _called(g: GraphEmitter, value: Array, like: TensorNode) -> TensorNode:
    assert isinstance(like.expr, Constant)
    return g.parameter(value, like.expr.name or like.name)


def has_constants(layer: Any) -> bool:
    return layer.output.qparams is None and all(
        is_float_constant(node) for node in layer.args[1:] if node is not None
    )
