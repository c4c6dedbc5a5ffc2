"""aten::triu and aten::tril, matrices above and below a diagonal; aten::trace, the sum on the main one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tmconvert.ir.symbolic.clamps import minimum
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.op import ANY_DTYPE, NUMBERS, Op, Tensor, integer

Array = np.ndarray


def _matrices(x: TensorType, diagonal: int) -> TensorType:
    if x.rank < 2:
        raise ValueError(f"{x} is not a matrix")
    return x


def _op(name: str, kernel: Callable[..., Array], upper: int) -> Op:
    op = Op(f"aten::{name}", args=[Tensor("x", ANY_DTYPE), integer("diagonal", 0)], result=_matrices)

    @op.reference
    def triangle_ref(x: Array, diagonal: int) -> Array:
        return kernel(x, diagonal)

    @op.onnx(since=14)
    def triangle_onnx14(g, x, diagonal):
        return g.op("Trilu", x, g.ints(diagonal), upper=upper)

    @op.decompose
    def triangle_mask(g, x, diagonal):
        type_ = g.type(x)
        rows, columns = (
            g.call("aten::to", numbers(g, 0, extent), dtype="int32") for extent in type_.shape[-2:]
        )
        across = g.call("aten::sub", columns, g.call("aten::reshape", rows, [type_.shape[-2], 1]))
        inside = g.call("aten::ge" if upper else "aten::le", across, g.constant(diagonal, np.int32))
        return g.call("aten::where", inside, x, g.constant(0, type_.dtype))

    return op


triu, tril = _op("triu", np.triu, 1), _op("tril", np.tril, 0)


def _sum_of_matrix(x: TensorType) -> TensorType:
    if x.rank != 2:
        raise ValueError(f"{x} is not a matrix")
    return TensorType(x.dtype, ())


trace = Op("aten::trace", args=[Tensor("x", NUMBERS)], result=_sum_of_matrix)


trace.reference(lambda x: np.trace(x, dtype=x.dtype))


@trace.decompose
def trace_sum(g, x):
    """The diagonal is every (columns + 1)th element of the flattened rows."""
    rows, columns = g.type(x).shape
    line = g.call("aten::reshape", x, [rows * columns])
    end = minimum(rows * columns, minimum(rows, columns) * (columns + 1))
    return g.call("aten::sum", g.call("aten::slice", line, 0, 0, end, columns + 1))


OPS = [triu, tril, trace]
