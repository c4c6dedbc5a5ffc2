"""Scales of integer files at the ends of what integers and float32 hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.pairwise import pairwise

torch = pytest.importorskip("torch")
interpreter = pytest.importorskip("ai_edge_litert.interpreter")

X = np.random.default_rng(0).uniform(-1, 1, (4, 3, 8, 8)).astype(np.float32)


def outputs(path: Path, x: np.ndarray) -> np.ndarray:
    runtime = interpreter.Interpreter(str(path))
    runtime.allocate_tensors()
    runtime.set_tensor(runtime.get_input_details()[0]["index"], x)
    runtime.invoke()
    return np.asarray(runtime.get_tensor(runtime.get_output_details()[0]["index"]))


def converted(module: torch.nn.Module, x: np.ndarray, path: Path, **options: object) -> None:
    tmconvert.to_tflite(
        module.eval(),
        path,
        quantized=True,
        calibration=[x[i : i + 1] for i in range(len(x))],
        example_inputs=(torch.from_numpy(x[:1]),),
        io_type="float32",
        io_layout="source",
        **options,
    )


LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    "conv": lambda: torch.nn.Conv2d(3, 3, 3),
    "depthwise": lambda: torch.nn.Conv2d(3, 3, 3, groups=3),
    "linear": lambda: torch.nn.Linear(8, 3),
}


@pytest.mark.parametrize(
    ("layer", "kind", "per_channel", "size"),
    pairwise(LAYERS, ["int8", "int16x8"], [True, False], [1e-3, 1e-9, 1e-20, 1e-37, 1e-42, 0.0]),
)
def test_biases_of_channels_with_hardly_any_weights(
    layer: str, kind: str, per_channel: bool, size: float, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    module = LAYERS[layer]()
    with torch.no_grad():
        module.weight[1] *= size / module.weight[1].abs().max()
        module.bias.copy_(torch.tensor([0.2, -0.7, 0.4]))
    settings = {"per_channel": per_channel, "equalization": False}
    converted(module, X, tmp_path / "net.tflite", rules={"*": kind}, calibration_settings=settings)
    expected = module(torch.from_numpy(X[:1])).detach().numpy()
    actual = outputs(tmp_path / "net.tflite", X[:1])
    assert np.abs(actual - expected).max() < 0.03 * np.abs(expected).max()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", ["int8", "int16x8"])
def test_products_of_a_channel_with_a_large_bias_do_not_overflow(
    kind: str, sign: int, tmp_path: Path
) -> None:
    """With such weights the integer of the bias would be the largest one, to which kernels add products."""
    torch.manual_seed(2)
    module = torch.nn.Conv2d(64, 3, 1)
    x = np.random.default_rng(3).uniform(0, 1, (4, 64, 4, 4)).astype(np.float32)
    with torch.no_grad():
        module.weight[1] = module.weight[1].abs() * sign * 1e-9
        module.bias.copy_(torch.tensor([0.2, 0.7 * sign, 0.4]))
    converted(
        module,
        x,
        tmp_path / "net.tflite",
        rules={"*": kind},
        calibration_settings={"equalization": False},
    )
    expected = module(torch.from_numpy(x[:1])).detach().numpy()
    actual = outputs(tmp_path / "net.tflite", x[:1])
    assert np.abs(actual - expected).max() < 0.03 * np.abs(expected).max()


def test_the_bias_of_a_channel_of_zeros_is_as_fine_as_the_others(tmp_path: Path) -> None:
    torch.manual_seed(4)
    module = torch.nn.Conv2d(3, 3, 1)
    with torch.no_grad():
        module.weight *= 0.01
        module.weight[1] = 0
        module.bias.copy_(torch.tensor([0.0, 0.0123, 0.0]))
    converted(module, X, tmp_path / "net.tflite", calibration_settings={"equalization": False})
    actual = outputs(tmp_path / "net.tflite", X[:1])
    np.testing.assert_allclose(actual[0, 1], 0.0123, atol=2e-4)


@pytest.mark.parametrize("size", [1e-6, 1e-9, 1e-12, 0.0])
@pytest.mark.parametrize("bias", [1e-4, 1e-3, 0.1])
def test_small_biases_of_channels_with_hardly_any_weights_in_int16(
    size: float, bias: float, tmp_path: Path
) -> None:
    """Kernels give 0 where a step of the bias is too small a part of a step of the result."""
    torch.manual_seed(5)
    module = torch.nn.Conv2d(3, 4, 1)
    with torch.no_grad():
        module.weight[1] *= size
        module.weight[2] *= 1e-14
        module.bias.copy_(torch.tensor([0.2, bias, -bias, 0.4]))
    settings = {"equalization": False}
    converted(module, X, tmp_path / "net.tflite", rules={"*": "int16x8"}, calibration_settings=settings)
    actual = outputs(tmp_path / "net.tflite", X[:1])
    expected = module(torch.from_numpy(X[:1])).detach().numpy()
    np.testing.assert_allclose(actual[0, 1:3], expected[0, 1:3], atol=1e-4)


@pytest.mark.parametrize("size", [1e-9, 1e-42])
def test_a_bias_fits_where_all_weights_are_tiny(size: float, tmp_path: Path) -> None:
    module = torch.nn.Conv2d(3, 2, 1)
    with torch.no_grad():
        module.weight.fill_(size)
        module.bias.copy_(torch.tensor([0.5, -0.25]))
    settings = {"per_channel": False, "equalization": False}
    converted(module, X, tmp_path / "net.tflite", calibration_settings=settings)
    actual = outputs(tmp_path / "net.tflite", X[:1])
    np.testing.assert_allclose(actual[0, :, 0, 0], [0.5, -0.25], atol=0.01)


class Slices(torch.nn.Module):
    """A product whose second matrix, a slice, uses a part of the range of the whole."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x * torch.tensor([3.0, -1.0, 14.0]).reshape(3, 1, 1) - 5
        return torch.softmax(wide[:, 0] * 2, -1) @ wide[:, 1]


def test_products_with_requantized_matrices_are_compared_with_what_they_take(tmp_path: Path) -> None:
    """Runtimes before 2.22 take the zero point of the second matrix for 0."""
    converted(Slices(), X, tmp_path / "old.tflite", runtime="2.18")
    expected = Slices()(torch.from_numpy(X[:1])).numpy()
    assert np.abs(outputs(tmp_path / "old.tflite", X[:1]) - expected).max() < 0.3


def test_a_report_names_the_weights_whose_scales_are_larger(tmp_path: Path) -> None:
    module = torch.nn.Conv2d(3, 2, 1)
    with torch.no_grad():
        module.weight[0] = 1e-20
    settings = {"equalization": False}
    report = tmconvert.to_tflite(
        module.eval(),
        tmp_path / "net.tflite",
        quantized=True,
        calibration=[X[:1]],
        calibration_settings=settings,
        example_inputs=(torch.from_numpy(X[:1]),),
    )
    (note,) = (each for each in report.notes if each.startswith("weight scales"))
    assert note.startswith("weight scales of single channels are larger, so that biases fit: weight")
