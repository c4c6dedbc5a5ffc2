"""LSTM, GRU and RNN with all of their attributes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.one_node import check, floats, value

STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
PARAMETERS = {
    "Relu": 0,
    "Tanh": 0,
    "Sigmoid": 0,
    "Softsign": 0,
    "Softplus": 0,
    "LeakyRelu": 1,
    "ThresholdedRelu": 1,
    "Elu": 1,
    "Affine": 2,
    "ScaledTanh": 2,
    "HardSigmoid": 2,
}
DIRECTIONS = ["forward", "reverse", "bidirectional"]


def recurrent(tmp_path, op, direction, *, bias=True, lengths=(), states=False, peepholes=False, **attributes):
    count, gates = 2 if direction == "bidirectional" else 1, GATES[op]
    inputs = [
        floats(STEPS, BATCH, WIDTH),
        floats(count, gates * HIDDEN, WIDTH) / 3,
        floats(count, gates * HIDDEN, HIDDEN) / 3,
        floats(count, 2 * gates * HIDDEN) if bias else None,
        value([*lengths], np.int32) if lengths else None,
        floats(count, BATCH, HIDDEN) if states else None,
    ]
    if op == "LSTM":
        inputs.append(floats(count, BATCH, HIDDEN) if states else None)
        inputs.append(floats(count, 3 * HIDDEN) if peepholes else None)
    while inputs[-1] is None:
        inputs.pop()
    outputs = 3 if op == "LSTM" else 2
    check(
        tmp_path,
        op,
        inputs,
        outputs=outputs,
        opset=14,
        constant=(1, 2, 3),
        hidden_size=HIDDEN,
        direction=direction,
        tolerance=1e-3,
        **attributes,
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"lengths": (5, 2, 4)},
        {"states": True, "lengths": (5, 2, 4)},
        {"states": True, "lengths": (5, 0, 4)},
        {"clip": 0.5},
        {"clip": 0.5, "lengths": (5, 2, 4)},
    ],
    ids=str,
)
def test_layers(tmp_path, op, direction, options):
    recurrent(tmp_path, op, direction, **options)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "options", [{}, {"clip": 0.5, "lengths": (5, 0, 4), "states": True}, {"input_forget": 1}], ids=str
)
def test_peepholes(tmp_path, direction, options):
    recurrent(tmp_path, "LSTM", direction, peepholes=True, **options)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("options", [{}, {"lengths": (5, 2, 4), "states": True}, {"clip": 0.4}], ids=str)
def test_linear_before_reset(tmp_path, direction, options):
    recurrent(tmp_path, "GRU", direction, linear_before_reset=1, **options)


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("op", GATES)
def test_activations(tmp_path, op, name):
    parameters = {
        "activation_alpha": [0.3] * FUNCTIONS[op],
        "activation_beta": [0.4] * FUNCTIONS[op],
    }
    some = dict(list(parameters.items())[: PARAMETERS[name]])
    recurrent(tmp_path, op, "forward", bias=False, activations=[name] * FUNCTIONS[op], **some)
