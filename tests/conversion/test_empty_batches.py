"""--input-shape with a batch of 0: the file is written for it, and nothing is said to be verified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tmconvert
from tests.cli.runner import run
from tests.models import corpus
from tmconvert.errors import UnsupportedError

torch.manual_seed(0)
LSTM = nn.LSTM(8, 4, batch_first=True)
GRU = nn.GRU(8, 4, batch_first=True, bidirectional=True)
EMPTY = "is empty for all inputs tried, so that its comparison shows nothing"
MODELS: dict[str, Callable[[torch.Tensor], Any]] = {
    "convolution": nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3)),
    "transposed convolution": nn.ConvTranspose2d(1, 2, 3, 2, 1, 1),
    "pooling": nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2)),
    "resizing": nn.Upsample(scale_factor=2, mode="bilinear"),
    "layer norm": nn.LayerNorm(8),
    "lstm": lambda x: LSTM(x[:, 0])[0],
    "lstm, its states": lambda x: LSTM(x[:, 0])[1],
    "gru": lambda x: GRU(x[:, 0])[0],  # of which ONNX Runtime ended the process
    "sorted": lambda x: x.sort(-1),
    "split": lambda x: x.split(4, -1),
    "largest": lambda x: x.max(-1),
    "flattened": lambda x: x.flatten(1),
    "a product": lambda x: x @ x.transpose(-1, -2),
}


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("name", MODELS)
def test_models_at_a_batch_of_none(name: str, target: str, tmp_path: Path) -> None:
    model = tmconvert.trace(MODELS[name], torch.randn(2, 1, 8, 8), dynamic_shapes={_input(name): {0: "n"}})
    path = tmp_path / f"m.{'prototxt' if target == 'caffe' else target}"
    report = getattr(tmconvert, f"to_{target}")(model, path, input_shapes={_input(name): (0, 1, 8, 8)})
    outputs = model(np.zeros((2, 1, 8, 8), np.float32))
    shapes = [list(array.shape) for array in (outputs if isinstance(outputs, tuple) else (outputs,))]
    made = [each["shape"] for each in report.outputs]
    assert [[size or 2 for size in shape] for shape in made] == shapes
    assert all(shape.count(0) == 1 for shape in made)
    assert report.verification is not None and not report.verified
    assert sum(EMPTY in note for note in report.notes) == len(made)


def test_a_reshape_that_an_empty_batch_leaves_open_is_refused(tmp_path: Path) -> None:
    """As PyTorch does: of no elements -1 could be any size."""
    with pytest.raises(RuntimeError):
        torch.zeros(0, 8).reshape(0, -1)
    model = tmconvert.trace(
        lambda x: x.reshape(x.shape[0], -1), torch.randn(2, 8), dynamic_shapes={"x": {0: "n"}}
    )
    with pytest.raises(UnsupportedError, match=r"TM2003.*cannot be reshaped to \(0, -1\)"):
        tmconvert.to_onnx(model, tmp_path / "o.onnx", input_shapes={"x": (0, 8)})


def _input(name: str) -> str:
    return "input" if isinstance(MODELS[name], nn.Module) else "x"


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_the_command(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run(target, corpus.model("op_pooling"), f"o.{target}", "--input-shape", "x=0,4,16,16")
    assert outcome.status == 0
    first, *notes = outcome.stderr.splitlines()
    assert first.startswith(("not verified in ", "not verified with ")) and first.endswith(
        "no output was informative for the inputs tried"
    )
    assert notes and all(each.endswith(EMPTY) for each in notes)
