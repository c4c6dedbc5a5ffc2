"""Embeddings, embedding bags and one-hot encoding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.indexing.counting import classes
from tmconvert.frontends.torch.adapters.values import cast, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

ATEN, FUNCTIONS = Table(), Table("torch.nn.functional.")
MODES = ("sum", "mean", "max")  # by ATen's number
EPSILON = 1e-7  # what torch adds to a norm before it divides by it


def _limited(g: Emitter, rows, max_norm: float | None, norm_type: float) -> Any:
    """Limits the norms of rows to ``max_norm``; a module's table is renormalized row by row at its use."""
    if max_norm is None:
        return rows
    norm = Term(g, g.call("aten::linalg_vector_norm", rows, norm_type, [rank(g, rows) - 1], True))
    factor = (norm > max_norm).where(norm.like(max_norm) / (norm + EPSILON), norm.like(1))
    return (Term(g, rows) * factor).value


@FUNCTIONS.add("embedding")
def functional_embedding(
    g, input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    return _limited(g, g.call("aten::embedding", weight, input), max_norm, norm_type)


@ATEN.add("embedding")
def embedding(g, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return g.call("aten::embedding", weight, indices)


@FUNCTIONS.add("embedding_bag")
def functional_embedding_bag(
    g, input, weight, offsets=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean",
    sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None,
):  # fmt: skip
    if mode not in MODES:
        raise Refusal(f"embedding_bag with mode={mode!r} is not supported")
    if padding_idx is not None and padding_idx < 0:
        padding_idx = g.type(weight).shape[0] + padding_idx
    if rank(g, input) == 2:
        return _equal_bags(
            g,
            input,
            _limited(g, g.call("aten::embedding", weight, input), max_norm, norm_type),
            mode,
            per_sample_weights,
            padding_idx,
        )
    table = _limited(g, weight, max_norm, norm_type)
    return _bags(
        g, table, input, offsets, MODES.index(mode), per_sample_weights, include_last_offset, padding_idx
    )


def _equal_bags(g: Emitter, indices, rows, mode: str, weights, padding_idx: int | None) -> Any:
    """Bags of equal size, the rows of a matrix of indices; ``rows`` is [B, N, D]."""
    term = Term(g, rows)
    if weights is not None:
        term = term * Term(g, reshaped(g, weights, [*g.type(weights).shape, 1]))
    if padding_idx is None:
        op = {"sum": "sum", "mean": "mean", "max": "amax"}[mode]
        return term.call(op, dim=[1], keepdim=False).value
    counts = Term(g, indices).call("ne", padding_idx)
    is_used = Term(g, reshaped(g, counts.value, [*counts.type.shape, 1]))
    number = is_used.to(term.dtype).call("sum", dim=[1], keepdim=False)
    if mode == "max":
        highest = is_used.where(term, -np.inf).call("amax", dim=[1], keepdim=False)
        return (number > 0).where(highest, 0).value
    total = is_used.where(term, 0).call("sum", dim=[1], keepdim=False)
    return (total if mode == "sum" else total / number.maximum(1)).value


def _bags(
    g: Emitter, weight, indices, offsets, mode: int, per_sample_weights, include_last_offset: bool,
    padding_idx: int | None,
) -> Any:  # fmt: skip
    offsets = cast(g, offsets, g.type(indices).dtype)
    return g.call(
        "aten::embedding_bag",
        *(weight, indices, offsets),
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=-1 if padding_idx is None else padding_idx,
    )


@ATEN.add("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    g, weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=-1,
):  # fmt: skip
    """Returns the bags; the other results are used by gradients only."""
    result = _bags(g, weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    return result, None, None, None


@ATEN.add("one_hot")
def one_hot(g, input, num_classes=-1):
    """One-hot encoding; without a number of classes it is the largest class plus one."""
    if num_classes == -1:
        column = reshaped(g, input, [*g.type(input).shape, 1])
        return Term(g, column).eq(Term(g, cast(g, classes(g, input), g.type(input).dtype))).to(np.int64).value
    if rank(g, input):
        return g.call("aten::one_hot", input, num_classes)
    return reshaped(g, g.call("aten::one_hot", reshaped(g, input, [1]), num_classes), [num_classes])
