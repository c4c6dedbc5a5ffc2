"""aten::bucketize: how many of the ascending boundaries lie before each element.

The result is int32, as with ``out_int32``; ATen's default is int64.
"""

from __future__ import annotations

import numpy as np

from ...ir.types import TensorType
from ..op import NUMBERS, Op, Tensor, boolean

Array = np.ndarray

INT32 = np.dtype(np.int32)


def _result(x: TensorType, boundaries: TensorType, right: bool) -> TensorType:
    if boundaries.rank != 1 or x.dtype != boundaries.dtype:
        raise ValueError(f"{boundaries} is no list of boundaries for {x}")
    return TensorType(INT32, x.shape)


bucketize = Op(
    "aten::bucketize",
    args=[Tensor("x", NUMBERS), Tensor("boundaries", NUMBERS), boolean("right", False)],
    result=_result,
)


bucketize.unsupported("caffe", "every Caffe blob is float32, and no layer compares")


@bucketize.reference
def bucketize_ref(x: Array, boundaries: Array, right: bool) -> Array:
    """A boundary equal to the element counts with ``right``. Source: torch.bucketize."""
    before = np.less_equal if right else np.less
    return before(boundaries, x[..., np.newaxis]).sum(-1).astype(INT32)


@bucketize.decompose
def bucketize_count(g, x, boundaries, right):
    column = g.call("aten::reshape", x, [*g.type(x).shape, 1])
    before = g.call("aten::le" if right else "aten::lt", boundaries, column)
    return g.call("aten::sum", g.call("aten::to", before, dtype="int32"), [-1])
