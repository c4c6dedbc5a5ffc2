"""The weights of PyPI's litert-quantizer: the same integers, and equal outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.targets.tflite.reader import tflite_constants
from tmconvert.targets.tflite.runtime import LiteRtRuntime

torch = pytest.importorskip("torch")
quantizer = pytest.importorskip("litert_quantizer.quantizer", reason="litert-quantizer is not installed")
recipe = pytest.importorskip("litert_quantizer.recipe")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.first, self.last = (
            torch.nn.Conv2d(4, 32, 3),
            torch.nn.Linear(64, 96),
            torch.nn.Linear(96, 32),
        )

    def forward(self, image, x):
        return self.conv(image).mean((2, 3)) + self.last(torch.relu(self.first(x)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"weights": "int8"}, "dynamic_wi8_afp32"),
        ({"weights": "int4", "runtime": "2.20"}, "dynamic_wi4_afp32"),
        ({"weights": "int4", "rules": {"conv": "float32"}}, "dynamic_wi4b32_afp32"),
    ],
)
def test_both_store_the_same_integers(options: dict[str, Any], name: str, tmp_path: Path) -> None:
    plain, ours, theirs = (tmp_path / each for each in ("plain.tflite", "ours.tflite", "theirs.tflite"))
    torch.manual_seed(0)
    net = Net().eval()
    examples = torch.randn(1, 4, 12, 12), torch.randn(4, 64)
    tmconvert.to_tflite(net, plain, example_inputs=examples)
    tmconvert.to_tflite(net, ours, example_inputs=examples, **options)
    work = quantizer.Quantizer(str(plain))
    work.load_quantization_recipe(getattr(recipe, name)())
    work.quantize().export_model(str(theirs))
    arrays = [
        [each.data for values in tflite_constants(path).values() for each in values]
        for path in (ours, theirs)
    ]
    found = [{each.tobytes() for each in some if each is not None} for some in arrays]
    assert found[0] == found[1]
    inputs = dict(zip(("image", "x"), (each.numpy() for each in examples), strict=True))
    inputs["image"] = inputs["image"].transpose(0, 2, 3, 1)
    (outputs,) = [[info.name for info in tmconvert.inspect(ours).outputs]]
    made = [LiteRtRuntime().run([path], inputs, outputs)[0] for path in (ours, theirs)]
    np.testing.assert_array_equal(*made)
