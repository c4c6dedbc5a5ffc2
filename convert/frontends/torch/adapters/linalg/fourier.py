"""Fourier transforms: torch.fft, torch.stft and torch.istft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.elementwise.complex import (
    aligned,
    conj,
    view_as_complex,
    view_as_real,
)
from tmconvert.frontends.torch.adapters.values import (
    axis_of,
    cast,
    floating,
    rank,
    reshaped,
    static_int,
    typed,
)
from tmconvert.ir.complex_values import Complex
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.symbolics.idioms.dynamic_fourier import frequencies

ATEN, COMPLEX = Table(), Table()
SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _declare(*names: str) -> Callable[[Any], Any]:
    """Declares a transform of real and of complex tensors."""

    def declare(adapter: Any) -> Any:
        ATEN.add(*names)(adapter)
        return COMPLEX.add(*names)(adapter)

    return declare


def _along(
    g: Emitter, x, n, dim: int, norm: str | None, *, inverse: bool = False, onesided: bool = False
) -> Complex:
    """Transforms one axis."""
    ((real, imag),) = aligned(g, x)
    dim = axis_of(g, real, dim)
    n = g.type(real).shape[dim] if n is None or n == -1 else static_int(g, n)
    return Complex(*g.call("tm::fft", real, imag, n, dim, norm or "backward", inverse, onesided))


def _real_along(g: Emitter, x, n, dim: int, norm: str | None) -> Any:
    """Computes the real signal of its non-negative frequencies."""
    ((real, imag),) = aligned(g, x)
    dim = axis_of(g, real, dim)
    n = 2 * (g.type(real).shape[dim] - 1) if n is None or n == -1 else static_int(g, n)
    imag = g.call("aten::mul", real, g.constant(0, g.type(real).dtype)) if imag is None else imag
    return g.call("tm::irfft", real, imag, n, dim, norm or "backward")


_declare("fft_fft")(lambda g, input, n=None, dim=-1, norm=None: _along(g, input, n, dim, norm))
_declare("fft_ifft")(lambda g, input, n=None, dim=-1, norm=None: _along(g, input, n, dim, norm, inverse=True))


@ATEN.add("fft_rfft")
def rfft(g, input, n=None, dim=-1, norm=None):
    return _along(g, input, n, dim, norm, onesided=True)


_declare("fft_irfft")(lambda g, input, n=None, dim=-1, norm=None: _real_along(g, input, n, dim, norm))


@_declare("fft_hfft")
def hfft(g: Emitter, input, n=None, dim: int = -1, norm: str | None = None) -> Any:
    return _real_along(g, conj(g, input), n, dim, SWAPPED[norm or "backward"])


@ATEN.add("fft_ihfft")
def ihfft(g, input, n=None, dim=-1, norm=None):
    return conj(g, _along(g, input, n, dim, SWAPPED[norm or "backward"], onesided=True))


# ---- several axes: one after another


def _axes(g: Emitter, x: Any, s: Any, dim: Any) -> list[tuple[int, Any]]:
    """Returns (axis, length) of each axis to transform; length None keeps the extent."""
    real = x.real if isinstance(x, Complex) else x
    s, dim = ([each] if isinstance(each, int) else each for each in (s, dim))
    if dim is None:
        count = rank(g, real) if s is None else len(s)
        dim = range(-count, 0)
    dims = [axis_of(g, real, axis) for axis in dim]
    return list(zip(dims, [None] * len(dims) if s is None else s, strict=True))


def _of_axes(g: Emitter, x, s, dim, norm: str | None, inverse: bool) -> Any:
    for axis, n in _axes(g, x, s, dim):
        x = _along(g, x, n, axis, norm, inverse=inverse)
    return x


@_declare("fft_fftn")
def fftn(g: Emitter, input, s=None, dim=None, norm: str | None = None) -> Any:
    return _of_axes(g, input, s, dim, norm, inverse=False)


@_declare("fft_ifftn")
def ifftn(g: Emitter, input, s=None, dim=None, norm: str | None = None) -> Any:
    return _of_axes(g, input, s, dim, norm, inverse=True)


@ATEN.add("fft_rfftn")
def rfftn(g, input, s=None, dim=None, norm=None):
    *others, (last, n) = _axes(g, input, s, dim)
    x = _along(g, input, n, last, norm, onesided=True)
    for axis, length in others:
        x = _along(g, x, length, axis, norm)
    return x


@_declare("fft_irfftn")
def irfftn(g: Emitter, input, s=None, dim=None, norm: str | None = None) -> Any:
    *others, (last, n) = _axes(g, input, s, dim)
    x = input
    for axis, length in others:
        x = _along(g, x, length, axis, norm, inverse=True)
    return _real_along(g, x, n, last, norm)


@_declare("fft_hfftn")
def hfftn(g: Emitter, input, s=None, dim=None, norm: str | None = None) -> Any:
    return irfftn(g, conj(g, input), s, dim, SWAPPED[norm or "backward"])


@ATEN.add("fft_ihfftn")
def ihfftn(g, input, s=None, dim=None, norm=None):
    return conj(g, rfftn(g, input, s, dim, SWAPPED[norm or "backward"]))


for _table in (ATEN, COMPLEX):
    for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        if f"fft_{_name}n" in _table:

            def _of_two(
                g: Emitter, input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None,
                _adapter: Any = _table[f"fft_{_name}n"],
            ) -> Any:  # fmt: skip
                return _adapter(g, input, s, dim, norm)

            _table.add(f"fft_{_name}2")(_of_two)


# ---- frequencies


def _shifted(g: Emitter, x: Any, dim: Any, is_back: bool) -> Any:
    shape = g.type(x).shape
    dims = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = [axis_of(g, x, axis) for axis in dims]
    shifts = [(shape[axis] + 1) // 2 if is_back else shape[axis] // 2 for axis in axes]
    return g.call("aten::roll", x, shifts, axes)


ATEN.add("fft_fftshift")(lambda g, input, dim=None: _shifted(g, input, dim, is_back=False))
ATEN.add("fft_ifftshift")(lambda g, input, dim=None: _shifted(g, input, dim, is_back=True))


for _name, _frequencies in {"fftfreq": np.fft.fftfreq, "rfftfreq": np.fft.rfftfreq}.items():

    def _frequency(g: Emitter, n, d: float = 1.0, *, dtype=None, _of=_frequencies, **kwargs) -> Any:
        n = static_int(g, n)
        if isinstance(n, Dim):
            return typed(g, frequencies(g, n, d, onesided=_of is np.fft.rfftfreq), dtype)
        return typed(g, g.constant(_of(n, d).astype(np.float32)), dtype)

    ATEN.add(f"fft_{_name}")(_frequency)


# ---- spectrograms


@ATEN.add("stft")
def stft(
    g, input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect",
    normalized=False, onesided=None, return_complex=None, align_to_window=None,
):  # fmt: skip
    """Shapes: [N, L] or [L] -> [N, frequencies, frames] or [frequencies, frames]."""
    x = floating(g, input)
    is_single = rank(g, x) == 1
    x = reshaped(g, x, [1, *g.type(x).shape]) if is_single else x
    if center:
        x = g.call("aten::pad", x, [0, 0, n_fft // 2, n_fft // 2], pad_mode)
    whole = _window(g, window, win_length, n_fft, g.type(x).dtype)
    parts = g.call(
        "tm::stft",
        x,
        whole,
        n_fft,
        hop_length or n_fft // 4,
        _is_normalized(normalized),
        onesided is not False,
    )
    if is_single:
        parts = [reshaped(g, part, g.type(part).shape[1:]) for part in parts]
    result = Complex(*parts)
    return result if return_complex else view_as_real(g, result)


def _window(g: Emitter, window, win_length: int | None, n_fft: int, dtype: np.dtype) -> Any:
    """Returns the window, zero-padded to ``n_fft`` elements; None for a window of ones."""
    length = n_fft if win_length is None else win_length
    if isinstance(window, Complex):
        raise Refusal("a complex window is not supported")
    if window is None:
        if length == n_fft:
            return None
        window = g.constant(np.ones(length), dtype)
    before = (n_fft - length) // 2
    window = cast(g, window, dtype)
    return window if length == n_fft else g.call("aten::pad", window, [before, n_fft - length - before])


def _is_normalized(normalized) -> bool:
    if not isinstance(normalized, bool):
        raise Refusal(f"normalized={normalized!r} is not supported")
    return normalized


@_declare("istft")
def istft(
    g: Emitter, input, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window=None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """Shapes: [N, frequencies, frames] or [frequencies, frames] -> [N, L] or [L].

    The frames of each window, added where they overlap, over the sum of the squares of the windows there.
    """
    if return_complex:
        raise Refusal("istft with return_complex=True is not supported")
    x = input if isinstance(input, Complex) else view_as_complex(g, input)
    is_single = rank(g, x.real) == 2
    if is_single:
        x = Complex(*(reshaped(g, part, [1, *g.type(part).shape]) for part in (x.real, x.imag)))
    (_, frequencies, count), dtype = g.type(x.real).shape, g.type(x.real).dtype
    norm = "ortho" if _is_normalized(normalized) else "backward"
    if frequencies != n_fft if onesided is None else onesided:
        frames = _real_along(g, x, n_fft, 1, norm)
    else:
        frames = _along(g, x, n_fft, 1, norm, inverse=True).real
    whole = _window(g, window, win_length, n_fft, dtype)
    whole = g.constant(np.ones(n_fft), dtype) if whole is None else whole
    hop = hop_length or n_fft // 4
    start, total = n_fft // 2 if center else 0, n_fft + hop * (count - 1)
    end = total - start if length is None else start + length
    result = _unwindowed(g, frames, reshaped(g, whole, [1, n_fft, 1]), hop, start, min(end, total))
    if end > total:
        result = g.call("aten::pad", result, [0, 0, 0, end - total])
    return reshaped(g, result, g.type(result).shape[1:]) if is_single else result


def _unwindowed(g: Emitter, frames, window, hop: int, start: int, end: int) -> Any:
    """Computes the signal whose ``frames`` [N, n, frames] were multiplied by ``window`` [1, n, 1]."""
    _, n, count = g.type(frames).shape
    squares = g.call("aten::expand", g.call("aten::mul", window, window), [1, n, count])
    sums = (_overlapping(g, each, hop) for each in (g.call("aten::mul", frames, window), squares))
    return g.call("aten::div", *(g.call("aten::slice", each, 1, start, end) for each in sums))


def _overlapping(g: Emitter, frames, hop: int) -> Any:
    """Overlap-add: [N, n, frames] to [N, n + hop * (frames - 1)], with a frame every ``hop`` elements."""
    batch, n, count = g.type(frames).shape
    total = n + hop * (count - 1)
    added = g.call("aten::col2im", frames, [1, total], [1, n], [1, 1], [0, 0], [1, hop])
    return reshaped(g, added, [batch, total])
