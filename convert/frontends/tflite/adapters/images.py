"""Resizing, and blocks of space in channels and batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import reshaped, static_ints
from tmconvert.frontends.tflite.adapters.values import PREFIX, check_rank
from tmconvert.frontends.tflite.layout import ChannelsFirst, channels_first
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)


@OPERATORS.add("RESIZE_BILINEAR")
def resize_bilinear(g, x, size, *, align_corners=False, half_pixel_centers=False):
    check_rank(g, x, 4)
    sizes = static_ints(g, size, "the size of an image")
    source = channels_first(g, x)
    if align_corners or half_pixel_centers or list(g.type(source).shape[2:]) == sizes:
        return ChannelsFirst(g.call("aten::upsample_bilinear2d", source, sizes, align_corners))
    for axis, wanted in enumerate(sizes):
        source = _interpolated(g, source, 2 + axis, wanted)
    return ChannelsFirst(source)


def _interpolated(g: Emitter, x: Any, axis: int, wanted: int) -> Any:
    """Interpolates along an axis from the place i * extent / wanted of the input."""
    extent = g.type(x).shape[axis]
    if not isinstance(extent, int) or not isinstance(wanted, int):
        raise Refusal(
            "resizing without half_pixel_centers and align_corners needs static sizes",
            "give the input a size",
        )
    if extent == wanted:
        return x
    places = np.arange(wanted, dtype=np.float32) * np.float32(extent / wanted)
    below = np.minimum(np.floor(places).astype(np.int64), extent - 1)
    above = np.minimum(below + 1, extent - 1)
    share = (places - below).astype(g.type(x).dtype)
    first, second = (g.call("aten::index_select", x, axis, g.constant(each)) for each in (below, above))
    weight = g.constant(share.reshape([-1 if each == axis else 1 for each in range(4)]))
    return g.call("aten::add", first, g.call("aten::mul", g.call("aten::sub", second, first), weight))


@OPERATORS.add("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(g, x, size, *, align_corners=False, half_pixel_centers=False):
    check_rank(g, x, 4)
    sizes = static_ints(g, size, "the size of an image")
    source = channels_first(g, x)
    if align_corners:
        return ChannelsFirst(_aligned(g, source, sizes, half_pixel_centers))
    op = "_upsample_nearest_exact2d" if half_pixel_centers else "upsample_nearest2d"
    return ChannelsFirst(g.call(f"aten::{op}", source, sizes))


def _aligned(g: Emitter, x: Any, sizes: list[Any], half_pixel_centers: bool) -> Any:
    """The first and the last elements of input and result are at the same positions."""
    for axis, wanted in enumerate(sizes, 2):
        extent = g.type(x).shape[axis]
        if not isinstance(extent, int) or not isinstance(wanted, int):
            raise Refusal("resizing with align_corners needs static sizes", "give the input a size")
        scale = np.float32((extent - 1) / (wanted - 1)) if wanted > 1 else np.float32(extent / wanted)
        shift = np.float32(0.5 if half_pixel_centers else 0)
        places = np.floor((np.arange(wanted, dtype=np.float32) + shift) * scale + np.float32(0.5))
        index = np.clip(places, 0, extent - 1).astype(np.int64)
        x = g.call("aten::index_select", x, axis, g.constant(index))
    return x


@OPERATORS.add("DEPTH_TO_SPACE")
def depth_to_space(g, x, *, block_size):
    """The channels are the rows of blocks, their columns, and the channels of the result."""
    source = channels_first(g, x)
    batch, channels, height, width = g.type(source).shape
    blocks = block_size**2
    if block_size < 1 or channels % blocks:
        raise Refusal(f"{channels} channels cannot be divided into blocks of {block_size} x {block_size}")
    split = g.call("aten::reshape", source, [batch, blocks, channels // blocks, height, width])
    sorted_ = g.call("aten::permute", split, [0, 2, 1, 3, 4])
    source = g.call("aten::reshape", sorted_, [batch, channels, height, width])
    return ChannelsFirst(g.call("aten::pixel_shuffle", source, block_size))


@OPERATORS.add("SPACE_TO_DEPTH")
def space_to_depth(g, x, *, block_size):
    made = g.call("aten::pixel_unshuffle", channels_first(g, x), block_size)
    batch, channels, height, width = g.type(made).shape
    blocks = block_size**2
    split = g.call("aten::reshape", made, [batch, channels // blocks, blocks, height, width])
    sorted_ = g.call("aten::permute", split, [0, 2, 1, 3, 4])
    return ChannelsFirst(g.call("aten::reshape", sorted_, [batch, channels, height, width]))


@OPERATORS.add("SPACE_TO_BATCH_ND")
def space_to_batch(g, x, blocks, paddings):
    sizes, amounts = static_ints(g, blocks, "the sizes of blocks"), static_ints(g, paddings, "the padding")
    count = len(sizes)
    shape = list(g.type(x).shape)
    rest = shape[1 + count :]
    if any(amounts):
        x = g.call("aten::pad", x, [0, 0, *amounts, *[0, 0] * len(rest)], "constant", 0)
        shape = list(g.type(x).shape)
    cut = [
        n for extent, size in zip(shape[1 : 1 + count], sizes, strict=True) for n in (extent // size, size)
    ]
    split = reshaped(g, x, [shape[0], *cut, *rest])
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    order = [*inner, 0, *outer, *range(2 * count + 1, 2 * count + 1 + len(rest))]
    made = g.call("aten::permute", split, order)
    return reshaped(g, made, [shape[0] * math.prod(sizes), *cut[::2], *rest])


@OPERATORS.add("BATCH_TO_SPACE_ND")
def batch_to_space(g, x, blocks, crops):
    sizes, amounts = static_ints(g, blocks, "the sizes of blocks"), static_ints(g, crops, "the crops")
    count = len(sizes)
    shape = list(g.type(x).shape)
    spatial, rest = shape[1 : 1 + count], shape[1 + count :]
    batch = shape[0] // math.prod(sizes)
    split = reshaped(g, x, [*sizes, batch, *spatial, *rest])
    pairs = [each for axis in range(count) for each in (count + 1 + axis, axis)]
    made = g.call("aten::permute", split, [count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest))])
    whole = [extent * size for extent, size in zip(spatial, sizes, strict=True)]
    made = reshaped(g, made, [batch, *whole, *rest])
    if any(amounts):
        made = g.call(
            "aten::pad", made, [0, 0, *(-each for each in amounts), *[0, 0] * len(rest)], "constant", 0
        )
    return made
