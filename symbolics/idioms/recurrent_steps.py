"""Recurrent layers as scans: the input products are computed at once, the states step by step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tmconvert.ir.emitter import Emitter, empty_body
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.indices import numbers

# (what the inputs give to the gates, what the hidden state gives, states) -> new states
Step = Callable[[list[Term], list[Term], list[Term]], list[Term]]
# gates whose products are computed apart, so that no step has to split them
PRODUCTS = {"gru": (2, 1)}


def _lstm(given: list[Term], kept: list[Term], states: list[Term]) -> list[Term]:
    """A sigmoid of all four gates costs less than three, each of one."""
    gates, width = given[0] + kept[0], states[1].type.shape[-1]
    i, f, _, o = _parts(gates.sigmoid(), 4)
    new = gates.call("slice", dim=-1, start=2 * width, end=3 * width, step=1).tanh()
    cell = f * states[1] + i * new
    return [o * cell.tanh(), cell]


def _gru(given: list[Term], kept: list[Term], states: list[Term]) -> list[Term]:
    r, z = _parts((given[0] + kept[0]).sigmoid(), 2)
    new = (given[1] + r * kept[1]).tanh()
    return [new + z * (states[0] - new)]


def _parts(x: Term, count: int) -> list[Term]:
    width = x.type.shape[-1] // count
    parts = x.g.call("aten::split_with_sizes", x.value, [width] * count, -1)
    return [Term(x.g, part) for part in parts]


STEPS: dict[str, Step] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": lambda given, kept, states: [(given[0] + kept[0]).tanh()],
    "rnn_relu": lambda given, kept, states: [(given[0] + kept[0]).relu()],
}


def rows_of(g: Emitter, name: str, weight: Any) -> list[Any]:
    """Returns the rows of a weight or bias for each product of ``PRODUCTS``; [None] for none."""
    counts = PRODUCTS.get(name, (1,))
    if weight is None or len(counts) == 1:
        return [weight] * len(counts)
    width = g.type(weight).shape[0] // sum(counts)
    ends = itertools.accumulate((count * width for count in counts), initial=0)
    return [g.call("aten::slice", weight, 0, start, end, 1) for start, end in itertools.pairwise(ends)]


def products(g: Emitter, x: Any, weights: list[Any], biases: list[Any]) -> list[Any]:
    """Returns ``x`` times each weight, plus its bias."""
    return [g.call("aten::linear", x, *each) for each in zip(weights, biases, strict=True)]


def layers(
    g: Emitter, name: str, x: Any, hx: list[Any], layers: list[list[list[Any]]], batch_first: bool,
    lengths: Any | None,
) -> list[Any]:  # fmt: skip
    """Emits all layers in sequence; ``layers`` has the parameters of each direction of each."""
    x = g.call("aten::permute", x, [1, 0, 2]) if batch_first else x
    is_there = None if lengths is None else _is_there(g, g.type(x).shape[0], lengths)
    last: list[list[Any]] = []
    for cells in layers:
        numbers = range(len(last), len(last) + len(cells))
        first = [[g.call("aten::select", state, 0, number) for state in hx] for number in numbers]
        x, states = _layer(g, name, x, first, cells, is_there)
        last += states
    stacked = [
        g.call("aten::cat", [g.call("aten::reshape", state, [1, *g.type(state).shape]) for state in kind], 0)
        for kind in zip(*last, strict=True)
    ]
    return [g.call("aten::permute", x, [1, 0, 2]) if batch_first else x, *stacked]


def _is_there(g: Emitter, count: Any, lengths: Any) -> Any:
    """[T, N, 1]: whether a step belongs to the sequence, not to its padding."""
    steps = Term(g, numbers(g, 0, count)).to(g.type(lengths).dtype).reshape(shape=[count, 1, 1]).value
    ends = g.call("aten::reshape", lengths, [1, *g.type(lengths).shape, 1])
    return g.call("aten::lt", steps, ends)


def _layer(
    g: Emitter, name: str, x: Any, first: list[list[Any]], cells: list[list[Any]], is_there: Any | None
) -> tuple[Any, list[list[Any]]]:
    """Returns the outputs for [T, N, I], and the last states of each direction: one scan for both."""
    states, slices, weights = list(itertools.chain(*first)), [], []
    for cell, flips in zip(cells, (False, True), strict=False):
        weight_ih, weight_hh, *others = cell
        projection = [others.pop()] if len(cell) % 2 else []
        bias_ih, bias_hh = (rows_of(g, name, bias) for bias in others or (None, None))
        parts = products(g, x, rows_of(g, name, weight_ih), bias_ih)
        parts += [] if is_there is None else [is_there]
        slices += [g.call("aten::flip", part, [0]) for part in parts] if flips else parts
        weights += [
            each for each in (*rows_of(g, name, weight_hh), *bias_hh) if each is not None
        ] + projection
    step = _step_graph(g, name, len(cells), states, slices, weights)
    results = g.call("tm::scan", [*states, *slices, *weights], len(states), len(slices), step)
    rows = results[len(states) :]
    rows[1:] = [g.call("aten::flip", row, [0]) for row in rows[1:]]
    last = _groups(results[: len(states)], len(cells))
    return (g.call("aten::cat", rows, 2) if len(rows) > 1 else rows[0]), last


def _step_graph(
    g: Emitter, name: str, directions: int, states: list[Any], slices: list[Any], weights: list[Any]
) -> InternalGraph:
    """Builds the subgraph of one step of the scan."""
    types = [g.type(value) for value in (*states, *slices, *weights)]
    for i in range(len(states), len(states) + len(slices)):
        types[i] = TensorType(types[i].dtype, types[i].shape[1:])
    inner, inputs = empty_body(f"{name}_step", types, g.catalogue)
    terms = [Term(inner, node) for node in inputs]
    kinds = [terms[: len(states)], terms[len(states) : -len(weights)], terms[-len(weights) :]]
    after, rows = [], []
    for parts in zip(*(_groups(kind, directions) for kind in kinds), strict=True):
        new, row = _one_step(name, *parts)
        after += new
        rows.append(row)
    inner.graph.set_result(tuple(term.value for term in (*after, *rows)))
    return inner.graph


def _one_step(
    name: str, states: list[Term], slices: list[Term], weights: list[Term]
) -> tuple[list[Term], Term]:
    """Returns the next states of one direction, and its output."""
    g, count = states[0].g, len(PRODUCTS.get(name, (1,)))
    given, is_there, matrices, others = slices[:count], slices[count:], weights[:count], weights[count:]
    has_bias = bool(others) and len(others[0].type.shape) == 1
    biases: list[Any] = [other.value for other in others[:count]] if has_bias else [None] * count
    del others[: count * has_bias]
    kept = products(g, states[0].value, [weight.value for weight in matrices], biases)
    new = STEPS[name](given, [Term(g, each) for each in kept], states)
    if others:
        new[0] = new[0].call("linear", others[0])
    if not is_there:
        return new, new[0]
    chosen = [is_there[0].where(*pair) for pair in zip(new, states, strict=True)]
    return chosen, is_there[0].where(new[0], 0)


def _groups(items: list[Any], count: int) -> list[list[Any]]:
    size = len(items) // count
    return [items[start : start + size] for start in range(0, len(items), size)]
