"""ONNX's LSTM, GRU and RNN: one operator per layer for both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic

if TYPE_CHECKING:
    from tmconvert.lowering.target_graph import Value
    from tmconvert.targets.onnx.builder import OnnxBuilder


class Operator(NamedTuple):
    """``order`` are ATen's gates in ONNX's order: LSTM i o f c, GRU z r h."""

    type: str
    order: tuple[int, ...]
    activations: Sequence[str] = ()
    attributes: Mapping[str, Any] = {}


OPERATORS = {
    "lstm": Operator("LSTM", (0, 3, 1, 2)),
    # the reset gate works on the hidden state after its matrix
    "gru": Operator("GRU", (1, 0, 2), attributes={"linear_before_reset": 1}),
    "rnn_tanh": Operator("RNN", (0,)),
    "rnn_relu": Operator("RNN", (0,), ["Relu"]),
}


def layers(
    g: OnnxBuilder, name: str, x: Value, hx: list[Value], layers: list[list[list[Value]]], batch_first: bool,
    lengths: Value | None,
) -> list[Value]:  # fmt: skip
    """Emits all layers in sequence; ``layers`` has the parameters of each direction of each."""
    if lengths is not None:
        lengths = g.cast(lengths, "int32")
    hidden, directions = hx[0].shape[2], len(layers[0])
    x = _swapped(g, x) if batch_first else x
    length, batch = x.shape[:2]
    last: list[list[Value]] = []
    for layer, cells in enumerate(layers):
        rows = range(layer * directions, (layer + 1) * directions)
        layer_of = _projected_layer if len(cells[0]) % 2 else _layer
        first = [_rows(g, state, rows) for state in hx]
        output, *states = layer_of(g, OPERATORS[name], x, first, cells, lengths)
        last.append(states)
        if directions == 2:
            output = g.op("Transpose", output, perm=[0, 2, 1, 3], shape=(length, batch, 2, hidden))
        shape = (length, batch, directions * hidden)
        x = g.op("Reshape", output, g.ints(shape), shape=shape)
    joined = [
        g.op("Concat", *parts, axis=0, shape=state.shape) if len(parts) > 1 else parts[0]
        for state, *parts in zip(hx, *last, strict=True)
    ]
    return [_swapped(g, x) if batch_first else x, *joined]


def _swapped(g: OnnxBuilder, x: Value) -> Value:
    return g.op("Transpose", x, perm=[1, 0, 2], shape=(x.shape[1], x.shape[0], x.shape[2]))


def _layer(
    g: OnnxBuilder, operator: Operator, x: Value, states: list[Value | None], cells: list[list[Value]],
    lengths: Value | None,
) -> list[Value]:  # fmt: skip
    """Returns outputs [T, D, N, H], and the last states [D, N, H]."""
    hidden, directions, (length, batch) = cells[0][1].shape[1], len(cells), x.shape[:2]
    gates = [gate * hidden + row for gate in operator.order for row in range(hidden)]
    weights, recurrent, *biases = (
        [_rows(g, cell[i], gates, keep_zeros=True) for cell in cells] for i in range(len(cells[0]))
    )
    bias = None
    if biases:
        bias = _stacked(g, [_joined(g, pair) for pair in zip(*biases, strict=True)])
    last = (directions, batch, hidden)
    return g.op(
        operator.type,
        *(x, _stacked(g, weights), _stacked(g, recurrent), bias, lengths, *states),
        hidden_size=hidden,
        direction="bidirectional" if directions == 2 else None,
        activations=[*operator.activations] * directions or None,
        shapes=[(length, directions, batch, hidden), *[last] * len(states)],
        **operator.attributes,
    )


def _projected_layer(
    g: OnnxBuilder, operator: Operator, x: Value, states: list[Value | None], cells: list[list[Value]],
    lengths: Value | None,
) -> list[Value]:  # fmt: skip
    """A layer with projection: its hidden states h are P h', where h' is the state without projection.

    The gates get W h = (W P) h', which an operator without projections computes. The first hidden state
    is no product: it is an input of the first step, zero in all others.
    """
    first, memory = states
    if first is not None and lengths is not None and len(cells) > 1:
        g.refuse("a bidirectional LSTM with projections, initial states and lengths is not supported")
    inputs, plain = [x], [[cell[0], _product(g, cell[1], cell[-1]), *cell[2:-1]] for cell in cells]
    for place in range(0 if first is None else len(cells)):
        assert first is not None
        state, others = _rows(g, first, [place], keep_zeros=True), x.shape[0] - 1
        inputs.append(_with_zeros(g, state, others if place else 0, 0 if place else others))
        for other, cell in enumerate(plain):
            weight = cells[other][1]
            if other != place:
                weight = g.const(np.zeros(weight.shape, x.dtype))
            cell[0] = _joined(g, (cell[0], weight), axis=1)
    output, hidden, memory = _layer(
        g, operator, _joined(g, tuple(inputs), axis=2), [None, memory], plain, lengths
    )
    back = _stacked(g, [_transposed(g, cell[-1]) for cell in cells])
    return [_product(g, output, back), _product(g, hidden, back), memory]


def _with_zeros(g: OnnxBuilder, x: Value, before: Any, after: Any) -> Value:
    """Adds steps of zeros to one of [1, N, H]."""
    if is_symbolic((before, after)) and int(g.graph.version) >= 11:  # the amounts are an input
        shape = (before + after + 1, *x.shape[1:])
        return g.op("Pad", x, g.ints([before, 0, 0, after, 0, 0]), shape=shape)
    step = np.zeros((before + after + 1, 1, 1), x.dtype)
    step[before] = 1
    return g.op("Mul", g.const(step), x, shape=(len(step), *x.shape[1:]))


def _product(g: OnnxBuilder, x: Value, y: Value) -> Value:
    if x.data is not None and y.data is not None:
        return g.const(x.data @ y.data, name=x.name)
    return g.op("MatMul", x, y, shape=(*x.shape[:-1], y.shape[-1]))


def _transposed(g: OnnxBuilder, x: Value) -> Value:
    if x.data is not None:
        return g.const(x.data.T, name=x.name)
    return g.op("Transpose", x, perm=[1, 0], shape=x.shape[::-1])


def _rows(g: OnnxBuilder, x: Value, rows: Any, *, keep_zeros: bool = False) -> Any:
    """Slices rows of ``x``; None for initial states of zero, which is the default."""
    rows = list(rows)
    if x.data is None:
        if rows == list(range(x.shape[0])):
            return x
        return g.op("Gather", x, g.ints(rows), axis=0, shape=(len(rows), *x.shape[1:]))
    part = x.data if rows == list(range(x.shape[0])) else x.data[rows]
    return g.const(part, name=x.name) if keep_zeros or part.any() else None


def _joined(g: OnnxBuilder, parts: tuple[Value, ...], axis: int = 0) -> Value:
    """Concatenates arrays."""
    if len(parts) == 1:
        return parts[0]
    arrays = [part.data for part in parts if part.data is not None]
    if len(arrays) == len(parts):
        return g.const(np.concatenate(arrays, axis), name=parts[0].name)
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return g.op("Concat", *parts, axis=axis, shape=tuple(shape))


def _stacked(g: OnnxBuilder, parts: list[Value]) -> Value:
    """Stacks arrays of one shape along a new first axis."""
    arrays = [part.data for part in parts if part.data is not None]
    if len(arrays) == len(parts):
        return g.const(np.stack(arrays), name=parts[0].name)
    shape = (1, *parts[0].shape)
    rows = [g.op("Reshape", part, g.ints(shape), shape=shape) for part in parts]
    return g.op("Concat", *rows, axis=0, shape=(len(rows), *shape[1:])) if len(rows) > 1 else rows[0]
