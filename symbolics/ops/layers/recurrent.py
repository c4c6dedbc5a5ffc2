"""aten::lstm, aten::gru, aten::rnn_tanh and aten::rnn_relu: recurrent layers.

``x`` is [T, N, I], or [N, T, I] with ``batch_first``. ``hx`` holds the first states
[layers * directions, N, H]: hidden, and for the LSTM cell. ``params`` are, for each layer and direction,
the weights [G H, I] and [G H, H] and with ``has_biases`` two biases [G H]; G gates one below the other (LSTM:
i f g o; GRU: r z n). A layer behind the first gets both directions side by side. Results: what the last layer
gives, and the last states.
Where the hidden states of an LSTM have P features, not H, it projects: each cell has one more matrix
[P, H], by which it multiplies what it gives, and the second weights are [G H, P].
``lengths`` [N] are those of the sequences, which are then followed by padding: it changes no state, and what
the layers give there is zero.
``dropout`` matters in training only, and a conversion is for inference. Source: torch.nn.LSTM, GRU, RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.op import FLOATS, INDICES, Op, Tensor, Tensors, boolean, integer, number
from tmconvert.symbolics.ops.elementwise.unary import UNARY
from tmconvert.symbolics.traits import MultiplyAccumulates

Array = np.ndarray
# (what the inputs give to the gates, what the hidden state gives, states) -> new states
Cell = Callable[[Array, Array, list[Array]], list[Array]]


def _kernel(name: str) -> Callable[..., Array]:
    kernel = UNARY[name].kernel
    assert kernel is not None
    return kernel


_sigmoid, _tanh, _relu = (_kernel(name) for name in ("sigmoid", "tanh", "relu"))


def _lstm(given: Array, kept: Array, states: list[Array]) -> list[Array]:
    i, f, g, o = np.split(given + kept, 4, -1)
    cell = _sigmoid(f) * states[1] + _sigmoid(i) * _tanh(g)
    return [_sigmoid(o) * _tanh(cell), cell]


def _gru(given: Array, kept: Array, states: list[Array]) -> list[Array]:
    (r, z, n), (r_kept, z_kept, n_kept) = np.split(given, 3, -1), np.split(kept, 3, -1)
    update = _sigmoid(z + z_kept)
    return [(1 - update) * _tanh(n + _sigmoid(r + r_kept) * n_kept) + update * states[0]]


def _elman(function: Callable[[Array], Array]) -> Cell:
    return lambda given, kept, states: [function(given + kept)]


# name: (cell, gates, how many states it has)
TABLE: dict[str, tuple[Cell, int, int]] = {
    "lstm": (_lstm, 4, 2),
    "gru": (_gru, 3, 1),
    "rnn_tanh": (_elman(_tanh), 1, 1),
    "rnn_relu": (_elman(_relu), 1, 1),
}


def _layers(
    params: list[Any], hx: list[Any], num_layers: int, directions: int, has_biases: bool
) -> list[list[list[Any]]]:
    """Returns the parameters by layer and direction. Raises ValueError for a wrong number of them."""
    each = (4 if has_biases else 2) + _is_projected(hx)
    if num_layers < 1 or len(params) != num_layers * directions * each:
        raise ValueError(f"got {len(params)} parameters for {num_layers} layers in {directions} directions")
    cells = [params[i : i + each] for i in range(0, len(params), each)]
    return [cells[i : i + directions] for i in range(0, len(cells), directions)]


def _is_projected(hx: list[Any]) -> bool:
    return hx[0].shape[-1] != hx[-1].shape[-1]


def _check(layers: list[list[list[TensorType]]], x: TensorType, gates: int, hx: list[TensorType]) -> None:
    width, out, hidden = x.shape[2], hx[0].shape[-1], hx[-1].shape[-1]
    for layer in layers:
        for cell in layer:
            expected: list[Any] = [(gates * hidden, width), (gates * hidden, out)]
            expected += [(gates * hidden,)] * 2 if len(cell) > 3 else []
            expected += [(out, hidden)] if out != hidden else []
            if [part.shape for part in cell] != expected:
                raise ValueError(f"the weights {cell[0]} and {cell[1]} do not fit {hidden} hidden features")
        width = len(layer) * out


def _result(
    name: str, x: TensorType, hx: list[TensorType], params: list[TensorType], has_biases: bool,
    num_layers: int, bidirectional: bool, batch_first: bool, lengths: TensorType | None,
) -> list[TensorType]:  # fmt: skip
    _, gates, states = TABLE[name]
    directions = 2 if bidirectional else 1
    if x.rank != 3 or len(hx) != states or any(state.rank != 3 for state in hx):
        raise ValueError(
            f"{x} is not a batch of sequences, or {len(hx)} initial states are not the expected {states}"
        )
    batch = x.shape[0 if batch_first else 1]
    if any(state.shape[:2] != (num_layers * directions, batch) for state in hx):
        raise ValueError(f"the initial states {hx[0]} do not fit {x}")
    if lengths is not None and lengths.shape != (batch,):
        raise ValueError(f"the lengths {lengths} do not fit {x}")
    if len({type_.dtype for type_ in (x, *hx, *params)}) > 1:
        raise TypeError("sequences, states and parameters have different dtypes")
    _check(_layers(params, hx, num_layers, directions, has_biases), x, gates, hx)
    return [TensorType(x.dtype, (*x.shape[:2], directions * hx[0].shape[-1])), *hx]


def _run(
    cell: Cell, x: Array, states: list[Array], weights: list[Array], is_there: Array
) -> tuple[Array, list[Array]]:
    """Returns the outputs of one direction of one layer for [T, N, I], and its last states.

    ``is_there`` [T, N, 1] tells a sequence from its padding.
    """
    weight_ih, weight_hh, *others = weights
    projection = others.pop() if len(weights) % 2 else None
    bias_ih, bias_hh = others or (0, 0)
    given, outputs = x @ weight_ih.T + bias_ih, []
    for step, counts in zip(given, is_there, strict=True):
        new = cell(step, states[0] @ weight_hh.T + bias_hh, states)
        if projection is not None:
            new[0] = new[0] @ projection.T
        outputs.append(np.where(counts, new[0], 0).astype(x.dtype))
        states = [np.where(counts, *pair) for pair in zip(new, states, strict=True)]
    return np.stack(outputs), states


def _computed(
    name: str, x: Array, hx: list[Array], params: list[Array], has_biases: bool, num_layers: int,
    bidirectional: bool, batch_first: bool, lengths: Array | None,
) -> list[Array]:  # fmt: skip
    x = x.swapaxes(0, 1) if batch_first else x
    ends = np.full(x.shape[1], len(x)) if lengths is None else lengths
    is_there = (np.arange(len(x))[:, None] < ends)[..., None]
    directions, last = 2 if bidirectional else 1, []
    for layer, cells in enumerate(_layers(params, hx, num_layers, directions, has_biases)):
        outputs = []
        for direction, weights in enumerate(cells):
            states = [state[layer * directions + direction] for state in hx]
            order = slice(None, None, -1 if direction else 1)
            output, states = _run(TABLE[name][0], x[order], states, weights, is_there[order])
            outputs.append(output[order])
            last.append(states)
        x = np.concatenate(outputs, -1)
    return [x.swapaxes(0, 1) if batch_first else x, *(np.stack(states) for states in zip(*last, strict=True))]


def _multiply_accumulates(operands: Sequence[Sequence[int]], result: Sequence[int]) -> int:
    """Counts each element of the sequence and of the batch with each weight matrix."""
    return prod(operands[0][:-1]) * sum(prod(each) for each in operands[1:] if len(each) == 2)


def _op(name: str) -> Op:
    def result(x: Any, hx: Any, params: Any, dropout: float, train: bool, **options: Any) -> list[TensorType]:
        return _result(name, x, hx, params, **options)

    several = name == "lstm"
    op = Op(
        f"aten::{name}",
        args=[
            Tensor("x", FLOATS), Tensors("hx", FLOATS) if several else Tensor("hx", FLOATS),
            Tensors("params", FLOATS), boolean("has_biases"), integer("num_layers"), number("dropout"),
            boolean("train"), boolean("bidirectional"), boolean("batch_first"),
            Tensor("lengths", INDICES, optional=True, ranks=(1,)),
        ],
        result=result if several else lambda hx, **options: result(hx=[hx], **options),
        traits=[MultiplyAccumulates(_multiply_accumulates)],
    )  # fmt: skip

    @op.reference
    def recurrent_ref(
        x: Array, hx: Any, params: list[Array], has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool, lengths: Array | None,
    ) -> list[Array]:  # fmt: skip
        states = hx if several else [hx]
        modes = (has_biases, num_layers, bidirectional, batch_first)
        return _computed(name, x, states, params, *modes, lengths)

    @op.onnx(since=7)
    def recurrent_onnx7(
        g, x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, lengths
    ):
        states = hx if several else [hx]
        layers = _layers(params, states, num_layers, 2 if bidirectional else 1, has_biases)
        return idioms.onnx_recurrent.layers(g, name, x, states, layers, batch_first, lengths)

    @op.decompose
    def recurrent_steps_of(
        g, x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, lengths
    ):
        states = hx if several else [hx]
        types = [g.type(state) for state in states]
        layers = _layers(params, types, num_layers, 2 if bidirectional else 1, has_biases)
        return idioms.recurrent_steps.layers(g, name, x, states, layers, batch_first, lengths)

    return op


OPS = [_op(name) for name in TABLE]
