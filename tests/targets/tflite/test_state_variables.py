"""States of a module as variables of the file: LiteRT keeps them from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.errors import TmconvertError

torch = pytest.importorskip("torch")
from ai_edge_litert.interpreter import Interpreter  # noqa: E402


class Averages(torch.nn.Module):
    """A running mean that starts at other values than zeros, and an image of the last call."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 2, 3, padding=1)
        self.register_buffer("mean", torch.tensor([[0.5, -1.0]]))
        self.register_buffer("last", torch.arange(24.0).reshape(1, 2, 3, 4))

    def forward(self, x: Any) -> Any:
        y = self.conv(x) + self.last
        self.last = x
        self.mean = 0.5 * self.mean + y.mean((2, 3))
        return y * self.mean[..., None, None]


def test_each_run_computes_what_the_module_does(tmp_path: Path) -> None:
    module, path = Averages().eval(), tmp_path / "net.tflite"
    images = [torch.randn(1, 2, 3, 4) for _ in range(3)]
    options = {"example_inputs": (images[0],), "state": ["all"]}
    report = tmconvert.to_tflite(module, path, **options, state_as="variables")
    assert report.verified and [each["name"] for each in report.inputs] == ["x"]
    interpreter = Interpreter(model_path=str(path))
    run = interpreter.get_signature_runner()
    for image in images:
        (made,) = run(x=image.numpy().transpose(0, 2, 3, 1)).values()
        np.testing.assert_allclose(made.transpose(0, 3, 1, 2), module(image).detach(), atol=1e-4)
    with pytest.raises(TmconvertError, match="no input is a state"):
        tmconvert.to_tflite(torch.nn.ReLU(), path, example_inputs=(images[0],), state_as="variables")


def test_the_file_is_read_back_and_verified_again(tmp_path: Path) -> None:
    module, path = Averages().eval(), tmp_path / "net.tflite"
    model = tmconvert.trace(module, torch.randn(1, 2, 3, 4), state=["all"])
    tmconvert.to_tflite(model, path, state_as="variables")
    assert tmconvert.verify(model, path).max_error < 1e-4
    again = tmconvert.to_onnx(path, tmp_path / "net.onnx", state=["all"])
    assert {"mean", "last"} <= {each["name"] for each in again.inputs}
