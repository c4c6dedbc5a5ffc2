"""Sliding windows over the last axes of an array: gathered, and summed back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tmconvert.symbolics.results import overhangs

Array = np.ndarray
Ints = Sequence[int]


def last_axes(x: Array, index: Iterable[slice | int]) -> Array:
    """Indexes the last axes of ``x``: one entry of ``index`` for each."""
    key: Any = (..., *index)
    return x[key]


def gathered(x: Array, kernel: Ints, stride: Ints, dilation: Ints) -> Array:
    """Returns a view [..., *outputs, *kernel] of ``x`` [..., *extents]: the elements of each window."""
    count = len(kernel)
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
    windows = sliding_window_view(x, reach, axis=tuple(range(x.ndim - count, x.ndim)))
    return last_axes(windows, (slice(None, None, step) for step in (*stride, *dilation)))


def scattered(windows: Array, extents: Ints, stride: Ints, dilation: Ints) -> Array:
    """Returns [..., *extents]: sums of overlapping elements of ``windows`` [..., *outputs, *kernel]."""
    count = len(extents)
    leading, outputs = windows.shape[: -2 * count], windows.shape[-2 * count : -count]
    result = np.zeros((*leading, *extents), windows.dtype)
    for tap in product(*(range(size) for size in windows.shape[-count:])):
        first = [index * step for index, step in zip(tap, dilation, strict=True)]
        places = tuple(
            slice(start, start + (number - 1) * step + 1, step)
            for start, number, step in zip(first, outputs, stride, strict=True)
        )
        met = last_axes(result, places)
        met += last_axes(windows, tap)
    return result


def widened(x: Array, before: Ints, after: Ints, value: float = 0) -> Array:
    """Pads the last axes of ``x`` with ``value``."""
    margins = list(zip(before, after, strict=True))
    return np.pad(x, [(0, 0)] * (x.ndim - len(margins)) + margins, constant_values=value)


def reduced(function: np.ufunc, x: Array, kernel: Ints, stride: Ints, dilation: Ints) -> Array:
    """Reduces each window of ``x`` [..., *extents] by an associative ``function``: [..., *outputs].

    One axis after the other, so that a window of kH x kW elements takes kH + kW steps.
    """
    windows = zip(kernel, stride, dilation, strict=True)
    for axis, (size, step, spread) in enumerate(windows, x.ndim - len(kernel)):
        last = (x.shape[axis] - (size - 1) * spread - 1) // step * step
        indices = (slice(i * spread, i * spread + last + 1, step) for i in range(size))
        taps = (np.moveaxis(np.moveaxis(x, axis, 0)[index], 0, axis) for index in indices)
        x = reduce(function, taps)
    return x


class Windows:
    """Windows over all axes but the first two, and divisors for averages: arrays [outputs]."""

    def __init__(
        self, spatial: Any, outputs: Any, kernel: list[int], stride: list[int], padding: list[int]
    ) -> None:
        self.spatial, self.outputs = tuple(spatial), tuple(outputs)
        self.kernel, self.stride, self.padding = kernel, stride, padding
        self.after = overhangs(spatial, outputs, kernel, stride, padding, [1] * len(kernel))

    def elements(self, margin: list[int]) -> Array:
        """Counts elements of each window in the input extended by ``margin`` on all sides."""
        counts = []
        for i, width in enumerate(margin):
            starts = np.arange(self.outputs[i]) * self.stride[i] - self.padding[i]
            ends = np.minimum(starts + self.kernel[i], self.spatial[i] + width)
            counts.append(ends - np.maximum(starts, -width))
        return reduce(np.multiply.outer, counts)

    @property
    def within(self) -> Array:
        """Counts elements of each window that are not padding."""
        return self.elements([0] * len(self.kernel))

    @property
    def all(self) -> Array:
        return np.full(self.outputs, math.prod(self.kernel))

    def wanted(self, count_include_pad: bool, divisor_override: int | None) -> Array:
        """Returns ATen's divisors: elements that ceil_mode adds after the padding are not counted."""
        if divisor_override is not None:
            return np.full(self.outputs, divisor_override)
        return self.elements(self.padding) if count_include_pad else self.within

    @property
    def is_global(self) -> bool:
        one_each = all(count == 1 for count in self.outputs)
        return one_each and tuple(self.kernel) == self.spatial and not any(self.padding)
