"""Pooling over height and width, and LRN."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.formats.caffe.layers.layer import Layer, Shape, spatial
from tmconvert.formats.caffe.net import NetLayer

MAX, AVE = 0, 1  # PoolMethod
ACROSS_CHANNELS = 0  # NormRegion


@dataclass(frozen=True)
class Pool:
    """Pooling windows over [H, W]; ``rounds_up`` includes the last window even if it is only partly in."""

    method: int
    kernel: list[int]
    stride: list[int]
    pad: list[int]
    rounds_up: bool = True

    def counts(self, extents: tuple[int, ...]) -> list[int]:
        """Returns the number of windows per axis.

        If any axis is padded, a window that begins after the image and its leading padding is omitted.
        """
        counts = []
        for extent, kernel, stride, pad in zip(extents, self.kernel, self.stride, self.pad, strict=True):
            space = extent + 2 * pad - kernel
            if space < 0:
                raise ValueError(f"a kernel of {kernel} exceeds {extent} elements with a padding of {pad}")
            count = (-(-space // stride) if self.rounds_up else space // stride) + 1
            if any(self.pad) and (count - 1) * stride >= extent + pad:
                count -= 1
            counts.append(count)
        return counts

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Pools ``x`` [N, C, H, W]. AVE divides by the window's elements within image and padding."""
        if self.method not in (MAX, AVE):
            raise ValueError("STOCHASTIC pooling is random")
        counts = self.counts(x.shape[2:])
        starts = [
            np.arange(count) * stride - pad
            for count, stride, pad in zip(counts, self.stride, self.pad, strict=True)
        ]
        ends = [
            np.minimum(start + kernel, extent + pad)
            for start, kernel, extent, pad in zip(starts, self.kernel, x.shape[2:], self.pad, strict=True)
        ]
        sizes = np.multiply.outer(ends[0] - starts[0], ends[1] - starts[1])
        empty = -np.inf if self.method == MAX else 0
        after = [
            max(int(start[-1]) + kernel - extent, 0)
            for start, kernel, extent in zip(starts, self.kernel, x.shape[2:], strict=True)
        ]
        margins = [(0, 0), (0, 0), *zip(self.pad, after, strict=True)]
        padded = np.pad(
            x.astype(np.float64 if self.method == AVE else np.float32), margins, constant_values=empty
        )
        seen = np.lib.stride_tricks.sliding_window_view(padded, self.kernel, axis=(2, 3))
        seen = seen[:, :, :: self.stride[0], :: self.stride[1]][:, :, : counts[0], : counts[1]]
        if self.method == MAX:
            return seen.max(axis=(4, 5))
        return np.asarray(seen.sum(axis=(4, 5)) / sizes, np.float32)


def pool_of(parameters: Any, shape: Shape) -> Pool:
    """The windows of a Pooling layer. Raises ValueError."""
    if len(shape) != 4:
        raise ValueError(f"expected a blob of 4 axes, got {len(shape)}")
    if parameters.global_pooling:
        return Pool(parameters.pool, list(shape[2:]), [1, 1], [0, 0])
    kernel = spatial(parameters, "kernel_size", 2, None)
    stride, pad = spatial(parameters, "stride", 2, 1), spatial(parameters, "pad", 2, 0)
    if any(p >= k for p, k in zip(pad, kernel, strict=True)) or not all(stride):
        raise ValueError(f"a padding of {pad} for a kernel of {kernel}, a stride of {stride}")
    return Pool(parameters.pool, kernel, stride, pad, _rounds_up(parameters))


def _rounds_up(parameters: Any) -> bool:
    """Forks have ceil_mode or torch_pooling in the place of round_mode, or several."""
    named = {field.name for field in parameters.DESCRIPTOR.fields}
    return (
        not ("torch_pooling" in named and parameters.torch_pooling)
        and ("ceil_mode" not in named or parameters.ceil_mode)
        and ("round_mode" not in named or parameters.round_mode == 0)
    )


def _pooling_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape = bottoms[0]
    return [(*shape[:2], *pool_of(layer.parameters, shape).counts(shape[2:]))] * len(layer.tops)


def _pooling(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    pool = pool_of(layer.parameters, bottoms[0].shape)
    made = [pool(bottoms[0])]
    if len(layer.tops) == 2:  # where each maximum is, counted over H and W
        made.append(_places(pool, bottoms[0]))
    return made


def _places(pool: Pool, x: np.ndarray) -> np.ndarray:
    """The place of the first largest element of each window; the padding is never chosen."""
    result = np.zeros((*x.shape[:2], *pool.counts(x.shape[2:])), np.float32)
    for i, j in np.ndindex(result.shape[2:]):
        top, left = (max(n * s - p, 0) for n, s, p in zip((i, j), pool.stride, pool.pad, strict=True))
        bottom, right = (
            n * s - p + k for n, s, p, k in zip((i, j), pool.stride, pool.pad, pool.kernel, strict=True)
        )
        seen = x[:, :, top:bottom, left:right]
        at = seen.reshape(*x.shape[:2], -1).argmax(-1)
        result[:, :, i, j] = (top + at // seen.shape[3]) * x.shape[3] + left + at % seen.shape[3]
    return result


def pyramid(layer: NetLayer, shape: Shape) -> list[Pool]:
    """The pooling of each level of a pyramid, with 1, 2, 4, ... windows along each axis."""
    if len(shape) != 4 or not layer.parameters.pyramid_height:
        levels = layer.parameters.pyramid_height
        raise ValueError(f"a pyramid takes four axes and at least one level, got {list(shape)} and {levels}")
    levels = []
    for level in range(layer.parameters.pyramid_height):
        kernel = [-(-extent // 2**level) for extent in shape[2:]]
        pad = [(k * 2**level - extent + 1) // 2 for k, extent in zip(kernel, shape[2:], strict=True)]
        levels.append(Pool(layer.parameters.pool, kernel, kernel, pad))
    return levels


def _spp_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape = bottoms[0]
    counts = [math.prod(pool.counts(shape[2:])) for pool in pyramid(layer, shape)]
    return [(shape[0], shape[1] * sum(counts))]


def _spp(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    x = bottoms[0]
    return [np.concatenate([pool(x).reshape(len(x), -1) for pool in pyramid(layer, x.shape)], 1)]


def _lrn_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    if len(bottoms[0]) != 4 or layer.parameters.local_size % 2 == 0:
        raise ValueError(f"LRN over {layer.parameters.local_size} of a blob of {len(bottoms[0])} axes")
    return [bottoms[0]]


def _lrn(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    """x / (k + alpha * mean of squares)^beta, the mean over neighbouring channels or positions."""
    x, parameters = bottoms[0], layer.parameters
    size, half = parameters.local_size, parameters.local_size // 2
    if parameters.norm_region == ACROSS_CHANNELS:
        squares = np.pad(np.square(x, dtype=np.float64), [(0, 0), (half, half), (0, 0), (0, 0)])
        mean = np.lib.stride_tricks.sliding_window_view(squares, size, axis=1).sum(-1) / size
        constant = parameters.k
    else:
        mean = Pool(AVE, [size] * 2, [1, 1], [half] * 2)(np.square(x))
        constant = 1.0  # BVLC has no use for k here
    return [np.asarray(x * (constant + parameters.alpha * mean) ** -parameters.beta, np.float32)]


LAYERS = {
    "LRN": Layer(_lrn_shape, _lrn, parameters="lrn_param", is_spatial=True),
    "Pooling": Layer(
        _pooling_shape, _pooling, tops=(1, 2), parameters="pooling_param", keeps_qparams=True, is_spatial=True
    ),
    "SPP": Layer(_spp_shape, _spp, parameters="spp_param"),
}
