"""tm::fft and tm::irfft along one axis, and tm::stft, on real and imaginary parts.

Products with matrices of cosines and sines. ``norm`` is torch's: what divides by n, or by its root twice.
Source: torch.fft.fft, torch.fft.irfft, torch.stft.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.dynamic_fourier import real_signal, transformed
from tmconvert.symbolics.op import FLOATS, Argument, Op, Tensor, boolean, choice, integer
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.windows import gathered

Array = np.ndarray
NORMS = ("backward", "ortho", "forward")
LARGEST = 1 << 13  # of a transform said by a matrix, which has 2 n (n + 2) elements


def _factor(n: int, norm: str, inverse: bool) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse == (norm == "backward") else 1.0


def _resized(shape: tuple[int, ...], dim: int, extent: int) -> tuple[int, ...]:
    axis = normalized_axis(dim, len(shape))
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _checked(real: TensorType, imag: TensorType | None, n: int) -> None:
    if (imag is not None and imag != real) or n < 1:
        raise ValueError(f"a transform of {n} elements of {real} and {imag} is not valid")


def _fft_result(
    real: TensorType, imag: TensorType | None, n: int, dim: int, norm: str, inverse: bool, onesided: bool
) -> list[TensorType]:
    _checked(real, imag, n)
    return [TensorType(real.dtype, _resized(real.shape, dim, n // 2 + 1 if onesided else n))] * 2


def _irfft_result(real: TensorType, imag: TensorType, n: int, dim: int, norm: str) -> TensorType:
    _checked(real, imag, n)
    return TensorType(real.dtype, _resized(real.shape, dim, n))


AXIS: list[Argument] = [integer("n"), integer("dim", -1), choice("norm", NORMS, "backward")]
fft = Op(
    "tm::fft",
    args=[
        *(Tensor("real", FLOATS), Tensor("imag", FLOATS, optional=True), *AXIS),
        *(boolean("inverse", False), boolean("onesided", False)),
    ],
    result=_fft_result,
)
irfft = Op("tm::irfft", args=[Tensor("real", FLOATS), Tensor("imag", FLOATS), *AXIS], result=_irfft_result)


@fft.reference
def fft_ref(
    real: Array, imag: Array | None, n: int, dim: int, norm: str, inverse: bool, onesided: bool
) -> list[Array]:
    """The axis is cropped or zero-padded at the end to ``n`` elements."""
    x = real if imag is None else real + 1j * imag.astype(np.float64)
    transform: Any = np.fft.ifft if inverse else np.fft.fft
    y = transform(x, n, dim, norm)
    if imag is None:  # the two frequencies that are their own mirror are real, without a sign of their 0
        np.moveaxis(y, dim, 0).imag[:: n if n % 2 else n // 2] = 0.0
    y = y.take(range(n // 2 + 1), dim) if onesided else y
    return [part.astype(real.dtype) for part in (y.real, y.imag)]


@irfft.reference
def irfft_ref(real: Array, imag: Array, n: int, dim: int, norm: str) -> Array:
    """Inverse transform of the non-negative frequencies; the negative ones are their conjugates."""
    transform: Any = np.fft.irfft
    return transform(real + 1j * imag.astype(np.float64), n, dim, norm).astype(real.dtype)


def _angles(rows: int, columns: int, n: int) -> tuple[Array, Array]:
    """Cosines and sines of 2 pi i j / n, with i j reduced modulo n first.

    Those of quarter turns are exactly 0, 1 and -1, as in PyTorch, where an imaginary part of 0 is exact.
    """
    steps = np.outer(np.arange(rows), np.arange(columns)) % n
    angles = steps * (2 * np.pi / n)
    cosines, sines = np.cos(angles), np.sin(angles)
    quarters, rest = np.divmod(steps * 4, n)
    for table, values in ((cosines, (1.0, 0.0, -1.0, 0.0)), (sines, (0.0, 1.0, 0.0, -1.0))):
        table[rest == 0] = np.array(values)[quarters[rest == 0]]
    return cosines, sines


def _multiplied(g: Any, parts: list[Any], matrices: list[list[Array]], dim: int) -> list[Any]:
    """Multiplies concatenated ``parts`` along ``dim`` by the blocks ``matrices``: one result per column."""
    type_ = g.type(parts[0])
    axis = normalized_axis(dim, type_.rank)
    order = [i for i in range(type_.rank) if i != axis]
    used = len(matrices[0][0])
    rows = []
    for part in parts:
        part = g.call("aten::slice", part, axis, 0, used) if used < type_.shape[axis] else part
        rows.append(g.call("aten::permute", part, [*order, axis]))
    matrix = g.constant(np.block(matrices).astype(type_.dtype))
    product = g.call("aten::matmul", g.call("aten::cat", rows, type_.rank - 1), matrix)
    back, start, results = list(np.argsort([*order, axis]).tolist()), 0, []
    for block in matrices[0]:
        part = g.call("aten::slice", product, type_.rank - 1, start, start + block.shape[1])
        results.append(g.call("aten::permute", part, back))
        start += block.shape[1]
    return results


def _limited(n: Any) -> None:
    if (n.example if isinstance(n, Dim) else n) > LARGEST:
        raise ValueError(f"a Fourier transform of {n} elements is too large for a matrix")


@fft.decompose
def fft_matrix(g, real, imag, n, dim, norm, inverse, onesided):
    _limited(n)
    if is_symbolic((n, g.type(real).shape[dim])):
        return transformed(g, real, imag, n, dim, norm, inverse, onesided)
    used = min(n, g.type(real).shape[dim])
    cosines, sines = _angles(used, n // 2 + 1 if onesided else n, n)
    sines = sines if inverse else 0.0 - sines  # so that no zero is negative
    factor = _factor(n, norm, inverse)
    matrices = [[cosines * factor, sines * factor], [0.0 - sines * factor, cosines * factor]]
    parts = [real] if imag is None else [real, imag]
    return _multiplied(g, parts, matrices[: len(parts)], dim)


@irfft.decompose
def irfft_matrix(g, real, imag, n, dim, norm):
    _limited(n)
    if is_symbolic((n, g.type(real).shape[dim])):
        return real_signal(g, real, imag, n, dim, norm)
    used = min(n // 2 + 1, g.type(real).shape[dim])
    cosines, sines = _angles(used, n, n)
    twice = np.where((np.arange(used) == 0) | (np.arange(used) * 2 == n), 1, 2)
    weights = twice.reshape(-1, 1) * _factor(n, norm, True)
    return _multiplied(g, [real, imag], [[cosines * weights], [0.0 - sines * weights]], dim)[0]


def _stft_result(
    x: TensorType, window: TensorType | None, n_fft: int, hop_length: int, normalized: bool, onesided: bool
) -> list[TensorType]:
    if n_fft < 1 or hop_length < 1 or x.shape[1] < n_fft or (window is not None and window.shape != (n_fft,)):
        raise ValueError(f"windows {window} of n_fft {n_fft} with hop_length {hop_length} do not fit {x}")
    frames = (x.shape[1] - n_fft) // hop_length + 1
    return [TensorType(x.dtype, (x.shape[0], n_fft // 2 + 1 if onesided else n_fft, frames))] * 2


stft = Op(
    "tm::stft",
    args=[
        *(Tensor("x", FLOATS, ranks=(2,)), Tensor("window", FLOATS, optional=True, ranks=(1,))),
        *(integer("n_fft"), integer("hop_length"), boolean("normalized", False), boolean("onesided", True)),
    ],
    result=_stft_result,
)
OPS = [fft, irfft, stft]


@stft.reference
def stft_ref(
    x: Array, window: Array | None, n_fft: int, hop_length: int, normalized: bool, onesided: bool
) -> list[Array]:
    """Shapes: x [N, L] -> [N, frequencies, windows]. torch.stft with its padding done before."""
    frames = gathered(x, [n_fft], [hop_length], [1])
    frames = frames if window is None else frames * window
    norm = "ortho" if normalized else "backward"
    return [part.swapaxes(1, 2) for part in fft_ref(frames, None, n_fft, -1, norm, False, onesided)]


@stft.decompose
def stft_convolution(g, x, window, n_fft, hop_length, normalized, onesided):
    """Windows that slide along a signal are a convolution."""
    _limited(n_fft)
    (batch, length), dtype = g.type(x).shape, g.type(x).dtype
    waves = np.concatenate(_angles(n_fft // 2 + 1 if onesided else n_fft, n_fft, n_fft))
    waves[len(waves) // 2 :] = 0.0 - waves[len(waves) // 2 :]
    waves *= _factor(n_fft, "ortho" if normalized else "backward", False)
    kernels = g.constant(waves.astype(dtype))
    kernels = kernels if window is None else g.call("aten::mul", kernels, window)
    kernels = g.call("aten::reshape", kernels, [len(waves), 1, n_fft])
    signal = g.call("aten::reshape", x, [batch, 1, length])
    result = g.call("aten::conv1d", signal, kernels, None, [hop_length])
    half = len(waves) // 2
    return [g.call("aten::slice", result, 1, i * half, (i + 1) * half) for i in (0, 1)]
