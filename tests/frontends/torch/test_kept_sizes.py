"""Sizes that stay open in functions whose operators, or whose Python, have them as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn

import tmconvert
from tmconvert.targets.registry import runtime_for

SEQUENCE, IMAGE = (2, 8, 4), (1, 2, 9, 10)


def _frames(x: torch.Tensor) -> torch.Tensor:
    x = x.flatten(1)
    count = (x.shape[1] - 8) // 4 + 1
    return x.as_strided((x.shape[0], count, 8), (x.stride(0), 4, 1))


def _written(x: torch.Tensor) -> torch.Tensor:
    made = torch.autograd.Variable(torch.zeros(x.shape[1], 4))
    made[:, 0] = x[0, :, 1]
    return made + torch.autograd.Variable(x * 2)


def _batch_of_images(x: torch.Tensor) -> torch.Tensor:
    rows = int(math.ceil(float(x.shape[1]) / 32.0) * 32.0)
    made = x.new_full((2, rows, 4), 0)
    made[:, : x.shape[1]].copy_(x)
    return made


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 3, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        packed = rnn.pack_padded_sequence(x, [x.shape[1]] * x.shape[0], batch_first=True)
        return rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True, total_length=x.shape[1])[0]


class Upsampled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.ConvTranspose1d(4, 3, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.mT[..., ::2], output_size=[x.shape[1]])


class Projected(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 5, proj_size=2, bidirectional=True, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def _long_kernel(x: torch.Tensor, **options: Any) -> torch.Tensor:
    kernel = torch.linspace(0.5, 0.9, 4)[:, None, None] ** torch.arange(x.shape[1])
    return F.conv1d(x.mT, kernel, groups=4, **options)


def _odd(x: torch.Tensor) -> list[int]:
    return [size % 2 for size in x.shape[2:]]


OF_SEQUENCES: dict[str, Callable[..., Any]] = {
    "frames": _frames,
    "pdist": lambda x: F.pdist(x[0]),
    "combinations": lambda x: torch.combinations(x[0, :, 0], with_replacement=True),
    "cartesian_prod": lambda x: torch.cartesian_prod(x[0, :, 0], torch.arange(3.0)),
    "vander": lambda x: torch.vander(x[0, :, 0]),
    "vander, increasing": lambda x: torch.vander(x[0, :, 0] - 1, 3, increasing=True),
    "Variable": _written,
    "float": _batch_of_images,
    "int of a share": lambda x: x[:, : int(x.shape[1] * 6 / max(x.shape[1], 4)) + 1],
    "packed": Packed,
    "output_size": Upsampled,
    "a kernel": _long_kernel,
    "a kernel and padding": lambda x: _long_kernel(x, padding=x.shape[1] - 1),
    "a kernel and padding as needed": lambda x: _long_kernel(x, padding="same"),
    "padding": lambda x: F.conv1d(x.mT, torch.ones(3, 4, 2), padding=x.shape[1] // 2, stride=2),
    "proj_size": Projected,
}
OF_IMAGES: dict[str, Callable[..., Any]] = {
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2, padding=_odd(x)),
    "avg_pool2d of its elements": lambda x: F.avg_pool2d(x, 2, padding=_odd(x), count_include_pad=False),
    "max_pool2d": lambda x: F.max_pool2d(x - 2, 2, padding=_odd(x)),
}


def _is_right(
    function: Callable[..., Any], shape: tuple[int, ...], axis: int, others: tuple[int, ...], path: Path
) -> None:
    model = function().eval() if isinstance(function, type) else function
    target = path.suffix[1:]
    torch.manual_seed(0)
    options = {"example_inputs": (torch.rand(shape),), "dynamic_shapes": {"x": {axis: "n"}}}
    layouts = {"io_layout": "source"} if target == "tflite" else {}
    report = getattr(tmconvert, f"to_{target}")(model, path, **options, **layouts)
    assert report.inputs[0]["shape"] == [*shape[:axis], "n", *shape[axis + 1 :]]
    runtime = runtime_for(target, path)
    assert runtime is not None
    for size in others:
        x = torch.rand(*shape[:axis], size, *shape[axis + 1 :])
        (found,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])
        np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", OF_SEQUENCES)
def test_sizes_of_sequences_stay_open(name: str, target: str, tmp_path: Path) -> None:
    _is_right(OF_SEQUENCES[name], SEQUENCE, 1, (2, 7, 33), tmp_path / f"model.{target}")


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", OF_IMAGES)
def test_padding_of_windows_stays_open(name: str, target: str, tmp_path: Path) -> None:
    _is_right(OF_IMAGES[name], IMAGE, 2, (4, 7, 16), tmp_path / f"model.{target}")
