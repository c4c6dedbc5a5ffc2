"""Tensors in int16 that operators in int8 and in int16 take, and the reverse: no false alarms."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.ir import TracedModule

torch = pytest.importorskip("torch")
LAYERS = ["first", "left", "right", "last", "*cat*", "*tanh*", "*add*", "*mul*", "*hardswish*"]
INPUTS = [np.random.default_rng(i).standard_normal((1, 3, 8, 8)).astype(np.float32) for i in range(3)]


class Branches(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        conv = torch.nn.Conv2d
        self.first, self.left, self.right = (conv(count, 8, 3, padding=1) for count in (3, 8, 8))
        self.last = torch.nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        functional = torch.nn.functional
        x = self.first(x)
        left, right = torch.relu(self.left(x)), self.right(x)
        y = torch.cat([left * torch.sigmoid(right), right + x], 1)
        y = functional.hardswish(functional.max_pool2d(y, 2))
        return self.last(y.mean((2, 3))), torch.softmax(torch.tanh(y).mean((2, 3)), 1)


@pytest.fixture(scope="module")
def traced() -> TracedModule:
    return tmconvert.trace(Branches().eval(), torch.from_numpy(INPUTS[0]))


@pytest.mark.parametrize(
    "wide", [*itertools.combinations(LAYERS, 1), *list(itertools.combinations(LAYERS, 3))[::4]]
)
def test_each_operator_gets_its_form(wide: tuple[str, ...], traced: TracedModule, tmp_path: Path) -> None:
    made = tmconvert.calibrate(traced, INPUTS, rules=dict.fromkeys(wide, "int16x8"))
    assert tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True).verified
    assert tmconvert.to_onnx(made, tmp_path / "m.onnx", quantized=True, opset=21).verified


def test_weights_that_are_turned_for_a_flattened_image(tmp_path: Path) -> None:
    """The graph computes them of a constant; in int16 it shows whether they are rounded as in the file."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 36, 40)
    )
    made = tmconvert.calibrate(tmconvert.trace(net.eval(), torch.from_numpy(INPUTS[0])), INPUTS)
    for kind in ("int8", "int16"):
        assert tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True, activations=kind).verified
    assert tmconvert.to_onnx(
        made, tmp_path / "m.onnx", quantized=True, opset=21, activations="int16"
    ).verified


def test_a_mean_of_what_has_none(tmp_path: Path) -> None:
    """What is left of it in float32 is rounding, of which no kernel has steps."""

    class Twice(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            x = torch.nn.functional.layer_norm(x, (8,))
            return torch.nn.functional.layer_norm(x * 1.0, (8,))

    made = tmconvert.calibrate(tmconvert.trace(Twice(), torch.from_numpy(INPUTS[0])), INPUTS)
    assert tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True).verified
