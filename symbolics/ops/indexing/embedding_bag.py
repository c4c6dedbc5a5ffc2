"""aten::embedding_bag: sum, mean or maximum of table rows per bag."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.op import FLOATS, INDICES, Op, Tensor, boolean, integer
from tmconvert.symbolics.ops.indexing.embedding import rows_of
from tmconvert.symbolics.traits import IndexedRows

Array = np.ndarray
SUM, MEAN, MAX = 0, 1, 2


def _result(
    weight: TensorType, indices: TensorType, offsets: TensorType, mode: int,
    per_sample_weights: TensorType | None, include_last_offset: bool,
    **_: Any,
) -> TensorType:  # fmt: skip
    if mode not in (SUM, MEAN, MAX) or (mode != SUM and per_sample_weights is not None):
        raise ValueError(f"mode {mode} is not supported, or per_sample_weights with a mode other than sum")
    if per_sample_weights is not None and per_sample_weights.shape != indices.shape:
        raise ValueError(f"per_sample_weights {per_sample_weights} do not fit the indices {indices}")
    return TensorType(weight.dtype, (offsets.shape[0] - include_last_offset, weight.shape[1]))


embedding_bag = Op(
    "aten::embedding_bag",
    args=[
        Tensor("weight", FLOATS, ranks=(2,)), Tensor("indices", INDICES, ranks=(1,)),
        Tensor("offsets", INDICES, ranks=(1,)), boolean("scale_grad_by_freq", False), integer("mode", SUM),
        boolean("sparse", False), Tensor("per_sample_weights", FLOATS, optional=True),
        boolean("include_last_offset", False), integer("padding_idx", -1),
    ],
    result=_result,
    traits=[IndexedRows()],
)  # fmt: skip


@embedding_bag.reference
def embedding_bag_ref(
    weight: Array, indices: Array, offsets: Array, scale_grad_by_freq: bool, mode: int, sparse: bool,
    per_sample_weights: Array | None, include_last_offset: bool, padding_idx: int,
) -> Array:  # fmt: skip
    """Bag i begins at ``offsets[i]``; indices equal to ``padding_idx`` are ignored, empty bags are zeros.

    Shapes: weight [V, D], indices [N], offsets [B] -> [B, D], or of one more offset, that is N.
    Source: torch.nn.functional.embedding_bag.
    """
    ends = offsets[1:] if include_last_offset else [*offsets[1:], len(indices)]
    rows = rows_of(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    result = np.zeros((len(ends), weight.shape[1]), weight.dtype)
    reduce: Any = {SUM: np.sum, MEAN: np.mean, MAX: np.max}[mode]
    for i, bag in enumerate(map(slice, offsets, ends)):
        counted = rows[bag][indices[bag] != padding_idx]
        if len(counted):
            result[i] = reduce(counted, 0)
    return result


@embedding_bag.decompose
def embedding_bag_members(
    g, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
    padding_idx,
):  # fmt: skip
    """Uses a membership matrix of indices and bags."""
    count, bags = g.type(indices).shape[0], g.type(offsets).shape[0]
    dtype, kind = g.type(weight).dtype, np.int32  # which old versions of Less can be given in float64
    starts = offsets = g.call("aten::to", offsets, dtype="int32")
    if include_last_offset:
        bags -= 1
        starts, ends = (g.call("aten::slice", offsets, 0, i, bags + i) for i in (0, 1))
    else:
        last = g.constant(np.array([count], kind))
        ends = g.call("aten::cat", [g.call("aten::slice", offsets, 0, 1, bags), last]) if bags > 1 else last
    starts, ends = (Term(g, g.call("aten::reshape", edge, [bags, 1])) for edge in (starts, ends))
    order = Term(g, g.constant(np.arange(count, dtype=kind)))
    member = (starts <= order) & (ends > order)
    if padding_idx >= 0:
        member = member & ~Term(g, indices).eq(padding_idx)
    rows = Term(g, g.call("aten::index_select", weight, 0, indices))
    if per_sample_weights is not None:
        rows = rows * Term(g, g.call("aten::reshape", per_sample_weights, [count, 1]))
    shares = member.to(dtype)
    numbers = shares.call("sum", dim=[1], keepdim=True)
    if mode != MAX:
        total = shares.matmul(rows)
        return (total if mode == SUM else total / numbers.clamp(min=1)).value
    column = Term(g, g.call("aten::reshape", member.value, [bags, count, 1]))
    largest = column.where(rows, -np.inf).call("amax", dim=[1], keepdim=False)
    return (numbers > 0).where(largest, 0).value
