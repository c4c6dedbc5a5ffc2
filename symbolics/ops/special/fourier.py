"""tm::fft and tm::irfft along one axis, and tm::stft, on real and imaginary parts.

Products with matrices of cosines and sines, factored where those are large; the DFT of ONNX
Runtime 1.32 is slower, and exact to 1e-4 only for other sizes than powers of two. ``norm`` is torch's: what
divides by n, or by its root twice.
Source: torch.fft.fft, torch.fft.irfft, torch.stft.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms import fourier
from tmconvert.symbolics.idioms.dynamic_fourier import real_signal, transformed
from tmconvert.symbolics.op import FLOATS, Argument, Op, Tensor, boolean, choice, integer
from tmconvert.symbolics.results import normalized_axis
from tmconvert.symbolics.windows import gathered

Array = np.ndarray
NORMS = ("backward", "ortho", "forward")
LARGEST = 1 << 13  # of a transform of an open size, by a matrix of 2 n (n + 2) elements
LARGEST_MATRIX = 1 << 18  # elements of a constant matrix: up to here ONNX Runtime is faster with one
PIECES = 64  # of a frame


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
        Tensor("real", FLOATS), Tensor("imag", FLOATS, optional=True), *AXIS, boolean("inverse", False),
        boolean("onesided", False),
    ],
    result=_fft_result,
)  # fmt: skip
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


def _multiplied(g: Any, parts: list[Any], matrices: Sequence[Sequence[Array]], dim: int) -> list[Any]:
    """Multiplies concatenated ``parts`` along ``dim`` by the blocks ``matrices``: one result per column."""
    type_ = g.type(parts[0])
    axis = normalized_axis(dim, type_.rank)
    order = [i for i in range(type_.rank) if i != axis]
    used = len(matrices[0][0])
    rows = []
    for part in parts:
        part = g.call("aten::slice", part, axis, 0, used) if used < type_.shape[axis] else part
        rows.append(g.call("aten::permute", part, [*order, axis]))
    matrix = g.constant(np.block([list(row) for row in matrices]).astype(type_.dtype))
    product = g.call("aten::matmul", g.call("aten::cat", rows, type_.rank - 1), matrix)
    back, start, results = list(np.argsort([*order, axis]).tolist()), 0, []
    for block in matrices[0]:
        part = g.call("aten::slice", product, type_.rank - 1, start, start + block.shape[1])
        results.append(g.call("aten::permute", part, back))
        start += block.shape[1]
    return results


def _is_matrix(n: int, parts: int, used: int, results: int) -> bool:
    """Whether a transform is computed by one matrix, which is faster than factors where it is small."""
    return parts * used * results <= LARGEST_MATRIX or n <= fourier.DENSE


@fft.decompose
def fft_products(g, real, imag, n, dim, norm, inverse, onesided):
    if is_symbolic((n, g.type(real).shape[dim])):
        _limit(n)
        return transformed(g, real, imag, n, dim, norm, inverse, onesided)
    parts = [real] if imag is None else [real, imag]
    used, count = min(n, g.type(real).shape[dim]), n // 2 + 1 if onesided else n
    factor = _factor(n, norm, inverse)
    if _is_matrix(n, len(parts), used, 2 * count):
        matrices = fourier.blocks(used, count, n, inverse, factor)
        return _multiplied(g, parts, matrices[: len(parts)], dim)

    def transform(x: Any) -> Any:
        return fourier.transform(g, x, n, count, inverse=inverse, factor=factor)

    results = _along_last(g, parts, used, dim, transform)
    if imag is None and not fourier.has_exact_zeros(n):
        results[1] = _without_mirrors(g, results[1], dim, n)
    return results


def _without_mirrors(g: Any, imag: Any, dim: int, n: int) -> Any:
    """Sets the frequencies of a real signal that are their own mirror to 0."""
    index = np.arange(g.type(imag).shape[dim])
    shape = [1] * g.type(imag).rank
    shape[dim] = len(index)
    is_mirror = g.constant((index * 2 % n == 0).reshape(shape))
    return g.call("aten::where", is_mirror, g.constant(0, g.type(imag).dtype), imag)


@irfft.decompose
def irfft_products(g, real, imag, n, dim, norm):
    if is_symbolic((n, g.type(real).shape[dim])):
        _limit(n)
        return real_signal(g, real, imag, n, dim, norm)
    used = min(n // 2 + 1, g.type(real).shape[dim])
    index, factor = np.arange(used), _factor(n, norm, True)
    is_mirror = index * 2 % n == 0
    if _is_matrix(n, 2, used, n):
        rows = fourier.blocks(used, n, n, True, factor * np.where(is_mirror, 1, 2).reshape(-1, 1))
        return _multiplied(g, [real, imag], [[each] for each, _ in rows], dim)[0]
    weights = np.stack([np.where(is_mirror, 1, 2), np.where(is_mirror, 0, 2)])

    def transform(x: Any) -> Any:
        x = g.call("aten::mul", x, g.constant(weights.astype(g.type(x).dtype)))
        return fourier.transform(g, x, n, n, inverse=True, factor=factor, is_real=True)

    return _along_last(g, [real, imag], used, dim, transform)[0]


def _along_last(g: Any, parts: list[Any], used: int, dim: int, transform: Callable[[Any], Any]) -> list[Any]:
    """Applies ``transform`` to the first ``used`` elements of an axis, as one tensor [batch, parts, used]."""
    shape = list(g.type(parts[0]).shape)
    axis = normalized_axis(dim, len(shape))
    order = [*(i for i in range(len(shape)) if i != axis), axis]
    others = [shape[i] for i in order[:-1]]
    rows = []
    for part in parts:
        part = g.call("aten::slice", part, axis, 0, used) if used < shape[axis] else part
        part = g.call("aten::permute", part, order)
        rows.append(g.call("aten::reshape", part, [math.prod(others), 1, used]))
    made = transform(rows[0] if len(rows) == 1 else g.call("aten::cat", rows, 1))
    _, count, columns = g.type(made).shape
    back, results = list(np.argsort(order).tolist()), []
    for i in range(count):
        part = g.call("aten::slice", made, 1, i, i + 1) if count > 1 else made
        part = g.call("aten::reshape", part, [*others, columns])
        results.append(g.call("aten::permute", part, back))
    return results


def _limit(n: Any) -> None:
    if (n.example if isinstance(n, Dim) else n) > LARGEST:
        raise ValueError(f"a Fourier transform of an open number of elements, such as {n}, is too large")


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
        Tensor("x", FLOATS, ranks=(2,)), Tensor("window", FLOATS, optional=True, ranks=(1,)),
        integer("n_fft"), integer("hop_length"), boolean("normalized", False), boolean("onesided", True),
    ],
    result=_stft_result,
)  # fmt: skip
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
    """Windows that slide along a signal are a convolution; of large windows, transforms of frames."""
    count, norm = n_fft // 2 + 1 if onesided else n_fft, "ortho" if normalized else "backward"
    if not _is_matrix(n_fft, 1, n_fft, 2 * count):
        frames = _frames(g, x, n_fft, hop_length)
        frames = frames if window is None else g.call("aten::mul", frames, window)
        parts = g.call("tm::fft", frames, None, n_fft, -1, norm, False, onesided)
        return [g.call("aten::permute", part, [0, 2, 1]) for part in parts]
    (batch, length), dtype = g.type(x).shape, g.type(x).dtype
    waves = np.concatenate(fourier.blocks(count, n_fft, n_fft, False, _factor(n_fft, norm, False))[0])
    kernels = g.constant(waves.astype(dtype))
    kernels = kernels if window is None else g.call("aten::mul", kernels, window)
    kernels = g.call("aten::reshape", kernels, [2 * count, 1, n_fft])
    signal = g.call("aten::reshape", x, [batch, 1, length])
    result = g.call("aten::conv1d", signal, kernels, None, [hop_length])
    return [g.call("aten::slice", result, 1, i * count, (i + 1) * count) for i in (0, 1)]


def _frames(g: Any, x: Any, size: int, step: int) -> Any:
    """Frames [N, frames, size] of a signal [N, L], of pieces that start at multiples of one length."""
    piece = math.gcd(size, step)
    if size // piece > PIECES:
        return g.call("aten::unfold", x, 1, size, step)
    batch, length = g.type(x).shape
    count = (length - size) // step + 1
    last = (count - 1) * (step // piece)
    rows = last + size // piece
    x = g.call("aten::slice", x, 1, 0, rows * piece)
    x = g.call("aten::reshape", x, [batch, rows, piece])
    starts = range(size // piece)
    pieces = [g.call("aten::slice", x, 1, start, start + last + 1, step // piece) for start in starts]
    return g.call("aten::cat", pieces, 2)
