"""Clamps between layers of integer files: no operator stays in float, and the results are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert

torch = pytest.importorskip("torch")
pytest.importorskip("ai_edge_litert.interpreter")

X = np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype(np.float32)
BOUNDS = [(0, 1), (0, 6), (-1, 1), (0, None), (0, 2.0), (-0.5, 0.25), (None, 1.0), (-0.5, None), (0.5, None)]


class Clamped(torch.nn.Module):
    """Two convolutions with a clamp between them."""

    def __init__(self, low: float | None, high: float | None, factor: float) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Conv2d(8, 4, 1)
        self.low, self.high, self.factor = low, high, factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = x if self.factor == 1 else x * self.factor
        return self.second(torch.clamp(x, self.low, self.high))


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_a_clamp_between_convolutions(
    low: float | None, high: float | None, factor: float, kind: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    report = tmconvert.to_tflite(
        Clamped(low, high, factor).eval(),
        tmp_path / "net.tflite",
        example_inputs=[torch.from_numpy(X[:1])],
        quantized=True,
        activations=kind,
        calibration=[{"x": X[i : i + 1]} for i in range(len(X))],
    )
    assert report.verified
    assert not [note for note in report.notes if "in float" in note]
    (noise,) = (note for note in report.notes if "signal to noise" in note)
    assert float(noise.partition(": ")[2].split()[0]) > 30
    operators = 2 if kind == "int8" and None not in (low, high) else 4
    (counted,) = (note for note in report.notes if note.endswith(f"operators in {kind}"))
    assert int(counted.split()[0]) <= operators
