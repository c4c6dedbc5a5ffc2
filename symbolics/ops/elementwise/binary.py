"""Elementwise arithmetic of two tensors of one dtype, shapes broadcast as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, NUMBERS, Op, Tensor
from tmconvert.symbolics.ops.elementwise.to import ONNX_TYPES
from tmconvert.symbolics.results import broadcast
from tmconvert.symbolics.traits import (
    Arithmetic,
    BoundedByOther,
    Homogeneous,
    IntegerSteps,
    SeesSignOfZero,
    Trait,
)

Array = np.ndarray


class Row(NamedTuple):
    """One op: its kernel, the dtypes it takes, and the operators of ONNX and TFLite."""

    kernel: Callable[[Array, Array], Array]
    dtypes: tuple[str, ...]
    onnx: tuple[int, str]
    tflite: str


TABLE: dict[str, Row] = {
    "add": Row(np.add, NUMBERS, (7, "Add"), "ADD"),
    "sub": Row(np.subtract, NUMBERS, (7, "Sub"), "SUB"),
    "mul": Row(np.multiply, NUMBERS, (7, "Mul"), "MUL"),
    "div": Row(np.true_divide, FLOATS, (7, "Div"), "DIV"),
    "maximum": Row(np.maximum, NUMBERS, (8, "Max"), "MAXIMUM"),  # Max broadcasts from 8 on
    "minimum": Row(np.minimum, NUMBERS, (8, "Min"), "MINIMUM"),
}

TRAITS: dict[str, list[Trait]] = {
    "add": [Arithmetic(neutral=0), Homogeneous(operands=2)],
    "sub": [Arithmetic(neutral=0, is_inverse=True), Homogeneous(operands=2)],
    "mul": [Arithmetic(neutral=1)],
    "div": [
        Arithmetic(neutral=1, is_inverse=True),
        SeesSignOfZero(1),
        IntegerSteps(lambda g, **given: idioms.integer_steps.div(g, **given)),
    ],
    "maximum": [Homogeneous(operands=2)],
    "minimum": [BoundedByOther(), Homogeneous(operands=2)],
}


def _op(name: str) -> Op:
    row = TABLE[name]
    op = Op(
        f"aten::{name}",
        args=[Tensor("x", row.dtypes), Tensor("other", row.dtypes)],
        result=broadcast("x", "other"),
        layout=ANY,
        traits=TRAITS[name],
    )
    op.reference(lambda x, other: row.kernel(x, other))
    op.onnx(row.onnx[0])(lambda g, x, other: g.op(row.onnx[1], x, other))
    op.tflite()(lambda g, x, other: g.op(row.tflite, x, other))
    return op


BINARY = {name: _op(name) for name in TABLE}
OPS = list(BINARY.values())


def _constants_second(x: Any, other: Any) -> tuple[Any, Any]:
    return (other, x) if x.is_constant else (x, other)


def _fits(g: Any, x: Any, other: Any) -> tuple[Any, Array]:
    """Reshapes ``x`` to the shape of the result, and the constant ``other`` to its rank."""
    x = idioms.caffe.spread(g, x, np.broadcast_shapes(x.shape, other.shape))
    return x, other.data.reshape(idioms.caffe.padded_shape(other, len(x.shape)))


def _aligned(g: Any, x: Any, other: Any) -> tuple[Any, Any]:
    """Broadcasts both operands to the larger shape, with an extra axis for rank 1.

    OpenCV stores a blob of one axis in several ways, which its Eltwise then takes for different shapes.
    """
    if len(x.shape) <= 1 and len(other.shape) <= 1:
        x, other = (idioms.caffe.reshaped(g, value, (1, *(value.shape or (1,)))) for value in (x, other))
    if x.shape == other.shape:
        return x, other
    if np.broadcast_shapes(x.shape, other.shape) == x.shape:
        return x, idioms.caffe.expanded(g, other, x)
    if np.broadcast_shapes(x.shape, other.shape) == other.shape:
        return idioms.caffe.expanded(g, x, other), other
    shape = np.broadcast_shapes(x.shape, other.shape)
    return idioms.caffe.spread(g, x, shape), idioms.caffe.spread(g, other, shape)


def _merged(g: Any, x: Any, other: Any, **attributes: Any) -> Any:
    """Emits an Eltwise of aligned operands, in the shape of the result."""
    return idioms.caffe.reshaped(g, g.op("Eltwise", x, other, **attributes), g.result_types[0].shape)


def _signed(g: Any, x: Any) -> None:
    """Rejects unsigned types that wrap around below zero: Caffe's float32 would become negative."""
    if x.dtype.kind == "u":
        g.refuse(f"Caffe computes in float32, in which {x.dtype} does not wrap around")


BINARY["add"].caffe()(lambda g, x, other: added(g, x, other))


def added(g: Any, x: Any, other: Any) -> Any:
    x, other = _constants_second(x, other)
    if other.is_constant:
        x, constant = _fits(g, x, other)
        return idioms.caffe.scaled(g, x, None, constant)
    return _merged(g, *_aligned(g, x, other), operation="SUM")


@BINARY["sub"].caffe()
def sub_caffe(g, x, other):
    _signed(g, x)
    return difference(g, x, other)


def difference(g: Any, x: Any, other: Any) -> Any:
    if other.is_constant:
        x, constant = _fits(g, x, other)
        return idioms.caffe.scaled(g, x, None, -constant.astype(np.float32))
    if x.is_constant:
        other, constant = _fits(g, other, x)
        minus = np.full((1,) * len(other.shape), -1, np.float32)
        return idioms.caffe.scaled(g, other, minus, constant.astype(np.float32))
    return _merged(g, *_aligned(g, x, other), operation="SUM", coeff=[1.0, -1.0])


BINARY["mul"].caffe()(lambda g, x, other: multiplied(g, x, other))


def multiplied(g: Any, x: Any, other: Any) -> Any:
    x, other = _constants_second(x, other)
    if other.is_constant:
        x, constant = _fits(g, x, other)
        return idioms.caffe.scaled(g, x, constant, None)
    return product(g, x, other)


@BINARY["div"].caffe()
def div_caffe(g, x, other):
    if other.is_constant:
        x, constant = _fits(g, x, other)
        with np.errstate(divide="ignore"):  # a zero makes infinities, as it does in the source
            inverse = 1 / constant
        return idioms.caffe.scaled(g, x, inverse, None)
    inverse = g.op("Power", other, power=-1.0)
    if x.is_constant:
        inverse, constant = _fits(g, inverse, x)
        return idioms.caffe.scaled(g, inverse, constant, None)
    return product(g, x, inverse)


def product(g: Any, x: Any, other: Any) -> Any:
    shape = np.broadcast_shapes(x.shape, other.shape)
    if len(shape) <= 1:  # see _aligned
        rows = (idioms.caffe.reshaped(g, value, (1, *(value.shape or (1,)))) for value in (x, other))
        return idioms.caffe.reshaped(g, product(g, *rows), shape)
    if x.shape == other.shape:
        return g.op("Eltwise", x, other, operation="PROD")
    if shape == x.shape:
        return idioms.caffe.multiplied(g, x, other)
    if shape == other.shape:
        return idioms.caffe.multiplied(g, other, x)
    return idioms.caffe.multiplied(g, idioms.caffe.spread(g, x, shape), other)


@BINARY["maximum"].caffe()
def maximum_caffe(g, x, other):
    x, other = _constants_second(x, other)
    if other.is_constant:
        return _at_least(g, *_fits(g, x, other))
    return _merged(g, *_aligned(g, x, other), operation="MAX")


@BINARY["minimum"].caffe()
def minimum_caffe(g, x, other):
    """Minimum: the negated maximum of the negated operands."""
    x, other = _constants_second(x, other)
    if other.is_constant:
        x, bound = _fits(g, x, other)
        made = _at_least(g, g.op("Power", x, scale=-1.0), -bound.astype(np.float32))
    else:
        negated = [g.op("Power", value, scale=-1.0) for value in _aligned(g, x, other)]
        made = _merged(g, *negated, operation="MAX")
    return g.op("Power", made, scale=-1.0)


def _at_least(g: Any, x: Any, bound: Array) -> Any:
    """Maximum; relu(x - bound) + bound would lose small values next to a large bound."""
    if bound.size == 1:
        return idioms.caffe.at_least(g, x, float(bound.reshape(-1)[0]))
    bounds = idioms.caffe.scaled(g, g.op("Power", x, scale=0.0), None, bound)
    return _merged(g, *_aligned(g, x, bounds), operation="MAX")


def _zeros_onnx7(g: Any, x: Any) -> Any:
    """Zeros of the shape of ``x``, also for infinities and NaN."""
    if x.dtype.kind != "f":
        return g.op("Mul", x, g.const(0))
    never = g.op("Less", x, x, dtype=bool)
    return g.op("Cast", never, to=ONNX_TYPES[x.dtype.name], dtype=x.dtype)


def _onnx7_extremum(name: str, onnx_type: str) -> None:
    def extremum_onnx7(g, x, other):  # Max and Min did not broadcast: add zeros of the other's shape
        if x.shape != other.shape:
            x, other = (g.op("Add", x, _zeros_onnx7(g, other)), g.op("Add", other, _zeros_onnx7(g, x)))
        return g.op(onnx_type, x, other)

    BINARY[name].onnx(since=1)(extremum_onnx7)


_onnx7_extremum("maximum", "Max")
_onnx7_extremum("minimum", "Min")
