"""What ``tmconvert inspect`` says of quantization, and what a model with hardly any becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tests.models import corpus
from tmconvert import api
from tmconvert.errors import UsageError

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(
    ("path", "kind", "dtype"),
    [
        (SAMPLES / "digits_qat_torch.tm", "quantization-aware", "uint8"),
        (SAMPLES / "digits_qat.tm", "quantization-aware", "int8"),
        (corpus.model("qat_small_ema"), "quantization-aware", "int8"),
        (corpus.model("quantized_small"), "fixed-point", "int8"),
    ],
    ids=lambda value: getattr(value, "stem", None),
)
def test_the_kind_by_the_names_of_classes(path: Path, kind: str, dtype: str) -> None:
    found = api.quantization(path)
    assert found is not None and found.kind == kind
    assert found.tensors[dtype] > 0


def test_a_calibrated_model_says_so(tmp_path: Path) -> None:
    images = np.load(SAMPLES / "digits_test.npz")["images"][:2, None].astype(np.float32)
    tmconvert.calibrate(SAMPLES / "digits.tm", images).save(tmp_path / "q.tm")
    assert "\nquantized   calibrated: " in run("inspect", tmp_path / "q.tm").stdout
    assert api.quantization(SAMPLES / "digits.tm") is None


def traced(module: Any) -> Any:
    torch = pytest.importorskip("torch")
    return tmconvert.trace(module.eval(), torch.zeros(1, 3, 8, 8))


def rounding(before: bool) -> Any:
    """Rounds in front of a convolution, or behind it."""
    nn = pytest.importorskip("torch").nn
    import torch

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Identity() if before else nn.Conv2d(3, 4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fake_quantize_per_tensor_affine(self.conv(x), 0.1, 3, 0, 255)

    return Net()


def test_calls_say_it_where_no_class_does() -> None:
    found = api.quantization(traced(rounding(before=True)))
    assert found is not None and (found.kind, found.tensors) == ("quantization-aware", {"uint8": 1})


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_a_model_of_only_stubs_is_written(target: str, tmp_path: Path) -> None:
    convert = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}[target]
    assert convert(traced(rounding(before=True)), tmp_path / "m", quantized=True).verified


def test_scales_that_no_operator_can_use(tmp_path: Path) -> None:
    model = traced(rounding(before=False))
    with pytest.raises(UsageError, match="TM6030") as raised:
        tmconvert.to_tflite(model, tmp_path / "m", quantized=True)
    assert "no operator can be quantized: there are scales for fake_quantize_per_tensor" in str(raised.value)
    assert not any(tmp_path.iterdir())
    grid = {"x": ("quint8", 0.1, 0)}
    assert tmconvert.to_tflite(model, tmp_path / "m", quantized=True, input_qparams=grid).verified
