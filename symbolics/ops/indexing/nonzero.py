"""aten::nonzero, argwhere and masked_select, with data-dependent result sizes."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.symbolic.data_dependent import found
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.indices import let_through
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor
from tmconvert.symbolics.ops.elementwise.to import ONNX_TYPES

Array = np.ndarray

INT64 = np.dtype(np.int64)
RANKS = tuple(range(1, 9))


def _places(x: TensorType) -> TensorType:
    return TensorType(INT64, (found(x.size), x.rank))


def _selected(x: TensorType, mask: TensorType) -> TensorType:
    shape = broadcast_shapes(x.shape, mask.shape)
    return TensorType(x.dtype, (found(TensorType(x.dtype, shape).size),))


nonzero = Op("aten::nonzero", args=[Tensor("x", ANY_DTYPE, ranks=RANKS)], result=_places)
argwhere = Op("aten::argwhere", args=[Tensor("x", ANY_DTYPE, ranks=RANKS)], result=_places)
masked_select = Op(
    "aten::masked_select", args=[Tensor("x", ANY_DTYPE), Tensor("mask", ("bool",))], result=_selected
)
OPS = [nonzero, argwhere, masked_select]


@nonzero.reference
def nonzero_ref(x: Array) -> Array:
    """Returns a row of indices per non-zero element, in the order of the elements."""
    return np.argwhere(x)


@nonzero.onnx(since=9)
def nonzero_onnx9(g, x):
    count, rank = g.result_types[0].shape
    if x.dtype == np.float64:  # for which ONNX Runtime has no kernel
        x = g.op("Cast", x, to=ONNX_TYPES["bool"], dtype="bool")
    return g.op("Transpose", g.op("NonZero", x, shape=(rank, count), dtype=INT64), perm=[1, 0])


@nonzero.tflite()
def nonzero_tflite(g, x):
    if x.dtype in (np.float16, np.float64):
        x = g.op("CAST", x, dtype=bool)
    return g.op("WHERE", x, shape=g.result_types[0].shape, dtype=INT64)


argwhere.reference(nonzero_ref)


argwhere.decompose(onnx=9)(lambda g, x: g.call("aten::nonzero", x))


@masked_select.reference
def masked_select_ref(x: Array, mask: Array) -> Array:
    """Returns the elements where ``mask`` is true, in order; both broadcast."""
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


@masked_select.decompose(onnx=9)
def masked_select_indexed(g, x, mask):
    shape = list(broadcast_shapes(g.type(x).shape, g.type(mask).shape))
    x, mask = (g.call("aten::expand", each, shape) for each in (x, mask))
    return let_through(g, x, 0, mask)


for _op in OPS:
    _op.unsupported("caffe", "a Caffe net has static sizes only")
