"""Shrink and threshold activations."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY, SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import FLOATS, NUMBERS, Argument, Op, Tensor, integer, number
from tmconvert.symbolics.ops.elementwise.unary import sigmoid
from tmconvert.symbolics.results import normalized_axis, same_as, same_with
from tmconvert.symbolics.traits import Clamp

Array = np.ndarray


def _positive(x: TensorType, lambd: float) -> TensorType:
    if lambd < 0:
        raise ValueError(f"lambd {lambd} is negative")
    return x


LAMBD: list[Argument] = [Tensor("x", FLOATS), number("lambd", 0.5)]
hardshrink = Op("aten::hardshrink", args=LAMBD, result=same_as("x"), layout=ANY)
softshrink = Op("aten::softshrink", args=LAMBD, result=_positive, layout=ANY)
hardshrink.reference(lambda x, lambd: np.where((x >= -lambd) & (x <= lambd), 0, x).astype(x.dtype))
softshrink.reference(lambda x, lambd: (x - np.clip(x, -lambd, lambd)).astype(x.dtype))


@hardshrink.onnx(since=9)
def hardshrink_onnx9(g, x, lambd):
    return x if lambd < 0 else g.op("Shrink", x, lambd=float(lambd), bias=0.0)


softshrink.onnx(since=9)(lambda g, x, lambd: g.op("Shrink", x, lambd=float(lambd), bias=float(lambd)))


formula(hardshrink)(lambda x, lambd: x if lambd < 0 else (x.abs() > lambd).where(x, 0))
formula(softshrink)(lambda x, lambd: x - x.clamp(min=-lambd, max=lambd))


hardtanh = Op(
    "aten::hardtanh",
    args=[Tensor("x", NUMBERS), number("min_val", -1), number("max_val", 1)],
    result=same_with("min_val", "max_val"),
    layout=ANY,
    traits=[Clamp("min_val", "max_val")],
)
hardtanh.reference(lambda x, min_val, max_val: np.clip(x, min_val, max_val).astype(x.dtype))


formula(hardtanh)(lambda x, min_val, max_val: x.clamp(min=min_val, max=max_val))


threshold = Op(
    "aten::threshold",
    args=[Tensor("x", NUMBERS), number("threshold"), number("value")],
    result=same_with("threshold", "value"),
    layout=ANY,
)
threshold.reference(lambda x, threshold, value: np.where(x <= threshold, np.array(value, x.dtype), x))


formula(threshold)(lambda x, threshold, value: (x <= threshold).where(value, x))


def _glu_result(x: TensorType, dim: int) -> TensorType:
    axis = normalized_axis(dim, x.rank)
    if x.shape[axis] % 2:
        raise ValueError(f"axis {axis} of {x} has an odd extent, and glu splits it into two halves")
    return TensorType(x.dtype, (*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]))


def _glu_layout(x: TensorType, dim: int) -> LayoutRule:
    return any_with(dim="axis") if x.rank == 4 else SOURCE


glu = Op("aten::glu", args=[Tensor("x", FLOATS), integer("dim", -1)], result=_glu_result, layout=_glu_layout)


@glu.reference
def glu_ref(x: Array, dim: int) -> Array:
    """The first half along an axis times the sigmoid of the second half."""
    first, second = np.split(x, 2, dim)
    return (first * sigmoid(second)).astype(x.dtype)


@formula(glu)
def glu_product(x: Term, dim: int) -> Term:
    half = x.type.shape[dim] // 2
    first = x.call("slice", dim=dim, start=0, end=half)
    return first * x.call("slice", dim=dim, start=half, end=2 * half).sigmoid()


OPS = [hardshrink, softshrink, hardtanh, threshold, glu]
