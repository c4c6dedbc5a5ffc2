"""Inputs of our own making reach what usual ones do not, and are valid for the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx.numpy_helper import from_array, to_array
from torch import nn
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import VerificationError


class Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def constants_changed(path: Path, old: float, new: float) -> None:
    model = onnx.load(path)
    changed = 0
    for tensor in model.graph.initializer:
        data = np.array(to_array(tensor))
        if data.size == 1 and data.dtype.kind in "fi" and np.isclose(data, old):
            tensor.CopyFrom(from_array(np.full_like(data, new), tensor.name))
            changed += 1
    assert changed
    onnx.save(model, path)


PIXELS = torch.randint(0, 2, (1, 3, 8, 8), dtype=torch.uint8)
# the function, its example, and a constant of the file that becomes another
CHANGES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float, float]] = {
    "pixels": (lambda x: torch.tanh(x.float() / 255 + 1), (PIXELS,), 255, 256),
    "relu6": (lambda x: F.relu6(x) + 1, (torch.rand(2, 3),), 6.0, 5.5),
    "a bound": (lambda x: x.clamp(-4.5, 4.5), (torch.rand(2, 3),), -4.5, -4.0),
    "a token": (lambda i: (i == 7).float() + i, (torch.zeros(2, 9, dtype=torch.int64),), 7, 6),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_constant_that_usual_inputs_do_not_reach(name: str, tmp_path: Path):
    function, given, old, new = CHANGES[name]
    path = tmp_path / "o.onnx"
    traced = tmconvert.trace(Calls(function), *given)
    assert tmconvert.to_onnx(traced, path).verified
    assert tmconvert.verify(traced, path).tells
    constants_changed(path, old, new)
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(traced, path)


VALID: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "lengths": (
        lambda x, n: x * (torch.arange(6) < n[:, None])[..., None],
        (torch.randn(2, 6, 3), torch.tensor([6, 4])),
    ),
    "an index": (lambda x, i: x[i], (torch.randn(5, 3), torch.tensor([0, 4]))),
    "a mask": (lambda x, m: x.masked_fill(~m, -1e4).softmax(-1), (torch.randn(2, 5), torch.ones(5) > 0)),
    "a divisor": (lambda x, n: x // n, (torch.tensor([5, 9]), torch.tensor([2, 3]))),
}


@pytest.mark.parametrize("name", VALID)
def test_inputs_that_the_model_takes(name: str, tmp_path: Path):
    function, given = VALID[name]
    assert tmconvert.to_onnx(Calls(function), tmp_path / "o.onnx", example_inputs=given).verified


def test_inputs_that_the_model_refuses_are_left_out(tmp_path: Path):
    def function(x: torch.Tensor) -> torch.Tensor:
        torch._check(bool((x.abs() <= 4).all()), lambda: "too large")
        return x * 2

    x = torch.rand(2, 3)
    report = tmconvert.to_onnx(Calls(function), tmp_path / "o.onnx", example_inputs=(x,))
    assert report.verified
    assert [note for note in report.notes if note.startswith("further inputs were left out")]
