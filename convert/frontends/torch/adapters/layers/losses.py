"""Losses whose Python code reads tensor data, so that it cannot be traced through."""

from __future__ import annotations

import math

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.elementwise.arithmetic import add, clamp_min, div, mul, sub
from tmconvert.frontends.torch.adapters.elementwise.unary import ATEN as UNARY
from tmconvert.frontends.torch.adapters.reductions.sums import ATEN as REDUCTIONS
from tmconvert.frontends.torch.adapters.values import cast, dtype_called, is_tensor, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

ATEN, FUNCTIONS = Table(), Table()


@FUNCTIONS.add("torch.nn.functional.gaussian_nll_loss")
def gaussian_nll_loss(g, input, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log v + (input - target)^2 / v) / 2, where v is ``var`` and at least ``eps``.

    A variance below 0, an error in torch, counts as ``eps``.
    """
    shape = g.type(input).shape
    if not is_tensor(var):
        var = g.constant(var, g.type(input).dtype)
    elif g.type(var).shape == shape[:-1]:
        var = reshaped(g, var, [*shape[:-1], 1])
    var = clamp_min(g, var, eps)
    error = UNARY["square"](g, sub(g, input, target))
    loss = mul(g, add(g, UNARY["log"](g, var), div(g, error, var)), 0.5)
    loss = add(g, loss, 0.5 * math.log(2 * math.pi)) if full else loss
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise Refusal(f"{reduction!r} is not a valid reduction")
    return REDUCTIONS[reduction](g, loss)


def _chunked(
    g: Emitter, input, linear_weight, target, linear_bias, weight, ignore_index: int, acc_dtype
) -> tuple[Term, Term]:
    """Returns the weighted loss [N] of each row of ``input`` [N, F], and the weights."""
    dtype, count = dtype_called(acc_dtype), g.type(target).shape[0]
    x, matrix, bias = (
        None if each is None else cast(g, each, dtype) for each in (input, linear_weight, linear_bias)
    )
    logits = g.call("aten::linear", x, matrix, bias)
    place = Term(g, cast(g, target, "int64"))
    counts = place.call("ne", ignore_index)
    place = counts.where(place, 0)
    scores = g.call("aten::log_softmax", logits, 1)
    picked = g.call("aten::gather", scores, 1, reshaped(g, place.value, [count, 1]))
    loss = -Term(g, reshaped(g, picked, [count]))
    weights = counts.to(dtype)
    if weight is not None:
        weights = weights * Term(g, g.call("aten::index_select", cast(g, weight, dtype), 0, place.value))
    return counts.where(loss * weights, 0), weights


@ATEN.add("torch_nn::_linear_cross_entropy_batch_chunked")
def linear_cross_entropy(
    g, input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing,
    batch_chunk_size, acc_policy, acc_dtype,
    *others,
):  # fmt: skip
    """The loss of nn.functional.linear_cross_entropy, without chunks; gradients alone use other results."""
    loss, weights = _chunked(g, input, linear_weight, target, linear_bias, weight, ignore_index, acc_dtype)
    total = loss.call("sum", dim=None, keepdim=False)
    if reduction == "mean":
        total = total / weights.call("sum", dim=None, keepdim=False)
    return cast(g, total.value, g.type(input).dtype), None, None, None


@ATEN.add("torch_nn::_linear_cross_entropy_batch_chunked_no_reduction")
def linear_cross_entropy_of_each(
    g, input, linear_weight, target, linear_bias, weight, ignore_index, batch_chunk_size, acc_policy,
    acc_dtype,
):  # fmt: skip
    loss, _ = _chunked(g, input, linear_weight, target, linear_bias, weight, ignore_index, acc_dtype)
    return cast(g, loss.value, g.type(input).dtype)
