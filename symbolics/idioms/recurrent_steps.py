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
Step = Callable[[Term, Term, list[Term]], list[Term]]


def _parts(x: Term, count: int) -> list[Term]:
    width = x.type.shape[-1] // count
    parts = x.g.call("aten::split_with_sizes", x.value, [width] * count, -1)
    return [Term(x.g, part) for part in parts]


def _lstm(given: Term, kept: Term, states: list[Term]) -> list[Term]:
    i, f, g, o = _parts(given + kept, 4)
    cell = f.sigmoid() * states[1] + i.sigmoid() * g.tanh()
    return [o.sigmoid() * cell.tanh(), cell]


def _gru(given: Term, kept: Term, states: list[Term]) -> list[Term]:
    (r, z, n), (r_kept, z_kept, n_kept) = _parts(given, 3), _parts(kept, 3)
    new = (n + (r + r_kept).sigmoid() * n_kept).tanh()
    return [new + (z + z_kept).sigmoid() * (states[0] - new)]


STEPS: dict[str, Step] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": lambda given, kept, states: [(given + kept).tanh()],
    "rnn_relu": lambda given, kept, states: [(given + kept).relu()],
}


def layers(
    g: Emitter,
    name: str,
    x: Any,
    hx: list[Any],
    layers: list[list[list[Any]]],
    batch_first: bool,
    lengths: Any | None,
) -> list[Any]:
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
        bias_ih, bias_hh = others or (None, None)
        given = g.call("aten::linear", x, weight_ih, bias_ih)
        parts = [given] if is_there is None else [given, is_there]
        slices += [g.call("aten::flip", part, [0]) for part in parts] if flips else parts
        weights += [weight_hh, *([] if bias_hh is None else [bias_hh]), *projection]
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
    given, *is_there = slices
    weight, *others = weights
    bias = others.pop(0).value if others and len(others[0].type.shape) == 1 else None
    kept = Term(given.g, given.g.call("aten::linear", states[0].value, weight.value, bias))
    new = STEPS[name](given, kept, states)
    if others:
        new[0] = new[0].call("linear", others[0])
    if not is_there:
        return new, new[0]
    chosen = [is_there[0].where(*pair) for pair in zip(new, states, strict=True)]
    return chosen, is_there[0].where(new[0], 0)


def _groups(items: list[Any], count: int) -> list[list[Any]]:
    size = len(items) // count
    return [items[start : start + size] for start in range(0, len(items), size)]
