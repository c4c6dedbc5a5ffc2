"""Recurrent layers of many steps, or an open number, in LiteRT: right, and all is not copied in each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter
from torch import nn

import tmconvert
from tmconvert.conversion.io_overrides import IoOverrides
from tmconvert.conversion.lowering import lowered
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.tflite_loops import BLOCK
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME, TargetOptions

LAYERS: dict[str, nn.Module] = {
    "lstm": nn.LSTM(4, 6, batch_first=True),
    "lstm both ways": nn.LSTM(4, 6, num_layers=2, bidirectional=True, batch_first=True),
    "gru": nn.GRU(4, 6, batch_first=True),
    "rnn": nn.RNN(4, 6, batch_first=True),
}


def expected_of(layer: nn.Module, x: torch.Tensor) -> list[np.ndarray]:
    with torch.no_grad():
        rows, last = layer(x)
    return [each.numpy() for each in (rows, *(last if isinstance(last, tuple) else [last]))]


def run(interpreter: Interpreter, x: torch.Tensor) -> list[np.ndarray]:
    """The outputs, in the order of the signature; the interpreter is resized."""
    (given,) = interpreter.get_input_details()
    interpreter.resize_tensor_input(given["index"], list(x.shape))
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], x.numpy())
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


@pytest.mark.parametrize("name", LAYERS)
def test_an_open_number_of_steps(name: str, tmp_path: Path) -> None:
    """Fewer steps than a block, a block, one more, several; and again in the same interpreter."""
    layer, path = LAYERS[name].eval(), tmp_path / "net.tflite"
    open_sizes = {"input": {0: "batch", 1: "length"}}
    report = tmconvert.to_tflite(
        layer, path, example_inputs=(torch.randn(2, 5, 4),), dynamic_shapes=open_sizes
    )
    assert report.verified
    assert report.inputs[0]["shape"] == ["batch", "length", 4]
    interpreter = Interpreter(str(path))
    for batch, length in ((1, 1), (2, BLOCK - 1), (1, BLOCK), (3, BLOCK + 1), (1, 3 * BLOCK), (2, 2)):
        x = torch.randn(batch, length, 4)
        for made, expected in zip(run(interpreter, x), expected_of(layer, x), strict=True):
            np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_an_open_number_of_steps_that_may_be_none(tmp_path: Path) -> None:
    def stacked(x: torch.Tensor) -> torch.Tensor:
        state, rows = x.mean(0), [x[0]]
        for number in range(1, len(x)):
            state = (state + x[number]).tanh()
            rows.append(state)
        return torch.stack(rows)

    path, sizes = tmp_path / "net.tflite", {"x": {0: "n"}}
    tmconvert.to_tflite(stacked, path, example_inputs=(torch.randn(5, 4),), dynamic_shapes=sizes)
    for count in (1, 2, BLOCK + 1):
        x = torch.randn(count, 4)
        np.testing.assert_allclose(run(Interpreter(str(path)), x)[0], stacked(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [257, 1000, 4100])
def test_many_steps(length: int, tmp_path: Path) -> None:
    """Turns of 64 steps, and of 1024, with some left."""
    layer, path, x = LAYERS["lstm"].eval(), tmp_path / "net.tflite", torch.randn(1, length, 4)
    assert tmconvert.to_tflite(layer, path, example_inputs=(x,), verify=False).operators < 400
    for made, expected in zip(run(Interpreter(str(path)), x), expected_of(layer, x), strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


def test_what_is_copied_each_step_does_not_grow() -> None:
    """WHILE copies what a turn changes: only a turn of a block writes to what is as long as the sequence."""
    open_sizes = {"input": {1: "length"}}
    model = tmconvert.trace(LAYERS["lstm"].eval(), torch.randn(1, 5, 4), dynamic_shapes=open_sizes)
    overrides = IoOverrides(dynamic_shapes=open_sizes)
    options = TargetOptions("tflite", TFLITE_RUNTIME)
    graph = lowered(model, options, catalogue(), overrides=overrides).graph
    found = []
    for each in graph.nested():
        types = [operator.type for operator in each.operators]
        for operator in each.operators:
            if operator.type == "DYNAMIC_UPDATE_SLICE":
                found.append("WHILE" in types)
                assert is_symbolic(operator.outputs[0].shape) == found[-1]
    assert sorted(found) == [False, True]
