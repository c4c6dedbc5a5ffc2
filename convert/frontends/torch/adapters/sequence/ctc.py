"""The CTC loss, as a scan over the time steps of a sequence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.shapes.creation import filled
from tmconvert.frontends.torch.adapters.shapes.slicing import cut, joined
from tmconvert.frontends.torch.adapters.values import is_tensor, rank, reshaped
from tmconvert.ir.emitter import Emitter, empty_body
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import numbers
from tmconvert.symbolics.registry import catalogue

ATEN, FUNCTIONS = Table(), Table()
REDUCTIONS = ("none", "mean", "sum")  # by ATen's number


@FUNCTIONS.add("torch.nn.functional.ctc_loss")
def functional_ctc_loss(
    g, log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    given = log_probs, targets, input_lengths, target_lengths
    return ctc_loss(g, *given, blank, REDUCTIONS.index(reduction), zero_infinity)


@ATEN.add("ctc_loss")
def ctc_loss(g, log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """CTC loss of ``log_probs`` [T, N, C] or [T, C]; the mean is over the losses divided by label length."""
    is_single = rank(g, log_probs) == 2
    if is_single:
        steps, classes = g.type(log_probs).shape
        log_probs = reshaped(g, log_probs, [steps, 1, classes])
    lengths = _lengths(g, target_lengths)
    loss = _losses(g, log_probs, targets, _lengths(g, input_lengths), lengths, blank)
    if zero_infinity:
        loss = loss.eq(math.inf).where(0, loss)
    if REDUCTIONS[reduction] == "mean":
        loss = loss / (lengths < 1).where(1, lengths).to(loss.dtype)
        return loss.call("mean", dim=None, keepdim=False).value
    if REDUCTIONS[reduction] == "sum":
        return loss.call("sum", dim=None, keepdim=False).value
    return reshaped(g, loss.value, []) if is_single else loss.value


@ATEN.add("_ctc_loss")
def negative_log_likelihood(
    g, log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False
):
    """Returns the losses; the second result is used by gradients only."""
    return ctc_loss(g, log_probs, targets, input_lengths, target_lengths, blank, 0), None


def _lengths(g: Emitter, lengths) -> Term:
    """Converts a tensor or Python numbers to int64 [N]."""
    given = lengths if is_tensor(lengths) else g.constant(np.array(lengths, np.int64))
    return Term(g, reshaped(g, given, [g.type(given).size])).to(np.int64)


def _losses(g: Emitter, log_probs, targets, input_lengths: Term, target_lengths: Term, blank: int) -> Term:
    """[N]: the negative log-probability of all alignments of the labels.

    A state is a label or one of the blanks around the labels. A step stays in its state, goes to the next,
    or beyond a blank between different labels. Before the first step all is in the first blank.
    Source: Graves et al., Connectionist Temporal Classification, 2006.
    """
    steps, batch, _ = g.type(log_probs).shape
    dtype = g.type(log_probs).dtype
    states = _states(g, targets, target_lengths, batch, blank)
    count = g.type(states).shape[1]
    places = views.expand(g, reshaped(g, states, [1, batch, count]), [steps, batch, count])
    emitted = g.call("aten::gather", log_probs, 2, places)
    time = Term(g, reshaped(g, numbers(g, 0, steps), [steps, 1]))
    runs = (time < input_lengths).call("reshape", shape=[steps, batch, 1])
    goes_beyond = Term(g, cut(g, states, 1, 2, count)).call("ne", Term(g, cut(g, states, 1, 0, count - 2)))
    barred = filled(g, [batch, 2], False, bool)
    goes_beyond = joined(g, [barred, goes_beyond.value], 1) if count > 2 else cut(g, barred, 1, 0, count)
    first = np.full((1, 1), 0, dtype), np.full((1, 1), -math.inf, dtype)
    start = [views.expand(g, g.constant(first[0]), [batch, 1])]
    start.append(views.expand(g, g.constant(first[1]), [batch, count - 1]))
    inputs = [joined(g, start, 1), emitted, runs.value, goes_beyond]
    last = g.call("tm::scan", inputs, 1, 2, _step([g.type(each) for each in inputs]))
    end = (target_lengths * 2).call("reshape", shape=[batch, 1])
    before = end - (end > 0).to(np.int64)
    ways = [Term(g, g.call("aten::gather", last, 1, each.value)) for each in (end, before)]
    ways[1] = (end > 0).where(ways[1], -math.inf)
    return -_together(ways).call("reshape", shape=[batch])


def _states(g: Emitter, targets: Any, lengths: Term, batch: Any, blank: int) -> Any:
    """int64 [N, 2 S + 1]: the labels with a blank before, between and after them."""
    targets = Term(g, targets).to(np.int64)
    if targets.type.rank == 1:  # one behind the other
        known, total = g.known(lengths.value), targets.type.size
        most = total if known is None else int(known.max(initial=0))
        starts = (lengths.cumsum(dim=0) - lengths).call("reshape", shape=[batch, 1])
        places = starts + Term(g, numbers(g, 0, most))
        places = (places > total - 1).where(total - 1, places).call("reshape", shape=[batch * most])
        row = g.call("aten::index_select", targets.value, 0, places.value)
        targets = Term(g, reshaped(g, row, [batch, most]))
    most = targets.type.shape[1]
    is_label = Term(g, numbers(g, 0, most)) < lengths.call("reshape", shape=[batch, 1])
    labels = is_label.where(targets, blank).call("reshape", shape=[batch, most, 1])
    blanks = filled(g, [batch, most, 1], blank, np.int64)
    pairs = reshaped(g, joined(g, [blanks, labels.value], 2), [batch, 2 * most])
    return joined(g, [pairs, filled(g, [batch, 1], blank, np.int64)], 1)


def _step(types: list[TensorType]) -> InternalGraph:
    """Computes the state of a step from the step before; states of ended sequences are kept."""
    inner = [types[0], *(TensorType(each.dtype, each.shape[1:]) for each in types[1:3]), types[3]]
    g, inputs = empty_body("alignment", inner, catalogue())
    before, emitted, runs, goes_beyond = (Term(g, each) for each in inputs)
    ways = [before, *(_moved(before, places) for places in (1, 2))]
    ways[2] = goes_beyond.where(ways[2], -math.inf)
    g.graph.set_result((runs.where(_together(ways) + emitted, before).value,))
    return g.graph


def _moved(x: Term, places: int) -> Term:
    """Shifts the states by this number of positions."""
    count = x.type.shape[1]
    places = min(places, count)
    padded = x.g.call("aten::pad", x.value, [0, 0, places, 0], "constant", -math.inf)
    return Term(x.g, cut(x.g, padded, 1, 0, count))


def _together(ways: list[Term]) -> Term:
    """Computes logsumexp, also where all elements are -inf."""
    most = ways[0]
    for way in ways[1:]:
        most = most.maximum(way)
    most = most.eq(-math.inf).where(0, most)
    total = (ways[0] - most).exp()
    for way in ways[1:]:
        total = total + (way - most).exp()
    return total.log() + most
