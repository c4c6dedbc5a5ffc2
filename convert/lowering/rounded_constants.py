"""Weights in fewer bits, as lazy constants: rounded in blocks of rows when they are written."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from operator import itemgetter

import numpy as np

from tmconvert.ir.lazy_constants import Array, Lazy, computed, memory_of, viewed
from tmconvert.ir.types import name_of

_PIECE = 1 << 20  # bytes of which the largest element is found at a time


class Narrowed(Lazy):
    """``array`` rounded to float16, stored as ``dtype``: float16, or float32 for the same numbers there."""

    __slots__ = ("_dtype", "array")

    def __init__(self, array: Array, dtype: np.dtype) -> None:
        self.array, self._dtype = array, dtype

    @property
    def dtype(self) -> np.dtype:
        return self._dtype

    def viewed(self, view: Callable[[np.ndarray], np.ndarray]) -> Array:
        return Narrowed(viewed(self.array, view), self._dtype)

    def compute(self, out: np.ndarray) -> None:
        out[...] = computed(self.array).astype(np.float16)

    def memory(self) -> Hashable:
        return "float16", self._dtype, memory_of(self.array)


class Rounded(Lazy):
    """``array / scale``, rounded, plus ``zero_point``: integers from ``low`` to ``high``, of ``dtype``.

    For the float32 ``dtype`` it is what runtimes compute from them. ``scale`` and ``zero_point`` have the
    shape of ``array``, as broadcast views; None stands for 0.
    """

    __slots__ = ("_dtype", "array", "limits", "scale", "zero_point")

    def __init__(
        self,
        array: Array,
        scale: np.ndarray,
        limits: tuple[int, int],
        dtype: np.dtype,
        zero_point: np.ndarray | None = None,
    ) -> None:
        self.array, self.scale, self.limits, self._dtype = array, scale, limits, dtype
        self.zero_point = zero_point

    @property
    def dtype(self) -> np.dtype:
        return self._dtype

    def viewed(self, view: Callable[[np.ndarray], np.ndarray]) -> Array:
        parameters = [each for each in (self.scale, self.zero_point) if each is not None]
        scale, *zeros = seen = [view(each) for each in parameters]
        if all(map(np.may_share_memory, seen, parameters)):  # else they are copies, as large as the array
            zero_point = zeros[0] if zeros else None
            return Rounded(viewed(self.array, view), scale, self.limits, self._dtype, zero_point)
        return view(self.computed())

    def compute(self, out: np.ndarray) -> None:
        (low, high), zero = self.limits, self.zero_point
        steps = np.divide(computed(self.array), self.scale, dtype=np.float32)
        np.rint(steps, out=steps)
        if zero is not None:
            steps += zero
        np.clip(steps, low, high, out=steps)
        if self._dtype == np.float32:
            steps -= 0 if zero is None else zero
            np.multiply(steps, self.scale, out=out)
        else:
            out[...] = steps.astype(np.uint8 if low >= 0 else np.int8).astype(self._dtype, copy=False)

    def memory(self) -> Hashable:
        parameters = (memory_of(each) for each in (self.scale, self.zero_point) if each is not None)
        return self.limits, self._dtype, memory_of(self.array), *parameters


class Packed(Lazy):
    """Elements of four bits in bytes, the first of two in the lower half; the last axis of ``array`` is even.

    Views select elements along the other axes.
    """

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        *others, last = self.array.shape
        return (*others, last // 2)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.uint8)

    def viewed(self, view: Callable[[np.ndarray], np.ndarray]) -> Array:
        if len(self.shape) > 1:
            return Packed(viewed(self.array, view))
        return view(self.computed())

    def compute(self, out: np.ndarray) -> None:
        halves = np.ascontiguousarray(computed(self.array)).view(np.uint8)
        np.bitwise_and(halves[..., ::2], 0x0F, out=out)
        np.bitwise_or(out, halves[..., 1::2] << 4, out=out)

    def memory(self) -> Hashable:
        return "packed", memory_of(self.array)


def packed(array: Array) -> Array:
    """Returns elements of four or two bits in bytes, from the lowest bits on, with zeros at the end.

    >>> packed(np.array([1, 2, 3], ml_dtypes.int4))
    array([33,  3], dtype=uint8)
    """
    bits = {"int4": 4, "uint4": 4, "int2": 2}[name_of(array.dtype)]
    if bits == 4 and isinstance(array, Lazy) and array.shape and array.shape[-1] % 2 == 0:
        return Packed(array)
    flat = np.ascontiguousarray(computed(array)).reshape(-1).view(np.uint8)
    parts = np.pad(flat, (0, -flat.size % (8 // bits))).reshape(-1, 8 // bits) & np.uint8((1 << bits) - 1)
    made: np.ndarray = np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype=np.uint8), axis=1)
    return made


def pieces(array: Array) -> Iterator[Array]:
    """Returns slices along the first axis, each of which is small in memory."""
    step = max(1, array.shape[0] * _PIECE // max(array.nbytes, 1))
    for start in range(0, array.shape[0], step):
        yield viewed(array, itemgetter(slice(start, start + step)))


def largest(array: Array, axes: Sequence[int]) -> np.ndarray:
    """Returns max|array| over ``axes``, which are kept with length 1, without a copy of the array.

    It is NaN or infinite where an element is.
    """
    found = []
    for piece in map(computed, pieces(array)):
        ends = piece.max(axis=tuple(axes), keepdims=True), piece.min(axis=tuple(axes), keepdims=True)
        found.append(np.maximum(ends[0], -ends[1]))
    return np.concatenate(found) if 0 not in axes else np.maximum.reduce(found)
