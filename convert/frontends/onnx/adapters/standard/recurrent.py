"""Recurrent layers: LSTM, GRU and RNN.

What PyTorch has becomes aten::lstm, gru or rnn; other functions, peepholes and clips become a scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard.recurrent_steps import (
    STATES,
    Cell,
    Functions,
    functions_of,
    scanned,
)
from tmconvert.frontends.onnx.adapters.standard.slicing import reverse_sequence
from tmconvert.frontends.onnx.adapters.values import cast, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable()
# gates of aten's layers, by their number in ONNX
_ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
_USUAL: dict[str, tuple[tuple[str, ...], ...]] = {
    "LSTM": (("sigmoid", "tanh", "tanh"),),
    "GRU": (("sigmoid", "tanh"),),
    "RNN": (("tanh",), ("relu",)),
}
_DIRECTIONS = ("forward", "reverse", "bidirectional")


class Layer(NamedTuple):
    """A call of a recurrent operator, with the time first; ``states`` are [directions, N, H]."""

    name: str
    x: Any
    weight: Any
    recurrence: Any
    bias: Any
    lengths: Any
    states: list[Any]
    direction: str
    functions: list[Functions]
    cell: Cell

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1


@OPERATORS.add("LSTM")
def lstm(g, X, W, R, B=None, sequence_lens=None, initial_h=None, initial_c=None, P=None, **attributes):
    return recurrent_layer(g, "LSTM", X, W, R, B, sequence_lens, [initial_h, initial_c], P, **attributes)


@OPERATORS.add("GRU")
def gru(g, X, W, R, B=None, sequence_lens=None, initial_h=None, **attributes):
    return recurrent_layer(g, "GRU", X, W, R, B, sequence_lens, [initial_h], None, **attributes)


@OPERATORS.add("RNN")
def rnn(g, X, W, R, B=None, sequence_lens=None, initial_h=None, **attributes):
    return recurrent_layer(g, "RNN", X, W, R, B, sequence_lens, [initial_h], None, **attributes)


def recurrent_layer(
    g: Emitter, name: str, x, weight, recurrence, bias, lengths, initial: Sequence[Any], peepholes,
    *, activations: Sequence[str] | None = None, activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (), clip: float | None = None, direction: str = "forward",
    hidden_size: int | None = None, input_forget: int = 0, layout: int = 0, linear_before_reset: int = 0,
    output_sequence: int = 0, rounds: bool = False,
) -> Any:  # fmt: skip
    """Returns the results of a layer with ``initial`` states; see ``Cell`` for ``rounds``."""
    direction = direction.lower()
    if direction not in _DIRECTIONS:
        raise Refusal(f"direction {direction!r} is unknown")
    if layout:
        x = g.call("aten::permute", x, [1, 0, 2])
        initial = [None if each is None else g.call("aten::permute", each, [1, 0, 2]) for each in initial]
    count = 2 if direction == "bidirectional" else 1
    functions = functions_of(name, activations, activation_alpha, activation_beta, count)
    states = [_state(g, each, x, recurrence, count) for each in initial]
    cell = Cell(name, clip or None, bool(input_forget), bool(linear_before_reset), peepholes, rounds)
    if lengths is not None:
        known = g.known(lengths)
        lengths = None if known is not None and (known == g.type(x).shape[0]).all() else lengths
    layer = Layer(name, x, weight, recurrence, bias, lengths, states, direction, functions, cell)
    rows, last = _by_aten(g, layer) if _is_usual(layer) else _by_steps(g, layer)
    return _results(g, layer, rows, _of_some_steps(g, last, lengths), bool(layout))


def _of_some_steps(g: Emitter, last: Sequence[Any], lengths) -> Sequence[Any]:
    """Returns the last states, which are 0 for sequences without steps: so ONNX Runtime computes them."""
    known = None if lengths is None else g.known(lengths)
    if lengths is None or (known is not None and np.all(known > 0)):
        return last
    has_steps = g.call("aten::gt", lengths, g.constant(0, g.type(lengths).dtype))
    has_steps = Term(g, reshaped(g, has_steps, [1, -1, 1]))
    return [has_steps.where(Term(g, state), 0).value for state in last]


def _state(g: Emitter, given, x, recurrence, count: int) -> Any:
    if given is not None:
        return given
    sizes = [count, g.type(x).shape[1], g.type(recurrence).shape[2]]
    return g.call("aten::expand", g.constant(0, g.type(x).dtype), sizes)


def _results(g: Emitter, layer: Layer, rows, last: Sequence[Any], is_batch_first: bool) -> list[Any]:
    """Returns [T, N, directions H] as [T, directions, N, H], and the last states."""
    steps, batch, width = g.type(rows).shape
    apart = reshaped(g, rows, [steps, batch, layer.directions, width // layer.directions])
    if is_batch_first:
        return [
            g.call("aten::permute", apart, [1, 0, 2, 3]),
            *(g.call("aten::permute", state, [1, 0, 2]) for state in last),
        ]
    return [g.call("aten::permute", apart, [0, 2, 1, 3]), *last]


# ---- layers of PyTorch


def _is_usual(layer: Layer) -> bool:
    """Whether a layer of PyTorch computes the same."""
    cell = layer.cell
    if cell.clip is not None or cell.peepholes is not None or cell.input_forget or cell.rounds:
        return False
    if layer.name == "GRU" and not cell.linear_before_reset:
        return False
    names = {tuple(each.name for each in functions) for functions in layer.functions}
    return len(names) == 1 and names <= set(_USUAL[layer.name])


def _by_aten(g: Emitter, layer: Layer) -> tuple[Any, list[Any]]:
    params: list[Any] = []
    for number in range(layer.directions):
        parts = [layer.weight, layer.recurrence]
        params += [_reordered(g, layer.name, g.call("aten::select", each, 0, number)) for each in parts]
        if layer.bias is not None:
            both = g.call("aten::select", layer.bias, 0, number)
            half = g.type(both).shape[0] // 2
            for start in (0, half):
                part = g.call("aten::slice", both, 0, start, start + half, 1)
                params.append(_reordered(g, layer.name, part))
    is_reversed, x = layer.direction == "reverse", layer.x
    op = {"LSTM": "lstm", "GRU": "gru", "RNN": f"rnn_{layer.functions[0][0].name}"}[layer.name]
    hx = layer.states if layer.name == "LSTM" else layer.states[0]
    modes = (layer.bias is not None, 1, 0.0, False, layer.directions == 2, False)
    x = _reversed(g, x, layer.lengths) if is_reversed else x
    rows, *last = g.call(f"aten::{op}", x, hx, params, *modes, layer.lengths)
    return _reversed(g, rows, layer.lengths) if is_reversed else rows, last


def _reordered(g: Emitter, name: str, weight) -> Any:
    """Reorders the gates along the first axis as PyTorch has them."""
    order = _ORDERS[name]
    if len(order) == 1:
        return weight
    size = g.type(weight).shape[0] // len(order)
    parts = [g.call("aten::slice", weight, 0, gate * size, (gate + 1) * size, 1) for gate in order]
    return g.call("aten::cat", parts, 0)


def _reversed(g, x, lengths):
    """Reverses the sequences, each within its length."""
    if lengths is None:
        return g.call("aten::flip", x, [0])
    return reverse_sequence(g, x, lengths, batch_axis=1, time_axis=0)


# ---- others


def _by_steps(g: Emitter, layer: Layer) -> tuple[Any, list[Any]]:
    """Computes each direction by a scan."""
    rows, last = [], []
    for number in range(layer.directions):
        is_reversed = layer.direction == "reverse" or number == 1
        x = _reversed(g, layer.x, layer.lengths) if is_reversed else layer.x
        row, states = scanned(
            g,
            layer.cell,
            layer.functions[number],
            x,
            [_one(g, each, number) for each in (layer.weight, layer.recurrence, layer.bias)],
            [_one(g, state, number) for state in layer.states],
            _one(g, layer.cell.peepholes, number),
            None if layer.lengths is None else cast(g, layer.lengths, np.int64),
        )
        rows.append(_reversed(g, row, layer.lengths) if is_reversed else row)
        last.append(states)
    stacked = [
        g.call("aten::cat", [reshaped(g, state, [1, *g.type(state).shape]) for state in kind], 0)
        for kind in zip(*last, strict=True)
    ]
    assert len(stacked) == STATES[layer.name]
    return (rows[0] if len(rows) == 1 else g.call("aten::cat", rows, 2)), stacked


def _one(g: Emitter, value, number: int) -> Any:
    return None if value is None else g.call("aten::select", value, 0, number)
