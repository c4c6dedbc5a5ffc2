"""Integers have no NaN: constants with NaN, which ops choose for values outside of their domain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tmconvert

torch = pytest.importorskip("torch")
pytest.importorskip("ai_edge_litert")


class Applied(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x - x.median(dim=-1, keepdim=True).values,
        lambda x: torch.quantile(x, 0.3, dim=-1),
        lambda x: torch.digamma(x.abs() + 1),
        lambda x: torch.where(x > 9.0, torch.tensor(float("nan")), x),
    ],
    ids=["median", "quantile", "digamma", "where"],
)
@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_numbers_are_right_and_nan_is_told(
    function: Callable[..., torch.Tensor], kind: str, tmp_path: Path
) -> None:
    torch.manual_seed(3)
    samples = [{"x": torch.randn(2, 3, 8).numpy()} for _ in range(4)]
    report = tmconvert.to_tflite(
        Applied(function),
        tmp_path / "out.tflite",
        example_inputs=[torch.from_numpy(samples[0]["x"])],
        quantized=True,
        calibration=samples,
        activations=kind,
    )
    assert report.verified
    assert any("integers have no NaN" in note for note in report.notes)
