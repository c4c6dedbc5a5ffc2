"""aten::pixel_shuffle, pixel_unshuffle and channel_shuffle: reshape, permute, reshape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.op import ANY_DTYPE, FLOATS, Op, Tensor, integer
from tmconvert.symbolics.traits import Homogeneous, Trait

Array = np.ndarray


class Steps(NamedTuple):
    """Reshape to ``parts``, permute by ``order``, reshape to ``result``."""

    parts: Sequence[int]
    order: Sequence[int]
    result: Sequence[int]


def _pixel_shuffle(shape: Sequence[int], factor: int) -> Steps:
    """[..., C r r, H, W] -> [..., C, H r, W r]."""
    *leading, channels, height, width = shape
    if factor < 1 or channels % factor**2:
        raise ValueError(f"{channels} channels are not divisible by {factor} x {factor}")
    depth = channels // factor**2
    return Steps(
        [*leading, depth, factor, factor, height, width],
        _shifted(len(leading), (0, 3, 1, 4, 2)),
        [*leading, depth, height * factor, width * factor],
    )


def _pixel_unshuffle(shape: Sequence[int], factor: int) -> Steps:
    """[..., C, H r, W r] -> [..., C r r, H, W]."""
    *leading, channels, height, width = shape
    if factor < 1 or height % factor or width % factor:
        raise ValueError(f"{height} x {width} is not divisible by {factor}")
    rows, columns = height // factor, width // factor
    return Steps(
        [*leading, channels, rows, factor, columns, factor],
        _shifted(len(leading), (0, 2, 4, 1, 3)),
        [*leading, channels * factor**2, rows, columns],
    )


def _channel_shuffle(shape: Sequence[int], groups: int) -> Steps:
    """[N, G K, ...] -> [N, K G, ...]."""
    batch, channels, *spatial = shape
    if groups < 1 or channels % groups:
        raise ValueError(f"{channels} channels are not divisible into {groups} groups")
    order = _shifted(1, (1, 0, *range(2, 2 + len(spatial))))
    return Steps([batch, groups, channels // groups, *spatial], order, shape)


def _shuffled_channels(axis: int, count: int, groups: int) -> np.ndarray | None:
    return np.arange(count).reshape(groups, -1).T.reshape(-1) if axis == 1 else None


def _shifted(leading: int, order: Sequence[int]) -> list[int]:
    """Returns ``order`` shifted by ``leading`` unchanged axes."""
    return [*range(leading), *(leading + axis for axis in order)]


def _op(
    name: str, parameter: str, steps_of: Callable[[Sequence[int], int], Steps], traits: Sequence[Trait] = ()
) -> Op:
    def result(x: TensorType, **attributes: int) -> TensorType:
        if x.rank < 3:
            raise ValueError(f"expected at least three axes, got x {x}")
        return TensorType(x.dtype, tuple(steps_of(x.shape, attributes[parameter]).result))

    return Op(
        f"aten::{name}", args=[Tensor("x", ANY_DTYPE), integer(parameter)], result=result, traits=traits
    )


def _moved(x: Array, steps: Steps) -> Array:
    return x.reshape(steps.parts).transpose(steps.order).reshape(steps.result)


def _views(g: Any, x: Any, steps: Steps) -> Any:
    moved = g.call("aten::permute", g.call("aten::reshape", x, list(steps.parts)), list(steps.order))
    return g.call("aten::reshape", moved, list(steps.result))


pixel_shuffle = _op("pixel_shuffle", "upscale_factor", _pixel_shuffle)
pixel_unshuffle = _op("pixel_unshuffle", "downscale_factor", _pixel_unshuffle)
channel_shuffle = _op(
    "channel_shuffle", "groups", _channel_shuffle, [Homogeneous(channels=_shuffled_channels)]
)
OPS = [pixel_shuffle, pixel_unshuffle, channel_shuffle]


@pixel_shuffle.reference
def pixel_shuffle_ref(x: Array, upscale_factor: int) -> Array:
    """Source: torch.nn.functional.pixel_shuffle."""
    return _moved(x, _pixel_shuffle(x.shape, upscale_factor))


@pixel_unshuffle.reference
def pixel_unshuffle_ref(x: Array, downscale_factor: int) -> Array:
    """Source: torch.nn.functional.pixel_unshuffle."""
    return _moved(x, _pixel_unshuffle(x.shape, downscale_factor))


@channel_shuffle.reference
def channel_shuffle_ref(x: Array, groups: int) -> Array:
    """Source: torch.nn.functional.channel_shuffle."""
    return _moved(x, _channel_shuffle(x.shape, groups))


@pixel_shuffle.caffe()
def pixel_shuffle_caffe(g, x, upscale_factor):
    """A Deconvolution writes each channel of a block to its position."""
    *leading, channels, height, width = x.shape
    r, depth = upscale_factor, channels // upscale_factor**2
    shape = (math.prod(leading), depth, height * r, width * r)
    image = idioms.caffe.reshaped(g, x, (shape[0], channels, height, width))
    made = g.op(
        "Deconvolution", image, _places(g, x, depth, r), num_output=depth, **_blocks(depth, r), shape=shape
    )
    return idioms.caffe.reshaped(g, made, g.result_types[0].shape)


@pixel_unshuffle.caffe()
def pixel_unshuffle_caffe(g, x, downscale_factor):
    """A Convolution selects one position of each block per output channel."""
    *leading, depth, height, width = x.shape
    r, channels = downscale_factor, depth * downscale_factor**2
    shape = (math.prod(leading), channels, height // r, width // r)
    image = idioms.caffe.reshaped(g, x, (shape[0], depth, height, width))
    made = g.op(
        "Convolution", image, _places(g, x, depth, r), num_output=channels, **_blocks(depth, r), shape=shape
    )
    return idioms.caffe.reshaped(g, made, g.result_types[0].shape)


def _places(g: Any, x: Any, depth: int, r: int) -> Any:
    """Returns for channel [c, i, j] an r x r kernel with a one at [i, j]."""
    return g.const(np.tile(np.eye(r * r, dtype=x.dtype).reshape(r * r, 1, r, r), (depth, 1, 1, 1)))


def _blocks(depth: int, r: int) -> dict[str, Any]:
    return {"bias_term": False, "kernel_h": r, "kernel_w": r, "stride_h": r, "stride_w": r, "group": depth}


@channel_shuffle.caffe("opencv", "ascend", "mnn", "ncnn")
def channel_shuffle_caffe(g, x, groups):
    image = x.shape if len(x.shape) == 4 else (*x.shape[:2], math.prod(x.shape[2:]), 1)
    shuffled = g.op("ShuffleChannel", idioms.caffe.reshaped(g, x, image), group=groups)
    return idioms.caffe.reshaped(g, shuffled, x.shape)


@pixel_shuffle.decompose
def pixel_shuffle_views(g, x, upscale_factor):
    return _views(g, x, _pixel_shuffle(g.type(x).shape, upscale_factor))


@pixel_unshuffle.decompose
def pixel_unshuffle_views(g, x, downscale_factor):
    return _views(g, x, _pixel_unshuffle(g.type(x).shape, downscale_factor))


channel_shuffle.decompose(lambda g, x, groups: _views(g, x, _channel_shuffle(g.type(x).shape, groups)))


@pixel_shuffle.onnx(since=11)  # the mode CRD is new
def pixel_shuffle_onnx11(g, x, upscale_factor):
    steps = _pixel_shuffle(x.shape, upscale_factor)
    if len(x.shape) == 4 and x.dtype.name in FLOATS:  # ONNX Runtime has kernels for few integers
        return g.op("DepthToSpace", x, blocksize=upscale_factor, mode="CRD", shape=steps.result)
    parts = g.op("Reshape", x, g.ints(steps.parts), shape=steps.parts)
    moved = g.op("Transpose", parts, perm=steps.order, shape=[steps.parts[axis] for axis in steps.order])
    return g.op("Reshape", moved, g.ints(steps.result), shape=steps.result)
