"""Bitwise ops of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.bits import MOST, bits, masked
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import INTEGERS, Op, Tensor
from tmconvert.symbolics.ops.elementwise.binary import added, difference, multiplied
from tmconvert.symbolics.results import broadcast, same_as

Array = np.ndarray

# name: (kernel, operator of ONNX 18)
TABLE: dict[str, tuple[Callable[[Array, Array], Array], str]] = {
    "bitwise_and": (np.bitwise_and, "BitwiseAnd"),
    "bitwise_or": (np.bitwise_or, "BitwiseOr"),
    "bitwise_xor": (np.bitwise_xor, "BitwiseXor"),
    "bitwise_left_shift": (np.left_shift, ""),
    "bitwise_right_shift": (np.right_shift, ""),
}


def _op(name: str) -> Op:
    kernel, onnx_type = TABLE[name]
    args = [Tensor("x", INTEGERS), Tensor("other", INTEGERS)]
    op = Op(f"aten::{name}", args=args, result=broadcast("x", "other"), layout=ANY)
    op.reference(lambda x, other: kernel(x, other))
    if onnx_type:
        op.onnx(since=18)(lambda g, x, other: g.op(onnx_type, x, other))
    return op


BITWISE = {name: _op(name) for name in TABLE}

bitwise_not = Op("aten::bitwise_not", args=[Tensor("x", INTEGERS)], result=same_as("x"), layout=ANY)
bitwise_not.reference(lambda x: np.invert(x))
bitwise_not.onnx(since=18)(lambda g, x: g.op("BitwiseNot", x))


@formula(bitwise_not)  # the complement of two
def bitwise_not_difference(x: Term) -> Term:
    return (int(np.iinfo(x.dtype).max) if x.dtype.kind == "u" else -1) - x


@formula(BITWISE["bitwise_left_shift"])  # a product in 64 bits, of which the lower ones stay
def left_shift(x: Term, other: Term) -> Term:
    factor = other.to(np.float64).exp2().to(np.int64)
    return (x.to(np.int64) * factor).to(x.dtype)


@formula(BITWISE["bitwise_right_shift"])  # the sign moves in from the left; float64 holds 32 bits
def right_shift(x: Term, other: Term) -> Term:
    if x.dtype.itemsize < 8:
        return (x.to(np.float64) / other.to(np.float64).exp2()).floor().to(x.dtype)
    known = x.g.known(other.value)
    if known is not None and known.size and known.max() <= 62:
        return x.floor_divide(other.to(np.float64).exp2().to(np.int64))
    first = other.minimum(62)  # 2 ** 63 is no int64
    for by in (first, (other - first).minimum(1)):
        x = x.floor_divide(by.to(np.float64).exp2().to(np.int64))
    return x


# ---- by arithmetic, as in ONNX below opset 18: x mod 2 ** (i + 1) - x mod 2 ** i is bit i, at its value


@formula(BITWISE["bitwise_and"], onnx=12)  # Min of integers
def bitwise_and_sum(x: Term, other: Term) -> Term:
    for value, mask in ((x, other), (other, x)):
        known = x.g.known(mask.value)
        if known is not None and known.size == 1 and -(1 << MOST) <= known.item() < 1 << MOST:
            return masked(value.to(np.int64), known.item()).to(x.dtype)
    count = min(8 * x.dtype.itemsize, MOST)
    (low, top, sign), (others, other_top, other_sign) = (
        bits(each.to(np.int64), count) for each in (x, other)
    )
    total = top.minimum(other_top) + sign.maximum(other_sign)
    for part, other_part in zip(low, others, strict=True):
        total = total + Term(x.g, x.g.call("aten::sum", part.minimum(other_part).value, [-1], False))
    return total.to(x.dtype)


@formula(BITWISE["bitwise_or"], onnx=12)  # Min of integers
def bitwise_or_sum(x: Term, other: Term) -> Term:
    return (x - x.bitwise_and(other)) + other


@formula(BITWISE["bitwise_xor"], onnx=12)  # Min of integers
def bitwise_xor_sum(x: Term, other: Term) -> Term:
    both = x.bitwise_and(other)
    return (x - both) + (other - both)


# ---- TFLite knows exclusive or, and shifts to the right, of up to 32 bits


def _halved_tflite(g: Any, combine: Callable[[Any, Any, Any], Any], x: Any, other: Any) -> Any:
    """Handles 64 bits as twice 32 bits."""
    if x.dtype != np.int64:
        return combine(g, x, other)
    shape = (*broadcast_shapes(x.shape, other.shape), 2)
    halves = [
        g.const(np.ascontiguousarray(each.data).reshape((*each.shape, 1)).view(np.int32))
        if each.is_constant
        else g.op("BITCAST", each, shape=(*each.shape, 2), dtype=np.int32)
        for each in (x, other)
    ]
    return g.op("BITCAST", combine(g, *halves), shape=shape[:-1], dtype=np.int64)


def _xor(g: Any, x: Any, other: Any) -> Any:
    return g.op("BITWISE_XOR", x, other)


def _and(g: Any, x: Any, other: Any) -> Any:
    """Bitwise and: x + y = (x ^ y) + 2 (x & y), for all bits but the last, to avoid overflow."""
    one = g.const(np.array(1, x.dtype))
    high = [g.op("RIGHT_SHIFT", each, one) for each in (x, other)]
    low = [g.op("SUB", each, g.op("ADD", top, top)) for each, top in zip((x, other), high, strict=True)]
    return g.op("ADD", g.op("SUB", g.op("ADD", *high), _xor(g, *high)), g.op("MUL", *low))


def _or(g: Any, x: Any, other: Any) -> Any:
    return g.op("ADD", _xor(g, x, other), _and(g, x, other))


for _name, _combine in (("and", _and), ("or", _or), ("xor", _xor)):
    BITWISE[f"bitwise_{_name}"].tflite()(
        lambda g, x, other, combine=_combine: _halved_tflite(g, combine, x, other)
    )


@BITWISE["bitwise_right_shift"].tflite()
def bitwise_right_shift_tflite(g, x, other):
    """RIGHT_SHIFT takes up to 32 bits; 64 are moved as halves, by 31 at most at once."""
    if x.dtype != np.int64:
        return g.op("RIGHT_SHIFT", x, other)
    shape = (*broadcast_shapes(x.shape, other.shape), 1)
    low, high = _halves_tflite(g, x)
    left = _places_tflite(g, other)
    for _ in range(3):
        by = _least_tflite(g, left, 31)
        low, high = _moved_tflite(g, low, high, by, shape)
        left = g.const(left.data - by.data) if left.is_constant else g.op("SUB", left, by)
        if left.is_constant and not left.data.any():
            break
    pair = g.op("CONCATENATION", low, high, axis=len(shape) - 1, shape=(*shape[:-1], 2))
    return g.op("BITCAST", pair, shape=shape[:-1], dtype=np.int64)


def _halves_tflite(g: Any, x: Any) -> list[Any]:
    """The lower and the upper 32 bits, with an axis of extent 1 at the end."""
    if x.is_constant:
        pair = np.ascontiguousarray(x.data).reshape((*x.shape, 1)).view(np.int32)
        return [g.const(pair[..., i : i + 1]) for i in (0, 1)]
    pair, rank = g.op("BITCAST", x, shape=(*x.shape, 2), dtype=np.int32), len(x.shape)
    shape = (*x.shape, 1)
    return [
        g.op("SLICE", pair, g.ints([*[0] * rank, half]), g.ints(list(shape)), shape=shape, dtype=np.int32)
        for half in (0, 1)
    ]


def _places_tflite(g: Any, other: Any) -> Any:
    """By how many bits each element is moved, in int32: 63 leave the sign alone."""
    if other.is_constant:
        return g.const(np.clip(other.data, 0, 63).astype(np.int32).reshape((*other.shape, 1)))
    most = g.op("MINIMUM", other, g.const(np.array(63, other.dtype)))
    return idioms.tflite.reshaped(g, g.cast(most, np.dtype(np.int32)), (*other.shape, 1))


def _least_tflite(g: Any, x: Any, most: int) -> Any:
    if x.is_constant:
        return g.const(np.minimum(x.data, np.int32(most)))
    return g.op("MINIMUM", x, g.const(np.array(most, x.dtype)))


def _moved_tflite(g: Any, low: Any, high: Any, by: Any, shape: Any) -> tuple[Any, Any]:
    """Both halves moved by 31 bits at most: what leaves the upper one enters the lower one.

    The lower half has no sign: what its shift has filled in is taken out, with the same factor.
    """
    factors = np.array([(1 << (32 - i)) & 0xFFFFFFFF for i in range(32)], np.uint32).view(np.int32)
    if by.is_constant:
        factor = g.const(factors[by.data])
    else:
        factor = g.op("GATHER", g.const(factors), by, axis=0, shape=by.shape, dtype=np.int32)
    filled = g.op("RIGHT_SHIFT", low, g.const(np.array(31, np.int32)))
    entering = g.op("MUL", g.op("SUB", high, filled), factor, shape=shape)
    kept = g.op("RIGHT_SHIFT", low, by, shape=shape)
    return g.op("ADD", kept, entering, shape=shape), g.op("RIGHT_SHIFT", high, by, shape=shape)


@BITWISE["bitwise_left_shift"].tflite()
def bitwise_left_shift_tflite(g, x, other):
    """Multiplies by a power of two from a table; bits that overflow are lost."""
    bits = 8 * x.dtype.itemsize
    powers = np.array([1 << i for i in range(bits)], np.uint64).astype(x.dtype)
    last = g.const(np.array(bits, other.dtype))
    places = g.cast(g.op("MINIMUM", other, last), np.dtype(np.int32))
    factor = g.op("GATHER", g.const(np.append(powers, x.dtype.type(0))), places, axis=0, shape=other.shape)
    factor.dtype = x.dtype
    return g.op("MUL", x, factor)


# ---- Caffe has floats, of which bits are odd quotients by powers of 2


def _common_caffe(g: Any, x: Any, other: Any) -> Any:
    """Returns the common bits of both as a number."""
    shape = g.result_types[0].shape
    count = min(8 * x.dtype.itemsize - (x.dtype.kind == "i"), idioms.caffe_numbers.MOST_BITS)
    weights = np.ldexp(np.array([1] * count + [-1], np.float32), np.arange(count + 1))
    both = []
    for value in (x, other):
        if value.is_constant:
            data = np.broadcast_to(value.data, shape).reshape(-1, 1).astype(np.int64)
            both.append(g.const((data >> np.arange(count + 1) & 1).astype(np.float32)))
        else:
            row = idioms.caffe.reshaped(g, idioms.caffe.spread(g, value, shape), (math.prod(shape),))
            both.append(idioms.caffe_numbers.bits(g, row, count))
    made = idioms.caffe.mapped_along(g, multiplied(g, *both), 1, weights[None])
    return idioms.caffe.reshaped(g, made, shape)


BITWISE["bitwise_and"].caffe()(lambda g, x, other: _common_caffe(g, x, other))


@BITWISE["bitwise_or"].caffe()
def bitwise_or_caffe(g, x, other):
    return difference(g, added(g, x, other), _common_caffe(g, x, other))


@BITWISE["bitwise_xor"].caffe()
def bitwise_xor_caffe(g, x, other):
    twice = g.op("Power", _common_caffe(g, x, other), scale=2.0)
    return difference(g, added(g, x, other), twice)


OPS = [*BITWISE.values(), bitwise_not]
