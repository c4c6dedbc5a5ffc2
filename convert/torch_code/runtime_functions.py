"""Functions that are written into generated code where it calls them. The texts need torch only."""

from __future__ import annotations

import re

HELPERS: dict[str, str] = {
    "_round_half_away": '''
def _round_half_away(x: Tensor) -> Tensor:
    """Rounds to the nearest integer, halves away from zero."""
    whole = torch.trunc(x)
    return whole + torch.sign(x) * (torch.abs(x - whole) >= 0.5).to(x.dtype)
''',
    "_wrap_index": '''
def _wrap_index(x: Tensor, extent: int) -> Tensor:
    """Makes negative indices count from the end."""
    return torch.where(x < 0, x + extent, x)
''',
    "_repeat_indices": '''
def _repeat_indices(repeats: Tensor) -> Tensor:
    """Repeats each index as often as ``repeats`` has it."""
    return torch.repeat_interleave(repeats).to(torch.int64)
''',
    "_fft": '''
def _fft(
    real: Tensor,
    imag: Tensor | None = None,
    n: int = 0,
    dim: int = -1,
    norm: str = "backward",
    inverse: bool = False,
    onesided: bool = False,
) -> tuple[Tensor, Tensor]:
    """The real and the imaginary part of a Fourier transform."""
    if onesided and imag is None and not inverse:
        result = torch.fft.rfft(real, n, dim, norm)
    else:
        x = torch.complex(real, torch.zeros_like(real) if imag is None else imag)
        result = torch.fft.ifft(x, n, dim, norm) if inverse else torch.fft.fft(x, n, dim, norm)
        if onesided:
            result = result.narrow(dim, 0, n // 2 + 1)
    return result.real, result.imag
''',
    "_irfft": '''
def _irfft(real: Tensor, imag: Tensor, n: int, dim: int = -1, norm: str = "backward") -> Tensor:
    """The real inverse of half of a Fourier transform."""
    return torch.fft.irfft(torch.complex(real, imag), n, dim, norm)
''',
    "_stft": '''
def _stft(
    x: Tensor,
    window: Tensor | None,
    n_fft: int,
    hop_length: int,
    normalized: bool = False,
    onesided: bool = True,
) -> tuple[Tensor, Tensor]:
    """The real and the imaginary part of a short-time Fourier transform."""
    result = torch.stft(
        x, n_fft, hop_length, n_fft, window, False, "constant", normalized, onesided, return_complex=True
    )
    return result.real, result.imag
''',
}
_NAME = re.compile(r"(?<![\w.])_[a-z]\w*(?=\()")


def helpers_in(text: str) -> list[str]:
    """Returns the names of the helper functions that a text calls, those that they call included, sorted."""
    found: set[str] = set()
    waiting = [text]
    while waiting:
        for name in _NAME.findall(waiting.pop()):
            if name in HELPERS and name not in found:
                found.add(name)
                waiting.append(HELPERS[name])
    return sorted(found)
