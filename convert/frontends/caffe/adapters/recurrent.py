"""LSTM, RNN and LSTMUnit: the net of one step, run over a sequence [T, N, ...] with markers [T, N].

A marker of 0 begins a sequence: the states before are then 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable
from tmconvert.ir.emitter import empty_body
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term

LAYERS = LayerTable()
Step = Callable[[Term, Term, list[Term], list[Term]], tuple[Term, list[Term]]]


def _lstm_step(x: Term, mark: Term, states: list[Term], weights: list[Term]) -> tuple[Term, list[Term]]:
    """Gates are concatenated: input, forget, output, and the candidate."""
    hidden, cell = states
    return _gated(x + _linear(mark * hidden, weights[0]), mark, cell)


def _linear(x: Term, weight: Term, bias: Term | None = None) -> Term:
    return Term(x.g, x.g.call("aten::linear", x.value, weight.value, None if bias is None else bias.value))


def _gated(gates: Term, mark: Term, cell: Term) -> tuple[Term, list[Term]]:
    sizes = [gates.type.shape[-1] // 4] * 4
    parts = gates.g.call("aten::split_with_sizes", gates.value, sizes, gates.type.rank - 1)
    take, keep, give, new = (Term(gates.g, part) for part in parts)
    cell = mark * keep.sigmoid() * cell + take.sigmoid() * new.tanh()
    hidden = give.sigmoid() * cell.tanh()
    return hidden, [hidden, cell]


def _rnn_step(x: Term, mark: Term, states: list[Term], weights: list[Term]) -> tuple[Term, list[Term]]:
    """The output is the state times weights of its own, through a second tanh."""
    recurrence, output, bias = weights
    hidden = (x + _linear(mark * states[0], recurrence)).tanh()
    return _linear(hidden, output, bias).tanh(), [hidden]


@LAYERS.layer("LSTM")
def lstm(layer: LayerCall) -> list[Any]:
    size = layer.parameters.num_output
    last = len(layer.blobs) - 1
    return _run(layer, 4, 2, [layer.blob(last, [4 * size, size])], _lstm_step)


@LAYERS.layer("RNN")
def rnn(layer: LayerCall) -> list[Any]:
    size = layer.parameters.num_output
    first = len(layer.blobs) - 3
    weights = [layer.blob(first + at, shape) for at, shape in enumerate(([size, size], [size, size], [size]))]
    return _run(layer, 1, 1, weights, _rnn_step)


def _run(layer: LayerCall, gates: int, count: int, weights: list[Any], step: Step) -> list[Any]:
    steps, batch = layer.shapes[0][:2]
    size, is_exposed = layer.parameters.num_output, layer.parameters.expose_hidden
    rest = list(layer.bottoms[2:])
    given = [rest.pop() for _ in range(count)][::-1] if is_exposed else []
    states = [layer.reshaped(state, [batch, size]) for state in given] or [
        layer.call("expand", layer.number(0), [batch, size]) for _ in range(count)
    ]
    inputs = _projected(layer, gates * size, rest)
    marks = layer.reshaped(layer.bottoms[1], [steps, batch, 1])
    slices, around = [inputs, marks], weights
    types = [layer.g.type(value) for value in (*states, *slices, *around)]
    for at in (count, count + 1):
        types[at] = TensorType(types[at].dtype, types[at].shape[1:])
    inner, nodes = empty_body("step", types, layer.g.catalogue)
    terms = [Term(inner, node) for node in nodes]
    row, new = step(terms[count], terms[count + 1], terms[:count], terms[count + 2 :])
    inner.graph.set_result(tuple(term.value for term in (*new, row)))
    *last, made = layer.g.call("tm::scan", [*states, *slices, *around], count, 2, inner.graph)
    exposed = [layer.reshaped(state, [1, batch, size]) for state in last] if is_exposed else []
    return [made, *exposed]


def _projected(layer: LayerCall, width: int, rest: list[Any]) -> Any:
    """Returns the products of the sequence, and of the input that all steps have, with their weights."""
    steps, batch, *features = layer.shapes[0]
    count = math.prod(features)
    flat = layer.reshaped(layer.x, [steps, batch, count])
    made = layer.call("linear", flat, layer.blob(0, [width, count]), layer.blob(1, [width]))
    if not rest:
        return made
    own = math.prod(layer.g.type(rest[0]).shape[1:])
    static = layer.call("linear", layer.reshaped(rest[0], [batch, own]), layer.blob(2, [width, own]))
    return layer.call("add", made, layer.reshaped(static, [1, batch, width]))


@LAYERS.layer("LSTMUnit")
def lstm_unit(layer: LayerCall) -> list[Any]:
    """One step of an LSTM: bottoms are the cell [1, N, H], the gates [1, N, 4 H] and the markers [1, N]."""
    cell, gates, marks = layer.bottoms
    mark = layer.reshaped(marks, [*layer.shapes[0][:2], 1])
    hidden, (_, new) = _gated(*(Term(layer.g, value) for value in (gates, mark, cell)))
    return [new.value, hidden.value]
