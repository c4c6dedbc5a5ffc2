"""Float models whose operators have no integer kernels become integer models throughout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert

torch = pytest.importorskip("torch")
interpreter = pytest.importorskip("ai_edge_litert.interpreter")


class Last(torch.nn.Module):
    """Uses the last states of a recurrent layer, and not its sequence."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layer = getattr(torch.nn, kind)(6, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, state = self.layer(x)
        return state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("steps", [1, 4])
def test_recurrent_layers_without_their_sequence(kind: str, steps: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    samples = [np.random.default_rng(i).standard_normal((2, steps, 6)).astype(np.float32) for i in range(16)]
    module, path = Last(kind).eval(), tmp_path / "last.tflite"
    tmconvert.to_tflite(
        module,
        path,
        quantized=True,
        io_type="float32",
        calibration=samples,
        example_inputs=(torch.from_numpy(samples[0]),),
    )
    runtime = interpreter.Interpreter(str(path))
    runtime.allocate_tensors()
    runtime.set_tensor(runtime.get_input_details()[0]["index"], samples[0])
    runtime.invoke()
    actual = runtime.get_tensor(runtime.get_output_details()[0]["index"])
    with torch.no_grad():
        expected = module(torch.from_numpy(samples[0])).numpy()
    assert np.abs(actual - expected).max() < 0.08 * np.abs(expected).max()


SQUARES = {
    "product": lambda x: x * x,
    "power": lambda x: x**2,
    "square": torch.square,
}


class Magnitude(torch.nn.Module):
    """The magnitudes of a spectrum, whose real and imaginary parts a convolution computes."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        phase = 2 * np.pi * np.outer(np.arange(9), np.arange(16)) / 16
        basis = np.concatenate([np.cos(phase), np.sin(phase)]).astype(np.float32)
        self.basis = torch.nn.Parameter(torch.from_numpy(basis)[:, None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = torch.nn.functional.conv1d(x, self.basis, stride=4)
        real, imaginary = (SQUARES[self.form](each) for each in parts.chunk(2, 1))
        return torch.sqrt(real + imaginary)


@pytest.mark.parametrize("form", SQUARES)
def test_squares_under_a_root_are_fine(form: str, tmp_path: Path) -> None:
    """In int8 the squares of all that is below a sixteenth of the loudest would be 0."""
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal((1, 1, 64)).astype(np.float32) * 0.5**i for i in range(4)]
    module, path = Magnitude(form).eval(), tmp_path / "magnitude.tflite"
    report = tmconvert.to_tflite(
        module,
        path,
        quantized=True,
        io_type="float32",
        io_layout="source",
        calibration=samples,
        example_inputs=(torch.from_numpy(samples[0]),),
    )
    assert report.verified and not [note for note in report.notes if "in float" in note]
    runtime = interpreter.Interpreter(str(path))
    runtime.allocate_tensors()
    runtime.set_tensor(runtime.get_input_details()[0]["index"], samples[2])
    runtime.invoke()
    actual = runtime.get_tensor(runtime.get_output_details()[0]["index"])
    with torch.no_grad():
        expected = module(torch.from_numpy(samples[2])).numpy()
    noise = 10 * np.log10((expected**2).sum() / ((expected - actual) ** 2).sum())
    assert noise > 27


def test_a_sum_with_many_paths_under_a_root() -> None:
    """Each sum uses the one before twice: 2 ** 40 paths lead to the square."""

    def doubled(x: torch.Tensor) -> torch.Tensor:
        y = x * x
        for _ in range(40):
            y = y + y
        return torch.sqrt(y)

    calibrated = tmconvert.calibrate(tmconvert.trace(doubled, torch.ones(2)), [np.ones(2, np.float32)])
    np.testing.assert_allclose(calibrated(np.ones(2, np.float32)), 2.0**20, rtol=0.02)
