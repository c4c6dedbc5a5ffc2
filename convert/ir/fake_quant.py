"""Fake quantization of arrays: quantize and dequantize; arrays that know their integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tmconvert.ir.types import QParams

# Brings an array to the grid of parameters: the numbers that it stands for, after rounding.
Rounding = Callable[[np.ndarray, QParams], np.ndarray]
# ``QParams.source`` of fake quantization by PyTorch, which rounds halves to even
PYTORCH = "PyTorch"
# that of QuantizeLinear, which divides by the scale and rounds halves to even
ONNX = "ONNX"


class QuantizedArray(np.ndarray):
    """An array with the QParams of its tensor. Arrays computed from it, including views, have no QParams."""

    qparams: QParams | None

    def __array_finalize__(self, other: object) -> None:
        self.qparams = None


def with_qparams(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """Returns the same values annotated with QParams."""
    marked = np.asarray(array).view(QuantizedArray)
    marked.qparams = qparams
    return marked


class IntegerMatrix(NamedTuple):
    """A matrix ``(values - zero_point) * scale`` of shape [N, K].

    ``values`` are uint8 or int8. ``scale`` and ``zero_point`` are of shape [N, blocks]; a ``zero_point`` of
    floats is a number that need not be an integer, None stands for 0. ``order`` has the column of the matrix
    for each of ``values``, where these are stored in another order.
    """

    values: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | None = None
    order: np.ndarray | None = None

    def restored(self) -> np.ndarray:
        """Returns the matrix in float32."""
        rows, blocks = self.scale.shape
        parts = self.values.reshape(rows, blocks, -1).astype(np.float32)
        if self.zero_point is not None:
            parts -= self.zero_point[..., None].astype(np.float32)
        parts *= self.scale[..., None]
        found = parts.reshape(rows, -1)
        if self.order is None:
            return found
        made = np.empty_like(found)
        made[:, self.order] = found
        return made


class RestoredArray(np.ndarray):
    """A float32 array with the integers that it was computed from; arrays computed from it have none."""

    integers: IntegerMatrix | None

    def __array_finalize__(self, other: object) -> None:
        self.integers = None


def with_integers(array: np.ndarray, integers: IntegerMatrix) -> np.ndarray:
    """Returns the same elements annotated with the integers."""
    marked = np.asarray(array).view(RestoredArray)
    marked.integers = integers
    return marked


def fake_quantize(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """scale * (clip(round(x / scale) + zero_point) - zero_point), all in float32, halves away from zero."""
    scale, zero_point = _columns(array, qparams)
    with np.errstate(all="ignore"):
        steps = quantize(array, qparams)
        return np.asarray((steps - zero_point) * scale).astype(array.dtype, copy=False)


def quantize(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """clip(round(x / scale) + zero_point): integers as float32, halves away from zero."""
    scale, zero_point = _columns(array, qparams)
    with np.errstate(all="ignore"):
        steps = round_half_away(np.asarray(array, np.float32) / scale) + zero_point
        return np.asarray(np.clip(steps, np.float32(qparams.quant_min), np.float32(qparams.quant_max)))


def finest_scales(largest: np.ndarray) -> np.ndarray:
    """Returns float32 scales for integers in [-127, 127] by the largest weights of channels, which are >= 0.

    A channel of zeros has the smallest scale of the others, as a bias has the scale of its weights.
    """
    some = largest[largest > 0]
    scales = np.where(largest > 0, largest, some.min() if some.size else 127) / np.float32(127)
    return np.asarray(np.maximum(scales, np.finfo(np.float32).tiny), np.float32)


def fake_quantize_to_even(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """scale * (clip(round(x * (1 / scale)) + zero_point) - zero_point) in float32, halves to even.

    The result equals that of torch.fake_quantize_per_tensor_affine and similar functions, bit for bit.
    """
    scale, zero_point = _columns(array, qparams)
    with np.errstate(all="ignore"):
        steps = np.rint(np.asarray(array, np.float32) * (np.float32(1) / scale)) + zero_point
    return _restored(array, steps, qparams)


def fake_quantize_dividing(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """scale * (clip(round(x / scale) + zero_point) - zero_point) in float32, halves to even, as in ONNX."""
    scale, zero_point = _columns(array, qparams)
    with np.errstate(all="ignore"):
        steps = np.rint(np.asarray(array, np.float32) / scale) + zero_point
    return _restored(array, steps, qparams)


def quantize_to_even(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """scale * (clip(round(x * (1 / scale) + zero_point)) - zero_point) in float32, halves to even.

    So does torch.quantize_per_tensor, to an integer that is even with the zero point added.
    """
    scale, zero_point = _columns(array, qparams)
    with np.errstate(all="ignore"):
        steps = np.rint(np.asarray(array, np.float32) * (np.float32(1) / scale) + zero_point)
    return _restored(array, steps, qparams)


def requantize_to_even(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """Like ``quantize_to_even``, for values computed from integers: near-ties are treated as ties."""
    scale, zero_point = _columns(array, qparams)
    with np.errstate(all="ignore"):
        steps = np.asarray(array, np.float32) * (np.float32(1) / scale) + zero_point
        steps = np.rint(np.rint(steps / np.float32(TIE)) * np.float32(TIE))
    return _restored(array, steps, qparams)


_ROUNDINGS: dict[str, Rounding] = {PYTORCH: fake_quantize_to_even, ONNX: fake_quantize_dividing}


def rounding_of(qparams: QParams) -> Rounding:
    """Returns the fake quantization of the framework that parameters come from."""
    return _ROUNDINGS.get(qparams.source, fake_quantize)


def _restored(array: np.ndarray, steps: np.ndarray, qparams: QParams) -> np.ndarray:
    """Dequantizes integers that may be out of range."""
    scale, zero_point = _columns(array, qparams)
    with np.errstate(all="ignore"):
        steps = np.clip(steps, np.float32(qparams.quant_min), np.float32(qparams.quant_max))
        return np.asarray((steps - zero_point) * scale).astype(array.dtype, copy=False)


def _columns(array: np.ndarray, qparams: QParams) -> tuple[np.ndarray, np.ndarray]:
    """Returns scales and zero points as float32, in a shape that broadcasts against the array."""
    shape = [1] * array.ndim
    if qparams.channel_axis is not None:
        shape[qparams.channel_axis] = -1
    scale = np.array(qparams.scale, np.float32).reshape(shape)
    return scale, np.array(qparams.zero_point, np.float32).reshape(shape)


def with_clear_ties(array: np.ndarray, qparams: QParams) -> np.ndarray:
    """Moves values that are almost halfway between two integers, up to rounding errors, to the halfway value.

    A mean of quantized values is often halfway between two integers. Integer kernels round it away from zero,
    and those with a zero point upwards; in float32 rounding errors would decide.
    """
    hair = np.float32(min(qparams.scale) * TIE)
    return np.asarray(array + (hair * np.sign(array) if qparams.symmetric else hair))


TIE = 2.0**-12  # of a step: above what float32 gets wrong, below the means of a thousand steps


def round_half_away(x: np.ndarray) -> np.ndarray:
    """Rounds to the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.asarray(whole + np.sign(x) * (np.abs(x - whole) >= 0.5))
