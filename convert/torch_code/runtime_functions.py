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
    "_quantize": '''
def _quantize(
    x: Tensor, scale: list[float], zero_point: list[int], low: int, high: int, axis: int, dtype: torch.dtype
) -> Tensor:
    """The integers of a tensor; ``axis`` is that of the scales, -1 where there is one."""
    shape = [-1 if place == axis else 1 for place in range(x.ndim)]
    inverse = 1 / torch.tensor(scale, dtype=torch.float32, device=x.device).reshape(shape)
    zero = torch.tensor(zero_point, dtype=torch.float32, device=x.device).reshape(shape)
    return torch.clamp(torch.round(x * inverse) + zero, low, high).to(dtype)
''',
    "_remap": '''
def _remap(
    x: Tensor, places: Tensor, batch: Tensor | None, border: str, value: float, mode: str
) -> Tensor:
    """Samples images [N, C, H, W] at positions (x, y) in pixels, [K, h, w, 2]; image K is ``batch[K]``."""
    images = (torch.arange(len(places), device=x.device) if batch is None else batch).reshape(-1, 1, 1)
    pixels, size = x.permute(0, 2, 3, 1), x.shape[2:]
    total = torch.zeros_like(pixels[images, 0, 0]) * places[..., :1]
    for column, across in _remap_taps(places[..., 0], mode):
        for row, down in _remap_taps(places[..., 1], mode):
            taps = [_remap_tap(tap, n, border) for tap, n in ((row, size[0]), (column, size[1]))]
            inner = [torch.nan_to_num(tap).clamp(0, n - 1).long() for tap, n in zip(taps, size)]
            pixel = pixels[images, inner[0], inner[1]]
            if border == "constant":
                is_inside = torch.ones_like(places[..., 0], dtype=torch.bool)
                for tap, n in zip(taps, size):
                    is_inside = is_inside & (tap >= 0) & (tap < n)
                pixel = torch.where(is_inside[..., None], pixel, value)
            total = total + (across * down)[..., None] * pixel
    return total.permute(0, 3, 1, 2).to(x.dtype).contiguous()
''',
    "_remap_taps": '''
def _remap_taps(place: Tensor, mode: str) -> list[tuple[Tensor, Tensor]]:
    """The neighbours of positions along one axis, and their weights."""
    if mode == "nearest":
        return [(torch.round(place), torch.ones_like(place))]
    first = torch.floor(place)
    t = place - first
    if mode == "linear":
        return [(first, 1 - t), (first + 1, t)]
    weights = []
    for distance in (t + 1, t, 1 - t, 2 - t):
        near = (1.25 * distance - 2.25) * distance * distance + 1
        far = ((-0.75 * distance + 3.75) * distance - 6) * distance + 3
        weights.append(torch.where(distance <= 1, near, far))
    return [(first + number - 1, weight) for number, weight in enumerate(weights)]
''',
    "_remap_tap": '''
def _remap_tap(tap: Tensor, n: int, border: str) -> Tensor:
    """Folds taps outside of n pixels back, by OpenCV's rules."""
    if border == "replicate":
        return tap.clamp(0, n - 1)
    if border == "reflect":
        return torch.minimum(tap % (2 * n), 2 * n - 1 - tap % (2 * n))
    if border == "reflect_101":
        period = max(2 * n - 2, 1)
        return torch.minimum(tap % period, 2 * n - 2 - tap % period) if n > 1 else tap * 0
    return tap % n if border == "wrap" else tap
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
