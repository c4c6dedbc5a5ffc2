"""Bits of integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..idioms.formulas import Term, formula
from ..layouts import ANY
from ..op import INTEGERS, Op, Tensor
from ..results import broadcast, same_as

Array = np.ndarray
NO_CAFFE = "every Caffe blob is float32"

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
    op.unsupported("caffe", NO_CAFFE)
    return op


BITWISE = {name: _op(name) for name in TABLE}
for _name in ("bitwise_and", "bitwise_or"):
    BITWISE[_name].unsupported("tflite", "it has no such operator")
for _name in ("bitwise_left_shift", "bitwise_right_shift"):
    BITWISE[_name].unsupported("tflite", "not written yet for TFLite")
BITWISE["bitwise_xor"].tflite()(lambda g, x, other: g.op("BITWISE_XOR", x, other))

bitwise_not = Op("aten::bitwise_not", args=[Tensor("x", INTEGERS)], result=same_as("x"), layout=ANY)
bitwise_not.reference(lambda x: np.invert(x))
bitwise_not.onnx(since=18)(lambda g, x: g.op("BitwiseNot", x))
bitwise_not.unsupported("caffe", NO_CAFFE)


@formula(bitwise_not)  # the complement of two
def bitwise_not_difference(x: Term) -> Term:
    return (int(np.iinfo(x.dtype).max) if x.dtype.kind == "u" else -1) - x


@formula(BITWISE["bitwise_left_shift"])  # a product in 64 bits, of which the lower ones stay
def left_shift(x: Term, other: Term) -> Term:
    factor = other.to(np.float64).exp2().to(np.int64)
    return (x.to(np.int64) * factor).to(x.dtype)


@formula(BITWISE["bitwise_right_shift"])  # the sign moves in from the left; float64 holds 32 bits
def right_shift(x: Term, other: Term) -> Term:
    divisor = other.to(np.float64).exp2()
    if x.dtype.itemsize == 8:
        return x.floor_divide(divisor.to(np.int64))
    return (x.to(np.float64) / divisor).floor().to(x.dtype)


OPS = [*BITWISE.values(), bitwise_not]
