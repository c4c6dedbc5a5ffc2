"""Fourier transforms that are too large for one matrix: factors, and convolutions for large primes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert

from .harness import agrees, check

SIZES = [512, 525, 521, 1018, 1200]  # 521 is a prime, 1018 twice a prime


def _signal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def _complex(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x[0], x[1])


def _real(*results: torch.Tensor) -> list[torch.Tensor]:
    return [torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in results]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: _real(torch.fft.rfft(x[0]), torch.fft.irfft(_complex(x))),
        lambda x: _real(torch.fft.fft(_complex(x), norm="ortho"), torch.fft.fft(x[1])),
    ],
)
def test_sizes(function: Callable[..., Any], n: int) -> None:
    check(function, _signal(2, 2, n), tolerance=1e-4, tflite=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: _real(torch.fft.ifft(_complex(x), 525, dim=0), torch.fft.fft(_complex(x), 701, dim=0)),
        lambda x: _real(
            torch.fft.irfft(_complex(x), 1050, 0), torch.fft.irfft(_complex(x), 1301, 0, "forward")
        ),
        lambda x: _real(torch.fft.rfft(x[0], 521, dim=0), torch.fft.rfft(x[1], 1024, dim=0)),
        lambda x: _real(torch.fft.hfft(_complex(x), dim=0), torch.fft.ihfft(x[0], dim=0, norm="ortho")),
        lambda x: _real(torch.fft.fft2(_complex(x)), torch.fft.ifftn(_complex(x), norm="forward")),
        lambda x: torch.fft.irfft2(torch.fft.rfft2(x, (528, 3), dim=(1, 2)), (528, 3), dim=(1, 2)),
    ],
)
def test_forms(function: Callable[..., Any]) -> None:
    check(function, _signal(2, 600, 3), tolerance=1e-3, tflite=True)


@pytest.mark.parametrize(("n", "hop"), [(512, 128), (600, 250), (521, 100), (1024, 1023)])
def test_spectrograms(n: int, hop: int) -> None:
    window = torch.hann_window(n)

    def spectrum(x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.stft(x, n, hop, window=window, return_complex=True))

    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        found = torch.stft(x, n, n // 4, window=window, return_complex=True)
        return torch.istft(found * 0.5, n, n // 4, window=window)

    check(spectrum, _signal(2, 3000), tolerance=1e-3, tflite=True)
    check(there_and_back, _signal(2, 3000), tolerance=1e-5)


@pytest.mark.parametrize("n", [512, 514, 525, 700, 1018])
def test_parts_that_are_zero_are_exactly_zero(n: int) -> None:
    """The angle of the first and the last frequency of a real signal is 0 or pi, never -pi."""
    x = _signal(3, n)
    check(lambda x: torch.fft.rfft(x).angle()[:, [0, n // 2 if n % 2 == 0 else 0]], x, tflite=True)


@pytest.mark.parametrize("n", [4096, 4093, 3563])
def test_constants_grow_with_the_size(n: int, tmp_path: Path) -> None:
    def filtered(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x).abs()

    paths = [tmp_path / "model.onnx", tmp_path / "model.tflite"]
    tmconvert.to_onnx(filtered, paths[0], example_inputs=[_signal(1, n)], opset=11)
    tmconvert.to_tflite(filtered, paths[1], example_inputs=[_signal(1, n)])
    assert all(path.stat().st_size < 32 * n * 4 for path in paths)


def test_a_batch_and_a_length_may_be_open(tmp_path: Path) -> None:
    def filtered(x: torch.Tensor) -> torch.Tensor:
        found = torch.stft(x, 600, 150, return_complex=True)
        return torch.fft.irfft(torch.fft.rfft(found.abs(), dim=1) * 0.5, dim=1)

    sizes = {"x": {0: "batch", 1: "length"}}
    tmconvert.to_onnx(
        filtered, tmp_path / "model.onnx", example_inputs=[_signal(2, 3000)], dynamic_shapes=sizes
    )
    for shape in ((1, 2000), (3, 4100)):
        agrees(filtered, tmp_path, _signal(*shape))
