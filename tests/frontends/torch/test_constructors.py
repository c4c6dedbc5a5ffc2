"""Tensors made by old constructors and triangles of indices, in files with an open size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter
from torch.autograd import Variable

import tmconvert

FUNCTIONS = {
    "a size": lambda x: torch.Tensor(x.shape).fill_(2) + x,
    "numbers": lambda x: torch.Tensor(*x.shape).zero_() + x,
    "a type": lambda x: torch.cat([x, torch.FloatTensor(x.shape[0], 3).fill_(1)], 1),
    "elements": lambda x: x * torch.LongTensor([x.shape[0]]) + torch.Tensor([1, 2, 3, 4]),
    "a variable": lambda x: x + Variable(torch.Tensor(x.shape[0], 4).fill_(3)),
    "a tensor": lambda x: (
        torch.Tensor(x) + (x > 0).type(torch.FloatTensor) * isinstance(x, torch.FloatTensor)
    ),
    "the lower triangle": lambda x: (x @ x.T)[tuple(torch.tril_indices(x.shape[0], x.shape[0]))],
    "above the diagonal": lambda x: (x @ x.T)[tuple(torch.triu_indices(x.shape[0], x.shape[0], 1))],
    "a high rectangle": lambda x: x[tuple(torch.triu_indices(x.shape[0], 4, offset=-1))],
    "a wide rectangle": lambda x: x.T[tuple(torch.tril_indices(4, x.shape[0], offset=-2))],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_files(name: str, tmp_path: Path) -> None:
    function = FUNCTIONS[name]
    traced = tmconvert.trace(lambda x: function(x), torch.randn(3, 4), dynamic_shapes={"x": {0: "n"}})
    tmconvert.to_onnx(traced, tmp_path / "net.onnx")
    tmconvert.to_tflite(traced, tmp_path / "net.tflite")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    litert = Interpreter(model_path=str(tmp_path / "net.tflite"))
    (given,), (made,) = litert.get_input_details(), litert.get_output_details()
    for rows in (2, 3, 5, 9):
        x = torch.randn(rows, 4)
        expected = function(x).numpy()
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], expected, 1e-5, 1e-5)
        litert.resize_tensor_input(given["index"], x.shape)
        litert.allocate_tensors()
        litert.set_tensor(given["index"], x.numpy())
        litert.invoke()
        np.testing.assert_allclose(litert.get_tensor(made["index"]), expected, 1e-5, 1e-5)


def test_the_constructors_are_put_back() -> None:
    before = torch.FloatTensor, torch.Tensor.__new__
    tmconvert.trace(FUNCTIONS["a size"], torch.randn(3, 4))
    assert (torch.FloatTensor, torch.Tensor.__new__) == before
