"""TFLite files of functions with open sizes: one interpreter, resized again and again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter
from torch import nn

import tmconvert

TABLE = torch.randn(20, 8)
LSTM = nn.LSTM(8, 3, batch_first=True, bidirectional=True)
ENCODER = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()

FUNCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "rows of numbers": lambda x: x + torch.arange(x.shape[1])[None, :, None],
    "a table": lambda x: nn.functional.embedding(torch.arange(x.shape[1]), TABLE) + x,
    "zeros": lambda x: torch.cat([x, torch.zeros(x.shape[0], 1, 8)], 1),
    "slices": lambda x: torch.cat([x[:, 1:-1], x[:, ::2], x[:, : x.shape[1] // 2], x[:, -1:]], 1),
    "reshapes": lambda x: x.reshape(x.shape[0], x.shape[1] * 2, 4).mT.reshape(x.shape[0] * 4, -1),
    "expanded": lambda x: x.mean(1, True).expand(x.shape) * x.repeat(1, 1, 1),
    "flipped": lambda x: torch.stack([x, x.flip(1)], 1),
    "last row repeated": lambda x: (
        nn.functional.pad(x.mT, (0, x.shape[1] // 2), mode="replicate") / x.shape[1] ** 0.5
    ),
    "padded or cut to seven": lambda x: nn.functional.pad(x, (0, 0, 0, 7 - x.shape[1]), value=0.5),
    "padded or cut at both ends": lambda x: nn.functional.pad(x, (1, 0, 9 - x.shape[1], -2)),
    "gathered": lambda x: x.gather(1, (x > 0).long()),
    "branches": lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, (x,)),
    "steps": lambda x: LSTM(x)[0],
    "attention": ENCODER,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, tmp_path: Path) -> None:
    function, path = FUNCTIONS[name], tmp_path / "net.tflite"
    model = tmconvert.trace(
        lambda x: function(x), torch.randn(2, 5, 8), dynamic_shapes={"x": {0: "batch", 1: "length"}}
    )
    report = tmconvert.to_tflite(model, path)
    assert report.verified and report.inputs[0]["shape"] == ["batch", "length", 8]
    interpreter = Interpreter(str(path))
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    for shape in ((3, 7, 8), (1, 4, 8), (2, 12, 8)):
        x = torch.randn(shape)
        interpreter.resize_tensor_input(given["index"], list(shape))
        interpreter.allocate_tensors()
        for _ in range(2):
            interpreter.set_tensor(given["index"], x.numpy())
            interpreter.invoke()
            with torch.no_grad():
                expected = function(x).numpy()
            np.testing.assert_allclose(
                interpreter.get_tensor(result["index"]), expected, rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("open_sizes", [None, {"x": {0: "batch"}}])
def test_a_strict_resize_takes_what_was_left_open(open_sizes: Any, tmp_path: Path) -> None:
    """What docs/tflite.md says: another size of another axis is refused, by the interpreter itself."""
    path, flattened = tmp_path / "net.tflite", nn.Sequential(nn.Flatten(), nn.Linear(12, 2)).eval()
    model = tmconvert.trace(lambda x: flattened(x), torch.randn(2, 3, 4), dynamic_shapes=open_sizes)
    assert tmconvert.to_tflite(model, path).verified
    interpreter = Interpreter(str(path))
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    refused = [(2, 6, 4)] if open_sizes else [(2, 6, 4), (5, 3, 4)]
    for shape in refused:
        with pytest.raises(RuntimeError, match="dimension"):
            interpreter.resize_tensor_input(given["index"], list(shape), strict=True)
    if open_sizes:
        x = torch.randn(5, 3, 4)
        interpreter.resize_tensor_input(given["index"], list(x.shape), strict=True)
        interpreter.allocate_tensors()
        interpreter.set_tensor(given["index"], x.numpy())
        interpreter.invoke()
        with torch.no_grad():
            expected = flattened(x).numpy()
        np.testing.assert_allclose(interpreter.get_tensor(result["index"]), expected, rtol=1e-4, atol=1e-5)
