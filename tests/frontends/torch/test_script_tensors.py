"""Tensors that scripts make of numbers of Python, and Fourier transforms in scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert
from tests.frontends.torch.harness import agrees, check
from tmconvert.errors import UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")

X = torch.tensor([0.5, -1.5])


def floats(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor([3.0, 4.0])


def nested(x: torch.Tensor) -> torch.Tensor:
    return x + torch.tensor([[1, 2], [3, 4]])


def typed(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor([1, 2], dtype=torch.float64)


def mask(x: torch.Tensor) -> torch.Tensor:
    return x[torch.tensor([True, False])]


def as_tensor(x: torch.Tensor) -> torch.Tensor:
    return x * torch.as_tensor([3.0, 4.0])


def of_size(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor([x.size(0), 2]) + torch.tensor(x.size(0))


def appended(x: torch.Tensor) -> torch.Tensor:
    numbers = [0.5]
    for i in range(1):
        numbers.append(float(i) + 1.5)
    return x * torch.tensor(numbers)


def written(x: torch.Tensor) -> torch.Tensor:
    factors = torch.tensor([1.0, 2.0])
    factors[0] = 5.0
    return x * factors


def filled(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor([3.0, 4.0]) + torch.zeros(2) + torch.full([2], 2.5) + torch.empty(2).fill_(1.0)


FUNCTIONS: list[Callable[..., Any]] = [
    *(floats, nested, typed, mask, as_tensor, of_size, appended, written, filled)
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_scripts_make_tensors_of_numbers(function: Callable[..., Any]) -> None:
    script = torch.jit.script(function)
    check(script, X)
    check(lambda x: script(x) + 1, X)


@pytest.mark.parametrize("function", [floats, typed, as_tensor, appended, written])
def test_scripts_make_tensors_of_numbers_at_open_sizes(function: Callable[..., Any], tmp_path: Path) -> None:
    script = torch.jit.script(function)
    sizes = {"x": {0: "batch"}}
    x = torch.randn(3, 2)
    tmconvert.to_onnx(script, tmp_path / "model.onnx", example_inputs=[x], dynamic_shapes=sizes)
    agrees(script, tmp_path, torch.randn(5, 2))


def test_elements_of_data_are_refused() -> None:
    @torch.jit.script
    def of_data(x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor([float(x[0].item()), 2.0])

    with pytest.raises(UnsupportedError, match="item"):
        tmconvert.trace(of_data, X)


def test_fourier_transforms_in_scripts() -> None:
    @torch.jit.script
    def spectra(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        back = torch.fft.irfft(torch.fft.rfft(x) * 2)
        frames = torch.stft(x, 8, 2, return_complex=True, center=False)
        return torch.fft.fft(x).abs(), back, torch.view_as_real(frames)

    check(spectra, torch.randn(3, 16))
