"""Tensors in int16 that operators in int8 and in int16 take, and the reverse: no false alarms."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.errors import UsageError
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


def test_pixels_divided_by_a_constant(tmp_path: Path) -> None:
    class Scaled(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3)

        def forward(self, image: Any) -> Any:
            return self.conv((image.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25)

    random = np.random.default_rng(0)
    data = [(random.integers(0, 256, (1, 8, 8, 3)).astype(np.uint8),) for _ in range(4)]
    traced = tmconvert.trace(Scaled().eval(), torch.from_numpy(data[0][0]))
    report = tmconvert.to_tflite(traced, tmp_path / "m.tflite", quantized=True, calibration=data)
    assert report.verified
    assert not any("operators kept in float" in note for note in report.notes)


class Gated(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, act: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.gate, self.act = torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 8, 1), act

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        return x * self.act(self.gate(x.mean((2, 3), keepdim=True)))


def operators_of(path: Path) -> set[str]:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    mode = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = litert.Interpreter(str(path), experimental_op_resolver_type=mode)
    return {each["op_name"] for each in interpreter._get_ops_details()}


@pytest.mark.parametrize("activations", ["int8", "int16"])
@pytest.mark.parametrize("act", ["Sigmoid", "Tanh", "Hardsigmoid", "SiLU", "Hardswish"])
def test_gates_take_no_table(act: str, activations: str, tmp_path: Path) -> None:
    """NPUs leave GATHER to the CPU; these have kernels, or are sums and products."""
    traced = tmconvert.trace(Gated(getattr(torch.nn, act)()).eval(), torch.from_numpy(INPUTS[0]))
    path = tmp_path / "m.tflite"
    report = tmconvert.to_tflite(traced, path, quantized=True, calibration=INPUTS, activations=activations)
    assert report.verified
    assert not {"GATHER", "CAST"} & operators_of(path)


def test_a_rule_that_changes_nothing() -> None:
    """A maximum keeps the scale of what it is taken from."""

    class Pooled(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.pool = torch.nn.Conv2d(3, 4, 3), torch.nn.MaxPool2d(2)

        def forward(self, x: Any) -> Any:
            return self.pool(self.conv(x))

    traced = tmconvert.trace(Pooled().eval(), torch.from_numpy(INPUTS[0]))
    with pytest.raises(
        UsageError, match=r"the rule pool has no effect: .* has the same scale as its operand"
    ):
        tmconvert.calibrate(traced, INPUTS, rules={"pool": "int16x8"})
