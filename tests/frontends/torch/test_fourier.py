"""torch.fft, torch.stft and torch.istft."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert

from .harness import agrees, check
from .test_complex import of_complex

SIGNAL = torch.randn(2, 6, generator=torch.Generator().manual_seed(0))
IMAGE = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(1))
PAIRS = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (
            torch.fft.fft(x),
            torch.fft.fft(x, 4),
            torch.fft.fft(x, 9, norm="ortho"),
            torch.fft.ifft(x, dim=0),
        ),
        lambda x: (torch.fft.irfft(x), torch.fft.irfft(x, 7), torch.fft.irfft(x, 4, dim=0, norm="forward")),
        lambda x: (torch.fft.hfft(x), torch.fft.hfft(x, 5, norm="ortho"), torch.fft.fft(x.real), x.T.real),
        lambda x: (
            torch.fft.fft2(x),
            torch.fft.ifft2(x),
            torch.fft.fftn(x, dim=(0,)),
            torch.fft.ifftn(x, s=(2, 4)),
        ),
        lambda x: (torch.fft.irfft2(x), torch.fft.irfftn(x, s=(3, 6)), torch.fft.hfft2(x)),
        lambda x: (
            torch.fft.fftshift(x),
            torch.fft.ifftshift(x, dim=1),
            torch.fft.fftshift(x.real, dim=(0, 1)),
        ),
    ],
)
def test_of_complex_numbers(function: Callable[..., Any]) -> None:
    check(of_complex(function), PAIRS, tolerance=1e-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.view_as_real(torch.fft.rfft(x)),
        lambda x: torch.view_as_real(torch.fft.rfft(x, 8, dim=-2, norm="forward")),
        lambda x: torch.view_as_real(torch.fft.rfft2(x)),
        lambda x: torch.view_as_real(torch.fft.rfftn(x, norm="ortho")),
        lambda x: torch.view_as_real(torch.fft.ihfft(x).resolve_conj()),
        lambda x: torch.fft.irfft2(torch.fft.rfft2(x), s=x.shape[-2:]),
        lambda x: torch.fft.fft2(x).real + torch.fft.fftfreq(5) + torch.fft.rfftfreq(8, d=0.5),
        lambda x: torch.fft.fft((x * 10).long()).abs(),
    ],
)
def test_of_real_numbers(function: Callable[..., Any]) -> None:
    check(function, IMAGE, tolerance=1e-4)


WINDOW = torch.hann_window(16)


@pytest.mark.parametrize(
    "options",
    [
        {"window": torch.ones(16)},
        {"hop_length": 5, "window": WINDOW},
        {"win_length": 10, "window": torch.hann_window(10), "center": False},
        {"win_length": 9, "window": torch.ones(9), "pad_mode": "constant"},
        {"window": WINDOW, "normalized": True, "onesided": False, "pad_mode": "replicate"},
    ],
)
def test_stft(options: dict[str, Any]) -> None:
    x = torch.randn(2, 64, generator=torch.Generator().manual_seed(3))
    check(lambda x: torch.view_as_real(torch.stft(x, 16, return_complex=True, **options)), x, tolerance=1e-4)
    check(lambda x: x.stft(16, return_complex=True, **options).abs() ** 2, x[0], tolerance=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"window": WINDOW},
        {"hop_length": 5, "window": WINDOW, "length": 60},
        {
            "hop_length": 4,
            "win_length": 12,
            "window": torch.hamming_window(12),
            "normalized": True,
            "length": 70,
        },
        {"window": torch.ones(16), "onesided": False, "length": 40},
    ],
)
def test_istft(options: dict[str, Any]) -> None:
    x = torch.randn(2, 64, generator=torch.Generator().manual_seed(4))
    shared = {key: value for key, value in options.items() if key != "length"}

    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(x, 16, return_complex=True, **shared)
        return torch.istft(spectrum * 0.5, 16, **options)

    check(there_and_back, x, tolerance=1e-4)


@pytest.mark.parametrize("n", [8, 12, 20, 64, 100])
def test_parts_that_are_zero_are_exactly_zero(n: int) -> None:
    """The angle of the first and the last frequency of a real signal is 0 or pi, never -pi."""
    x = torch.randn(3, n)
    check(lambda x: torch.fft.rfft(x).angle(), x, tflite=True)
    check(lambda x: torch.fft.fft(x).angle()[:, [0, n // 2]], x, tflite=True)
    check(lambda x: torch.stft(x, n, n, center=False, return_complex=True).angle(), x, tflite=True)


def test_parts_that_are_zero_are_so_at_open_sizes(tmp_path: Path) -> None:
    def angles(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x).angle()

    sizes = {"x": {1: "n"}}
    tmconvert.to_onnx(
        angles, tmp_path / "model.onnx", example_inputs=[torch.randn(3, 12)], dynamic_shapes=sizes
    )
    for n in (10, 16, 24):
        agrees(angles, tmp_path, torch.randn(3, n))
