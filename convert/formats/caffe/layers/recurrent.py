"""LSTM and RNN: nets of their own, run once for each step of a sequence [T, N, ...].

Bottoms: the sequence; markers [T, N], 0 where a sequence begins; optionally a static input of every step;
with ``expose_hidden`` the states before the first step, [1, N, H], which are then tops, too. Blobs: the
weight of the sequence, its bias, the weight of the third bottom, the weight of the state; an RNN has two more
for its outputs. Source: BVLC's recurrent_layer.cpp, lstm_layer.cpp, rnn_layer.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tmconvert.formats.caffe.layers.elementwise import sigmoid
from tmconvert.formats.caffe.layers.layer import Layer, Shape
from tmconvert.formats.caffe.net import NetLayer

States = list[np.ndarray]
Step = Callable[[list[np.ndarray], np.ndarray, np.ndarray, States], tuple[np.ndarray, States]]


def _shapes(states: int) -> Callable[[NetLayer, list[Shape]], list[Shape]]:
    def shapes(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
        steps, batch = bottoms[0][:2]
        if bottoms[1] != (steps, batch):
            raise ValueError(
                f"the sequence markers have the shape {list(bottoms[1])}, expected {[steps, batch]}"
            )
        size, exposed = layer.parameters.num_output, layer.parameters.expose_hidden
        if not size:
            raise ValueError("num_output is missing")
        given = len(bottoms) - 2 - (states if exposed else 0)
        if given not in (0, 1) or len(layer.tops) != 1 + (states if exposed else 0):
            raise ValueError(f"{len(bottoms)} bottoms and {len(layer.tops)} tops")
        return [(steps, batch, size), *[(1, batch, size)] * (states if exposed else 0)]

    return shapes


def _lstm_step(
    blobs: list[np.ndarray], x: np.ndarray, mark: np.ndarray, states: States
) -> tuple[np.ndarray, States]:
    """Gates are concatenated: input, forget, output, and the candidate."""
    hidden, cell = states
    gates = x + (mark * hidden) @ blobs[-1].T
    take, keep, give, new = np.split(gates, 4, axis=1)
    cell = mark * sigmoid(keep) * cell + sigmoid(take) * np.tanh(new)
    hidden = sigmoid(give) * np.tanh(cell)
    return hidden, [hidden, cell]


def _rnn_step(
    blobs: list[np.ndarray], x: np.ndarray, mark: np.ndarray, states: States
) -> tuple[np.ndarray, States]:
    """The output is the state times weights of its own, through a second tanh."""
    hidden = np.tanh(x + (mark * states[0]) @ blobs[-3].T)
    return np.tanh(hidden @ blobs[-2].T + blobs[-1].reshape(-1)), [hidden]


def _run(states: int, step: Step) -> Callable[[NetLayer, list[np.ndarray]], list[np.ndarray]]:
    def run(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
        sequence, marks, *rest = bottoms
        steps, batch = sequence.shape[:2]
        size, exposed = layer.parameters.num_output, layer.parameters.expose_hidden
        given = [state[0] for state in rest[-states:]] if exposed else []
        held = given or [np.zeros((batch, size), np.float32)] * states
        around = rest[: len(rest) - len(given)]
        flat = sequence.reshape(steps, batch, math.prod(sequence.shape[2:]))
        inputs = flat @ layer.blobs[0].T + layer.blobs[1].reshape(-1)
        if around:
            inputs = inputs + around[0].reshape(batch, -1) @ layer.blobs[2].T
        outputs = []
        for x, mark in zip(inputs, marks, strict=True):
            output, held = step(layer.blobs, x, mark[:, None], held)
            outputs.append(output)
        made = [np.stack(outputs), *(state[None] for state in (held if exposed else []))]
        return [np.asarray(array, np.float32) for array in made]

    return run


LAYERS = {
    "LSTM": Layer(_shapes(2), _run(2, _lstm_step), bottoms=(2, 5), tops=(1, 3), parameters="recurrent_param"),
    "RNN": Layer(_shapes(1), _run(1, _rnn_step), bottoms=(2, 4), tops=(1, 2), parameters="recurrent_param"),
}
