"""What kernels are off beyond rounding: LiteRT's are within it, over all integers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.passes.graphs import Net
from tests.targets.tflite.integer_samples import Sample
from tests.targets.tflite.test_integer_kernels import MODES, run
from tmconvert.ir import CallFunction
from tmconvert.ir.types import QParams
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.tflite.integer.qparams import RANGES
from tmconvert.targets.tflite.integer.stages import to_integers
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.verify.kernel_error import slack_of
from tmconvert.verification.layer_checks import Layer
from tmconvert.verification.noise import LARGEST, energies_of
from tmconvert.verification.verify_layers import compared, is_within_noise

STEP = 2.0**-15


def on(kind: str, scale: float, zero: int = 0) -> QParams:
    return QParams(kind, (float(np.float32(scale)),), (zero,), *RANGES[kind])


def beyond(
    type: str, function: str, steps: np.ndarray, scale: float, path: Path, **options: Any
) -> np.ndarray:
    """How far a kernel with a grid of its own is beyond what it may be, in its steps, for int16 ``steps``."""
    graph = Sample(type, [steps.shape], [steps.shape], {"beta": 1.0} if type == "SOFTMAX" else {}).graph()
    graph.inputs[0].qparams = on("int16", scale)
    kernel = spec(type).integer
    assert kernel is not None
    graph.outputs[0].qparams = on("int16", *kernel.fixed["int16"])
    made = to_integers(graph, catalogue(), activations="int16", io_type="int16")
    found = next(iter(run(made.graph, {"x0": steps}, MODES[1], path).values())) * STEP
    net = Net()
    x = net.input(*steps.shape)
    expr = net(function, x, **options).expr
    numbers = steps.astype(np.float64) * scale
    exact = np.asarray(catalogue()[function].evaluate([numbers], options))
    assert type == "TANH" or abs(exact).max() <= 1
    off = np.abs(found - np.clip(exact, -1, 32767 * STEP))
    assert isinstance(expr, CallFunction)
    slack = slack_of(expr, "int16")
    assert slack is not None
    return np.asarray((off - slack(expr, [numbers], exact, scale)) / STEP)


ALL = np.arange(-32768, 32768).astype(np.int16)


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-11, 2.0**-13, 3e-4, 1e-5, 0.01])
@pytest.mark.parametrize(("type", "function"), [("TANH", "aten::tanh"), ("LOGISTIC", "aten::sigmoid")])
def test_curves(type: str, function: str, scale: float, tmp_path: Path) -> None:
    assert beyond(type, function, ALL, scale, tmp_path / "m.tflite").max() <= 2


@pytest.mark.parametrize("count", [2, 10, 300, 2000])
@pytest.mark.parametrize("top", [0.5, 4.0, 8.0, 30.0])
def test_softmax(count: int, top: float, tmp_path: Path) -> None:
    """Of many numbers far below the largest each is taken for a little too much."""
    random = np.random.default_rng(count)
    low = random.integers(-32768, 32767, (8, count)).astype(np.int16)
    peaks = random.integers(-32768, -20000, (8, count)).astype(np.int16)
    peaks[:, 0] = 32767
    off = [
        beyond("SOFTMAX", "aten::softmax", steps, top / 32768, tmp_path / "m.tflite", dim=-1).max()
        for steps in (low, peaks)
    ]
    assert max(off) <= 2
    if count >= 300 and top >= 8:
        assert off[1] >= -0.1 * 2 * count  # not much to spare


@pytest.mark.parametrize("ratio", [0.01, 0.9, 64.0, 300.0, 1e4])
def test_any_scale_to_any_other(ratio: float, tmp_path: Path) -> None:
    """The product with one wraps around where it lies 128 times beyond the range."""
    graph = Sample("RESHAPE", [(256,), np.array([256], np.int32)], [(256,)], {"new_shape": [256]}).graph()
    graph.inputs[0].qparams, graph.outputs[0].qparams = on("int8", 1.0, 5), on("int8", 1 / ratio, -3)
    made = to_integers(graph, catalogue())
    steps = np.arange(-128, 128).astype(np.int8)
    exact = np.clip((steps - 5.0) * ratio - 3, -128, 127)
    for mode in MODES:
        found = next(iter(run(made.graph, {"x0": steps}, mode, tmp_path / "m.tflite").values()))
        assert np.abs(found - exact).max() <= 0.76
    assert [operator.type for operator in made.graph.operators] == ["QUANTIZE" if ratio > 100 else "MUL"]


def layer(actual: np.ndarray, local: np.ndarray, step: float, slack: Any) -> Layer:
    energies = energies_of("y", "aten::div", actual, local, local, step, (-np.inf, np.inf))
    return Layer("y", "aten::div", actual, local, local, step, slack, energies)


def test_infinity_is_the_largest_number_to_litert() -> None:
    actual, local = np.float32([LARGEST, -LARGEST, 1.0, np.nan]), np.float32([np.inf, -np.inf, 1.0, np.nan])
    made = layer(actual, local, 0.0, 0.0)
    assert compared(made, "y").ok and made.energies.noise().local == np.inf
    assert not compared(layer(actual, np.float32([np.inf, -np.inf, 1.01, np.nan]), 0.0, 0.0), "y").ok
    assert not compared(layer(actual, np.float32([np.inf, np.inf, 1.0, np.nan]), 0.0, 0.0), "y").ok


def test_slack_is_that_of_each_element() -> None:
    actual, local = np.float32([0.0, 5.0]), np.float32([0.0, 0.0])
    assert compared(layer(actual, local, 1.0, np.array([0.0, 3.0])), "y").ok
    assert not compared(layer(actual, local, 1.0, np.array([3.0, 0.0])), "y").ok
    assert not compared(layer(actual, local, 1.0, 2.5), "y").ok


def test_resized_pixels_pass(tmp_path: Path) -> None:
    """From 33 to 65 with the pixels' centres: what LiteRT's own kernel counts is some pixels off."""
    torch = pytest.importorskip("torch")

    class Resize(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.interpolate(x * 1.5, size=(65, 20), mode="bilinear")

    x = np.random.default_rng(0).standard_normal((1, 2, 33, 7)).astype(np.float32)
    made = tmconvert.calibrate(tmconvert.trace(Resize(), torch.from_numpy(x)), [x])
    for kind in ("int8", "int16"):
        report = tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True, activations=kind)
        assert report.verified


def quotient(error: float, inherited: float) -> Layer:
    """A layer of steps of 1 with ``error`` in one element of its own, and ``inherited`` in all."""
    local = np.arange(64, dtype=np.float32)
    actual = local.copy()
    actual[7] += error
    whole = local + np.float32(inherited)
    energies = energies_of("y", "aten::div", actual, local, whole, 1.0, (-np.inf, np.inf))
    return Layer("y", "aten::div", actual, local, whole, 1.0, 0.0, energies)


@pytest.mark.parametrize(
    ("error", "inherited", "passes"), [(2.1, 1.0, True), (18, 5.0, True), (18, 0.5, False), (118, 5.0, False)]
)
def test_a_quotient_may_be_off_where_rounding_costs_more(
    error: float, inherited: float, passes: bool
) -> None:
    assert is_within_noise(quotient(error, inherited)) == passes
    other = quotient(error, inherited)
    assert not is_within_noise(replace(other, function="aten::convolution"))


SPECTRA: dict[str, Any] = {
    "fft": lambda torch, x, w: torch.fft.irfft(torch.fft.rfft(x) * w),
    "product": lambda torch, x, w: (x @ x.T)[:, 1:].reshape(-1)[1:] * 2,
}


@pytest.mark.parametrize("name", SPECTRA)
def test_reading_a_tensor_is_no_difference(name: str, tmp_path: Path) -> None:
    """ONNX Runtime moves quantization over slices to the tensors that verification reads, where it rounds."""
    torch = pytest.importorskip("torch")
    function, weight = SPECTRA[name], torch.linspace(-1, 1, 33)

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return function(torch, x, weight)

    samples = [np.random.default_rng(each).standard_normal((2, 64)).astype("f4") for each in range(4)]
    example = (torch.from_numpy(samples[0]),)
    path = tmp_path / "q.onnx"
    report = tmconvert.to_onnx(Module(), path, example_inputs=example, quantized=True, calibration=samples)
    assert report.verified and report.verification.decibels > 25
