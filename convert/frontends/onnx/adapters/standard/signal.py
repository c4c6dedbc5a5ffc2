"""Fourier transforms and what belongs to them. Complex numbers are a last axis of two elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, dtype_of, rank, reshaped, scalar
from tmconvert.ir.emitter import Emitter

OPERATORS = OperatorTable()
LARGEST = 1 << 26  # elements of a matrix that is stored


@OPERATORS.add("DFT", since=20)
def dft(g, input, dft_length=None, axis=None, *, inverse=0, onesided=0):
    place = -2 if axis is None else int(scalar(g, axis, "the axis of DFT"))
    return _transformed(g, input, dft_length, place, bool(inverse), bool(onesided))


@OPERATORS.add("DFT", since=17)
def dft17(g, input, dft_length=None, *, axis=1, inverse=0, onesided=0):
    return _transformed(g, input, dft_length, axis, bool(inverse), bool(onesided))


def _transformed(g: Emitter, x, length, axis: int, inverse: bool, onesided: bool) -> Any:
    place = axis_of(g, x, axis)
    real, imag = _parts(g, x)
    extent = g.type(real).shape[place]
    n = extent if length is None else int(scalar(g, length, "the length of DFT"))
    if inverse and onesided:  # of the non-negative frequencies, to real numbers
        count = n if length is not None else 2 * (extent - 1)
        made = g.call("tm::irfft", real, _or_zeros(g, real, imag), count, place, "backward")
        return reshaped(g, made, [*g.type(made).shape, 1])
    parts = g.call("tm::fft", real, imag, n, place, "backward", inverse, onesided)
    return _stacked(g, parts)


def _parts(g: Emitter, x) -> tuple[Any, Any]:
    """Returns real and imaginary part of [..., 2], or of [..., 1], which has no imaginary one."""
    last = rank(g, x) - 1
    size = g.type(x).shape[last]
    if size not in (1, 2):
        raise Refusal(f"the last axis of {g.type(x)} is not that of real and imaginary parts")
    parts = [g.call("aten::select", x, last, number) for number in range(size)]
    return parts[0], parts[1] if size == 2 else None


def _or_zeros(g, real, imag):
    return g.call("aten::mul", real, g.constant(0, g.type(real).dtype)) if imag is None else imag


def _stacked(g: Emitter, parts: Sequence[Any]) -> Any:
    columns = [reshaped(g, part, [*g.type(part).shape, 1]) for part in parts]
    return g.call("aten::cat", columns, g.type(columns[0]).rank - 1)


@OPERATORS.add("STFT")
def stft(g, signal, frame_step, window=None, frame_length=None, *, onesided=1):
    """[N, L, 1 or 2] -> [N, windows, frequencies, 2]."""
    if window is None and frame_length is None:
        raise Refusal("STFT has neither window nor frame_length")
    step = int(scalar(g, frame_step, "the step of STFT"))
    size = (
        g.type(window).shape[0] if frame_length is None else int(scalar(g, frame_length, "a length of STFT"))
    )
    if rank(g, signal) == 2:
        signal = reshaped(g, signal, [*g.type(signal).shape, 1])
    real, imag = _parts(g, signal)
    sides = bool(onesided)
    if imag is not None and sides:
        raise Refusal("one-sided frequencies of complex numbers are not supported", "export with onesided=0")
    made = [
        g.call("tm::stft", part, window, size, step, False, sides)
        for part in (real, imag)
        if part is not None
    ]
    parts = list(made[0])
    if imag is not None:  # F(a + ib) = F(a) + i F(b)
        parts = [g.call("aten::sub", made[0][0], made[1][1]), g.call("aten::add", made[0][1], made[1][0])]
    return _stacked(g, [g.call("aten::permute", part, [0, 2, 1]) for part in parts])


@OPERATORS.add("MelWeightMatrix")
def mel_weight_matrix(
    g, num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz, *, output_datatype=1
):
    """[frequencies, bins]: triangles, evenly spaced on the mel scale. Source: the page of the operator."""
    named = {
        "the number of bins": num_mel_bins,
        "the length of DFT": dft_length,
        "the sample rate": sample_rate,
        "the lower edge": lower_edge_hertz,
        "the upper edge": upper_edge_hertz,
    }
    bins, length, rate, low, high = (scalar(g, value, what) for what, value in named.items())
    if not 0 < bins * length <= LARGEST or not rate > 0:
        raise Refusal(f"MelWeightMatrix of {bins} bins, a DFT of {length} and a sample rate of {rate}")
    low_mel, high_mel = (2595 * np.log10(1 + edge / 700) for edge in (low, high))
    step = (high_mel - low_mel) / (bins + 2)
    hertz = 700 * (10 ** ((np.arange(bins + 2) * step + low_mel) / 2595) - 1)
    corners = ((length + 1) * hertz // rate).astype(np.int64)
    rows, columns = np.arange(length // 2 + 1), []
    for first, centre, last in zip(corners, corners[1:], corners[2:], strict=False):
        rising = (rows - first) / max(centre - first, 1)
        falling = (last - rows) / max(last - centre, 1)
        column = np.where((rows >= first) & (rows < centre), rising, 0)
        column = np.where((rows > centre) & (rows < last), falling, column)
        columns.append(np.where(rows == centre, 1, column))
    matrix = np.stack(columns, 1)
    return g.constant(matrix.astype(dtype_of(output_datatype)))
