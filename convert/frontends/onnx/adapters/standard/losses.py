"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import cast, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable()


@OPERATORS.add("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(g, input, target, weight=None, *, ignore_index=None, reduction="mean"):
    """-weight[target] input[target] of each element of [N, C, ...]."""
    shape = list(g.type(input).shape)
    labels = Term(g, cast(g, target, np.int64))
    is_ignored = None if ignore_index is None else labels.call("eq", ignore_index)
    if is_ignored is not None:
        labels = is_ignored.where(0, labels)
    rows = reshaped(g, labels.value, [shape[0], 1, *shape[2:]])
    loss = -Term(g, reshaped(g, g.call("aten::gather", input, 1, rows), [shape[0], *shape[2:]]))
    weights = loss * 0 + 1 if weight is None else Term(g, _weights(g, weight, labels))
    if is_ignored is not None:
        weights = is_ignored.where(0, weights)
        loss = is_ignored.where(0, loss)
    if weight is not None:
        loss = loss * weights
    if reduction == "none":
        return loss.value
    if reduction not in ("mean", "sum"):
        raise Refusal(f"reduction {reduction!r} is unknown")
    total = loss.call("sum", dim=None, keepdim=False)
    if reduction == "mean":
        total = total / weights.call("sum", dim=None, keepdim=False)
    return total.value


def _weights(g: Emitter, weight, labels: Term) -> Any:
    shape = list(labels.type.shape)
    return reshaped(g, g.call("aten::index_select", weight, 0, reshaped(g, labels.value, [-1])), shape)


@OPERATORS.add("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(g, scores, labels, weights=None, *, ignore_index=None, reduction="mean"):
    logarithms = g.call("aten::log_softmax", scores, 1)
    options = {"ignore_index": ignore_index, "reduction": reduction}
    return negative_log_likelihood_loss(g, logarithms, labels, weights, **options), logarithms
