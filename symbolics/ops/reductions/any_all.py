"""aten::any, aten::all and aten::count_nonzero over axes; without ``dim``, or with an empty one, over all.

Numbers count as true unless they are zero. The count is int32, the index type of our sources; ATen's
is int64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tmconvert.ir.node import TensorNode
from tmconvert.ir.symbolic.signs import may_be_zero
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, boolean, integers
from tmconvert.symbolics.ops.reductions.reduce import reduced_axes, reduced_type

Array = np.ndarray


def _op(name: str, kernel: Callable[..., Array], extreme: str, onnx_type: str) -> Op:
    def result(x: TensorType, dim: list[int] | None, keepdim: bool) -> TensorType:
        return TensorType(np.dtype(bool), reduced_type(x, dim, keepdim).shape)

    op = Op(
        f"aten::{name}",
        args=[Tensor("x", ANY_DTYPE), integers("dim", None), boolean("keepdim", False)],
        result=result,
    )

    @op.reference
    def any_all_ref(x: Array, dim: list[int] | None, keepdim: bool) -> Array:
        return kernel(x, axis=tuple(reduced_axes(x.ndim, dim)), keepdims=keepdim)

    @op.native_where("onnx")
    def is_of_flags(x: TensorNode, dim: list[int] | None, keepdim: bool) -> bool:
        """ONNX Runtime refuses to reduce no elements."""
        return bool(x.type.dtype == np.bool_ and not any(map(may_be_zero, x.type.shape)))

    @op.onnx(since=20)  # before, they do not take bools
    def any_all_onnx20(g, x, dim, keepdim):
        axes = reduced_axes(len(x.shape), dim)
        return g.op(onnx_type, x, g.ints(axes) if axes else None, keepdims=int(keepdim))

    @op.decompose
    def any_all_extreme(g, x, dim, keepdim):
        if g.type(x).dtype != np.bool_:
            return g.call(op.name, g.call("aten::to", x, dtype="bool"), dim, keepdim)
        flags = g.call("aten::to", x, dtype="int32")
        made = g.call(extreme, flags, dim, keepdim)
        shape = g.type(x).shape
        if any(map(may_be_zero, shape)):  # of no elements it is the least or the greatest integer
            return g.call("aten::gt", made, g.constant(0, np.int32))
        return g.call("aten::to", made, dtype="bool")

    return op


any_ = _op("any", np.any, "aten::amax", "ReduceMax")
all_ = _op("all", np.all, "aten::amin", "ReduceMin")


def _count(x: TensorType, dim: list[int] | None) -> TensorType:
    return TensorType(np.dtype(np.int32), reduced_type(x, dim, False).shape)


count_nonzero = Op("aten::count_nonzero", args=[Tensor("x", ANY_DTYPE), integers("dim", None)], result=_count)


@count_nonzero.reference
def count_nonzero_ref(x: Array, dim: list[int] | None) -> Array:
    return np.count_nonzero(x, axis=tuple(reduced_axes(x.ndim, dim))).astype(np.int32)


@count_nonzero.decompose
def count_nonzero_sum(g, x, dim):
    flags = g.call("aten::to", g.call("aten::to", x, dtype="bool"), dtype="int32")
    return g.call("aten::sum", flags, dim)


OPS = [any_, all_, count_nonzero]
