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
