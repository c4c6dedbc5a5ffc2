"""Matrix products: aten::matmul, and ops that are special cases of it.

Operands have one element type, and so has the result. Source of the rules on ranks: torch.matmul, which are
NumPy's: a vector in front is a row, a vector behind a column, and the axes before the last two broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.op import FLOATS, NUMBERS, Op, Tensor
from tmconvert.symbolics.traits import MatrixProduct

Array = np.ndarray


def product_type(x: TensorType, other: TensorType) -> TensorType:
    if not x.rank or not other.rank or x.dtype != other.dtype:
        raise ValueError(f"the matrix product of {x} and {other} is not defined")
    left = x.shape if x.rank > 1 else (1, *x.shape)
    right = other.shape if other.rank > 1 else (*other.shape, 1)
    if left[-1] != right[-2]:
        raise ValueError(f"the rows of {x} and the columns of {other} differ in length")
    batch = broadcast_shapes(left[:-2], right[:-2])
    rows = left[-2:-1] if x.rank > 1 else ()
    columns = right[-1:] if other.rank > 1 else ()
    return TensorType(x.dtype, (*batch, *rows, *columns))


matmul = Op(
    "aten::matmul",
    args=[Tensor("x", NUMBERS), Tensor("other", NUMBERS)],
    result=product_type,
    traits=[MatrixProduct()],
)


@matmul.reference
def matmul_ref(x: Array, other: Array) -> Array:
    """Matrix product; float16 is accumulated in float32, as runtimes do."""
    if x.dtype == np.float16:
        return np.matmul(x.astype(np.float32), other.astype(np.float32)).astype(np.float16)
    return np.matmul(x, other)


@matmul.onnx(since=1)
def matmul_onnx1(g, x, other):
    if len(x.shape) == len(other.shape) == 1:  # tract and OpenCV refuse a MatMul of two vectors
        return g.op("ReduceSum", g.op("Mul", x, other), keepdims=0)
    if not _is_product_with_vector(x, other):
        return g.op("MatMul", x, other, shape=g.result_types[0].shape)
    column = g.op("Unsqueeze", other, axes=[1], shape=(*other.shape, 1))
    product = g.op("MatMul", x, column, shape=(*x.shape[:-1], 1))
    return g.op("Squeeze", product, axes=[len(x.shape) - 1], shape=x.shape[:-1])


@matmul.onnx(since=13)  # Unsqueeze and Squeeze take the axes as an input
def matmul_onnx13(g, x, other):
    if not _is_product_with_vector(x, other):
        return matmul_onnx1(g, x, other)
    column = g.op("Unsqueeze", other, g.ints([1]), shape=(*other.shape, 1))
    product = g.op("MatMul", x, column, shape=(*x.shape[:-1], 1))
    return g.op("Squeeze", product, g.ints([len(x.shape) - 1]), shape=x.shape[:-1])


def _is_product_with_vector(x: Any, other: Any) -> bool:
    """Whether a computed matrix is multiplied by a vector.

    ONNX Runtime 1.32 fuses a Transpose before such a MatMul and then computes it without the transposition.
    """
    return len(x.shape) > 1 == len(other.shape) and not x.is_constant


@matmul.tflite()
def matmul_tflite(g, x, other):
    left = x if len(x.shape) > 1 else idioms.tflite.reshaped(g, x, (1, *x.shape))
    right = other if len(other.shape) > 1 else idioms.tflite.reshaped(g, other, (*other.shape, 1))
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if x.dtype.kind != "f":
        return _summed_tflite(g, left, right, batch)
    product = _product_tflite(g, left, right, (*batch, left.shape[-2], right.shape[-1]))
    return idioms.tflite.reshaped(g, product, g.result_types[0].shape)


def _product_tflite(g: Any, left: Any, right: Any, shape: Sequence[Any], **options: bool) -> Any:
    """Emits BATCH_MATMUL of operands of one rank and batch; a single right matrix takes all rows as one.

    The GPU of LiteRT 2.3 computes a broadcast batch wrong, and one tensor as both operands aborts it. More
    than three batch axes are merged.
    """
    batch = tuple(shape[:-2])
    if is_symbolic((*left.shape, *right.shape)):
        return g.op("BATCH_MATMUL", left, right, shape=shape, **options)
    if math.prod(right.shape[:-2]) == 1 and math.prod(batch) > 1 and left.shape[:-2] == batch:
        rows = idioms.tflite.reshaped(g, left, (math.prod(left.shape[:-1]), left.shape[-1]))
        matrix = idioms.tflite.reshaped(g, right, right.shape[-2:])
        product = g.op("BATCH_MATMUL", rows, matrix, shape=(rows.shape[0], shape[-1]), **options)
        return idioms.tflite.reshaped(g, product, shape)
    left, right = (idioms.tflite.expanded(g, each, (*batch, *each.shape[-2:])) for each in (left, right))
    made = shape
    if len(shape) > 5:
        made = (math.prod(batch), *shape[-2:])
        left, right = (
            idioms.tflite.reshaped(g, each, (math.prod(batch), *each.shape[-2:])) for each in (left, right)
        )
    if left is right:
        right = g.op("RESHAPE", right, g.ints(right.shape), new_shape=list(right.shape), shape=right.shape)
    return g.op("BATCH_MATMUL", left, right, shape=made, **options)


def _summed_tflite(g: Any, left: Any, right: Any, batch: Any) -> Any:
    """Integer product, which BATCH_MATMUL lacks: the sum over k of [..., m, k, 1] x [..., 1, k, n]."""
    (rows, inner), columns = left.shape[-2:], right.shape[-1]
    left = idioms.tflite.reshaped(g, left, (*left.shape, 1))
    right = idioms.tflite.reshaped(g, right, (*right.shape[:-2], 1, inner, columns))
    parts = g.op("MUL", left, right, shape=(*batch, rows, inner, columns))
    total = g.op("SUM", parts, g.ints([len(batch) + 1]), keep_dims=False, shape=(*batch, rows, columns))
    return idioms.tflite.reshaped(g, total, g.result_types[0].shape)


@matmul.caffe()
def matmul_caffe(g, x, other):
    if not other.is_constant or len(other.shape) != 2 or len(x.shape) < 2 or x.is_constant:
        return _computed_caffe(g, x, other)
    return idioms.caffe.product_along_last(g, x, g.const(other.data.T, name=f"{other.name}_T"))


def _computed_caffe(g, x, other):
    """Product of computed matrices, or with a constant on the left; vectors become matrices."""
    left = idioms.caffe.reshaped(g, x, (1, *x.shape)) if len(x.shape) == 1 else x
    right = idioms.caffe.reshaped(g, other, (*other.shape, 1)) if len(other.shape) == 1 else other
    if left.is_constant and len(left.shape) == 2 and not right.is_constant:
        made = idioms.caffe.mapped_along(g, right, len(right.shape) - 2, np.asarray(left.data))
        return idioms.caffe.reshaped(g, made, g.result_types[0].shape)
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    blocks = []
    for value in (left, right):
        if value.is_constant:
            value = g.const(np.broadcast_to(np.asarray(value.data), (*batch, *value.shape[-2:])))
            value = idioms.caffe_numbers.filled(g, value, right if right.data is None else left)
        whole = idioms.caffe.spread(g, value, (*batch, *value.shape[-2:]))
        blocks.append(idioms.caffe.reshaped(g, whole, (math.prod(batch), *value.shape[-2:])))
    return idioms.caffe.reshaped(g, idioms.caffe_numbers.product(g, *blocks), g.result_types[0].shape)


def _of_ranks(name: str, second: str, left: int, right: int) -> Op:
    """Declares a product op of ATen for operands of these ranks, without broadcasting."""

    def result(**arguments: TensorType) -> TensorType:
        x, other = arguments["x"], arguments[second]
        if (x.rank, other.rank) != (left, right) or (left == 3 and x.shape[0] != other.shape[0]):
            raise ValueError(f"{x} and {other} do not fit {name}")
        return product_type(x, other)

    args = [Tensor("x", NUMBERS), Tensor(second, NUMBERS)]
    return Op(f"aten::{name}", args=args, result=result, traits=[MatrixProduct()])


mm = _of_ranks("mm", "mat2", 2, 2)
bmm = _of_ranks("bmm", "mat2", 3, 3)
mv = _of_ranks("mv", "vec", 2, 1)
dot = _of_ranks("dot", "tensor", 1, 1)

for _op in (mm, bmm):

    @_op.reference
    def mm_ref(x: Array, mat2: Array) -> Array:
        return matmul_ref(x, mat2)

    @_op.decompose
    def mm_product(g, x, mat2):
        return g.call("aten::matmul", x, mat2)


mv.reference(lambda x, vec: matmul_ref(x, vec))
mv.decompose(lambda g, x, vec: g.call("aten::matmul", x, vec))
dot.reference(lambda x, tensor: matmul_ref(x, tensor))
dot.decompose(lambda g, x, tensor: g.call("aten::matmul", x, tensor))


def _transposed_type(x: TensorType, other: TensorType) -> TensorType:
    if other.rank < 2:
        raise ValueError(f"{other} is not a matrix")
    shape = (*other.shape[:-2], other.shape[-1], other.shape[-2])
    return product_type(x, TensorType(other.dtype, shape))


matmul_nt = Op(
    "tm::matmul_nt",
    args=[Tensor("x", FLOATS), Tensor("other", FLOATS)],
    result=_transposed_type,
    traits=[MatrixProduct()],
)


@matmul_nt.reference
def matmul_nt_ref(x: Array, other: Array) -> Array:
    """``x`` times the transposed ``other``: N and T of BLAS's gemm."""
    return matmul_ref(x, np.swapaxes(other, -1, -2))


@matmul_nt.tflite()
def matmul_nt_tflite(g, x, other):
    if len(x.shape) < 2:
        x = idioms.tflite.reshaped(g, x, (1, *x.shape))
    batch = broadcast_shapes(x.shape[:-2], other.shape[:-2])
    product = _product_tflite(g, x, other, (*batch, x.shape[-2], other.shape[-2]), adj_y=True)
    return idioms.tflite.reshaped(g, product, g.result_types[0].shape)


@matmul_nt.decompose
def matmul_nt_permuted(g, x, other):
    order = list(range(g.type(other).rank))
    return g.call("aten::matmul", x, g.call("aten::permute", other, [*order[:-2], order[-1], order[-2]]))


OPS = [matmul, matmul_nt, mm, bmm, mv, dot]
