"""Convolution, Deconvolution and Im2col, over any number of spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.formats.caffe.layers.layer import Layer, Shape, axis_of, spatial
from tmconvert.formats.caffe.net import NetLayer

IMAGES = (slice(None), slice(None))  # of all images all channels


@dataclass(frozen=True)
class Window:
    """The numbers of a kernel, one for each spatial axis."""

    axis: int
    kernel: list[int]
    stride: list[int]
    pad: list[int]
    dilation: list[int]

    @property
    def spans(self) -> list[int]:
        """How far the kernel reaches."""
        return [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]


def window(parameters: Any, rank: int) -> Window:
    """Raises ValueError where the numbers are not for a blob of ``rank`` axes."""
    axis = axis_of(parameters.axis, rank)
    count = rank - axis - 1
    made = Window(
        axis,
        spatial(parameters, "kernel_size", count, None),
        spatial(parameters, "stride", count, 1),
        spatial(parameters, "pad", count, 0),
        spatial(parameters, "dilation", count, 1),
    )
    if not all(made.stride) or not all(made.dilation):
        raise ValueError("stride and dilation must be positive")
    return made


def _groups(parameters: Any, channels: int) -> int:
    if not parameters.num_output:
        raise ValueError("num_output is missing")
    if not parameters.group or channels % parameters.group or parameters.num_output % parameters.group:
        raise ValueError(
            f"group {parameters.group} does not divide {channels} and {parameters.num_output} channels"
        )
    return int(parameters.group)


def _extents(shape: Shape, over: Window) -> list[int]:
    """How many windows fit, rounded down."""
    extents = [
        (extent + 2 * pad - span) // stride + 1
        for extent, pad, span, stride in zip(
            shape[over.axis + 1 :], over.pad, over.spans, over.stride, strict=True
        )
    ]
    if min(extents, default=1) < 1:
        raise ValueError(f"a kernel that spans {over.spans} on a blob of {list(shape)}")
    return extents


def _convolution_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shapes = []
    for shape in bottoms:
        over = window(layer.parameters, len(shape))
        _groups(layer.parameters, shape[over.axis])
        shapes.append((*shape[: over.axis], layer.parameters.num_output, *_extents(shape, over)))
    return shapes


def _deconvolution_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shapes = []
    for shape in bottoms:
        over = window(layer.parameters, len(shape))
        _groups(layer.parameters, shape[over.axis])
        extents = [
            stride * (extent - 1) + span - 2 * pad
            for extent, stride, span, pad in zip(
                shape[over.axis + 1 :], over.stride, over.spans, over.pad, strict=True
            )
        ]
        if min(extents, default=1) < 1:
            raise ValueError(f"a padding of {over.pad} leaves no element of {list(shape)}")
        shapes.append((*shape[: over.axis], layer.parameters.num_output, *extents))
    return shapes


def patches(x: np.ndarray, over: Window) -> np.ndarray:
    """[N, C, *kernel, *windows] of ``x`` [N, C, *extents], with zeros around it."""
    count = len(over.kernel)
    padded = np.pad(x, [(0, 0), (0, 0), *((pad, pad) for pad in over.pad)])
    seen = np.lib.stride_tricks.sliding_window_view(padded, over.spans, axis=tuple(range(2, 2 + count)))
    steps = tuple(slice(None, None, stride) for stride in over.stride)
    holes = tuple(slice(None, None, dilation) for dilation in over.dilation)
    seen = seen[IMAGES + steps + holes]
    return np.moveaxis(seen, range(2, 2 + count), range(2 + count, 2 + 2 * count))


def _flat(x: np.ndarray, axis: int) -> np.ndarray:
    """Axes before the channels as one."""
    return x.reshape(math.prod(x.shape[:axis]), *x.shape[axis:])


def _convolution(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    weight = layer.blobs[0]
    results = []
    for x, (shape,) in ((x, _convolution_shape(layer, [x.shape])) for x in bottoms):
        over = window(layer.parameters, x.ndim)
        groups = _groups(layer.parameters, x.shape[over.axis])
        images = _flat(x, over.axis)
        parts = []
        for part, kernel in zip(np.split(images, groups, 1), np.split(weight, groups), strict=True):
            seen = patches(part, over)
            axes = list(range(1, weight.ndim))
            parts.append(np.moveaxis(np.tensordot(kernel, seen, (axes, axes)), 0, 1))
        results.append(_biased(layer, np.concatenate(parts, 1), over).reshape(shape))
    return results


def _deconvolution(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    weight = layer.blobs[0]
    results = []
    for x, (shape,) in ((x, _deconvolution_shape(layer, [x.shape])) for x in bottoms):
        over = window(layer.parameters, x.ndim)
        groups = _groups(layer.parameters, x.shape[over.axis])
        images = _flat(x, over.axis)
        parts = [
            _spread(part, kernel, over)
            for part, kernel in zip(np.split(images, groups, 1), np.split(weight, groups), strict=True)
        ]
        results.append(_biased(layer, np.concatenate(parts, 1), over).reshape(shape))
    return results


def _spread(x: np.ndarray, kernel: np.ndarray, over: Window) -> np.ndarray:
    """Each element of ``x`` [N, I, *extents] times ``kernel`` [I, O, *window], summed where these overlap."""
    full = [
        stride * (extent - 1) + span
        for extent, stride, span in zip(x.shape[2:], over.stride, over.spans, strict=True)
    ]
    canvas = np.zeros((len(x), kernel.shape[1], *full), np.float32)
    for place in np.ndindex(*over.kernel):
        spread = np.tensordot(x, kernel[IMAGES + place], (1, 0))
        at = tuple(
            slice(d * p, d * p + s * (extent - 1) + 1, s)
            for d, p, s, extent in zip(over.dilation, place, over.stride, x.shape[2:], strict=True)
        )
        canvas[IMAGES + at] += np.moveaxis(spread, -1, 1)
    inner = tuple(slice(pad, extent - pad) for pad, extent in zip(over.pad, full, strict=True))
    return canvas[IMAGES + inner]


def _biased(layer: NetLayer, images: np.ndarray, over: Window) -> np.ndarray:
    if not layer.parameters.bias_term:
        return images
    return images + layer.blobs[1].reshape(-1, *(1,) * len(over.kernel))


def _im2col_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    shape = bottoms[0]
    over = window(layer.parameters, len(shape))
    return [(*shape[: over.axis], shape[over.axis] * math.prod(over.kernel), *_extents(shape, over))]


def _im2col(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    (x,), (shape,) = bottoms, _im2col_shape(layer, [bottoms[0].shape])
    over = window(layer.parameters, x.ndim)
    return [patches(_flat(x, over.axis), over).reshape(shape)]


def _macs(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return math.prod(outputs[0]) * math.prod(inputs[1][1:])


def _transposed_macs(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return math.prod(inputs[0]) * math.prod(inputs[1][1:])


LAYERS = {
    "Convolution": Layer(
        _convolution_shape,
        _convolution,
        bottoms=(1, None),
        tops=(1, None),
        parameters="convolution_param",
        weight_axis=0,
        is_spatial=True,
        macs=_macs,
    ),
    "Deconvolution": Layer(
        _deconvolution_shape,
        _deconvolution,
        bottoms=(1, None),
        tops=(1, None),
        parameters="convolution_param",
        weight_axis=0,
        is_spatial=True,
        macs=_transposed_macs,
    ),
    "DepthwiseConv": Layer(
        _convolution_shape,
        _convolution,
        bottoms=(1, None),
        tops=(1, None),
        parameters="convolution_param",
        is_of_fork=True,
        is_spatial=True,
        macs=_macs,
    ),
    "Im2col": Layer(_im2col_shape, _im2col, parameters="convolution_param"),
}
