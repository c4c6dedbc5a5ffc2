"""aten::bucketize and aten::searchsorted: insertion positions in a sorted list.

Results are int32, as with ``out_int32``; ATen's default is int64. An element equal to one of the list lies
behind it with ``right``; NaN lies behind all. Source: torch.bucketize, torch.searchsorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import INDICES, NUMBERS, Op, Tensor, boolean

Array = np.ndarray

INT32 = np.dtype(np.int32)


def _bucketize_result(x: TensorType, boundaries: TensorType, right: bool) -> TensorType:
    if boundaries.rank != 1 or x.dtype != boundaries.dtype:
        raise ValueError(f"{boundaries} is not a valid list of boundaries for {x}")
    return TensorType(INT32, x.shape)


def _search_result(
    sorted_sequence: TensorType, x: TensorType, right: bool, sorter: TensorType | None
) -> TensorType:
    shared = sorted_sequence.rank == 1 or sorted_sequence.shape[:-1] == x.shape[:-1]
    if x.dtype != sorted_sequence.dtype or not sorted_sequence.rank or not shared:
        raise ValueError(f"{sorted_sequence} is not a valid sorted sequence for {x}")
    if sorter is not None and sorter.shape != sorted_sequence.shape:
        raise ValueError(f"sorter {sorter} does not fit {sorted_sequence}")
    return TensorType(INT32, x.shape)


bucketize = Op(
    "aten::bucketize",
    args=[Tensor("x", NUMBERS), Tensor("boundaries", NUMBERS), boolean("right", False)],
    result=_bucketize_result,
)
searchsorted = Op(
    "aten::searchsorted",
    args=[
        Tensor("sorted_sequence", NUMBERS), Tensor("x", NUMBERS), boolean("right", False),
        Tensor("sorter", INDICES, optional=True),
    ],
    result=_search_result,
)  # fmt: skip
OPS = [bucketize, searchsorted]


@searchsorted.reference
def searchsorted_ref(sorted_sequence: Array, x: Array, right: bool, sorter: Array | None) -> Array:
    """Shapes: sorted_sequence [n] or [..., n], x [..., m] -> [..., m]; ``sorter`` puts the n in order."""
    if sorter is not None:
        sorted_sequence = np.take_along_axis(sorted_sequence, sorter, -1)
    if sorted_sequence.ndim > 1:
        sorted_sequence = sorted_sequence[..., np.newaxis, :]
    after = np.greater if right else np.greater_equal
    return (~after(sorted_sequence, x[..., np.newaxis])).sum(-1).astype(INT32)


bucketize.reference(lambda x, boundaries, right: searchsorted_ref(boundaries, x, right, None))
bucketize.decompose(lambda g, x, boundaries, right: _count(g, boundaries, x, right))


@searchsorted.decompose
def searchsorted_counted(g, sorted_sequence, x, right, sorter):
    if sorter is not None:
        sorted_sequence = g.call("aten::gather", sorted_sequence, -1, sorter)
    shape = list(g.type(sorted_sequence).shape)
    if len(shape) > 1:
        sorted_sequence = g.call("aten::reshape", sorted_sequence, [*shape[:-1], 1, shape[-1]])
    return _count(g, sorted_sequence, x, right)


def _count(g: Any, elements: Any, x: Any, right: bool) -> Any:
    """Counts ``elements`` along the last axis that precede each of ``x``."""
    column = g.call("aten::reshape", x, [*g.type(x).shape, 1])
    before = g.call("aten::logical_not", g.call("aten::gt" if right else "aten::ge", elements, column))
    return g.call("aten::sum", g.call("aten::to", before, dtype="int32"), [-1])
