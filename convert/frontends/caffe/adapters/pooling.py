"""Pooling, pooling in a pyramid, and LRN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.formats.caffe.layers.layer import Shape
from tmconvert.formats.caffe.layers.pooling import ACROSS_CHANNELS, AVE, MAX, Pool, pool_of, pyramid
from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()


@LAYERS.layer("Pooling")
def pooling(layer: LayerCall) -> list[Any]:
    pool = pool_of(layer.parameters, layer.shapes[0])
    if layer.parameters.global_pooling and len(layer.net_layer.tops) == 1:
        return [_global(layer, pool.method)]
    made = _pooled(layer, layer.x, layer.shapes[0], pool, with_indices=len(layer.net_layer.tops) == 2)
    return made if isinstance(made, list) else [made]


def _global(layer: LayerCall, method: int) -> Any:
    _check_method(method)
    return layer.call("mean" if method == AVE else "amax", layer.x, [2, 3], True)


def _check_method(method: int) -> None:
    if method not in (MAX, AVE):
        raise Refusal("STOCHASTIC pooling is not defined on processors: Caffe has it for GPUs only")


def _pooled(layer: LayerCall, x: Any, shape: Shape, pool: Pool, *, with_indices: bool = False) -> Any:
    """Returns the pooled planes, and with ``with_indices`` the positions of the maxima in these planes.

    The last window of aten's ceil_mode begins in the image or the padding before it, as in Caffe with
    padding; Caffe without padding has windows of no element, too, where the stride exceeds the kernel.
    """
    _check_method(pool.method)
    settings = [pool.kernel, pool.stride, pool.pad]
    found = pool.counts(shape[2:])
    for count, extent, stride in zip(found, shape[2:], pool.stride, strict=True):
        if (count - 1) * stride >= extent + max(pool.pad):
            raise Refusal("the last window of the pooling has no element", "set round_mode: FLOOR")
    is_up = _rounds_up(pool, shape)
    if pool.method == AVE:
        return layer.call("avg_pool2d", x, *settings, is_up, True)
    if not with_indices:
        return layer.call("max_pool2d", x, *settings, [1, 1], is_up)
    values, at = layer.call("max_pool2d_with_indices", x, *settings, [1, 1], is_up)
    return [values, layer.call("to", at, dtype="float32")]


def _rounds_up(pool: Pool, shape: Shape) -> bool:
    """Whether rounding up makes a difference."""
    down = [
        (extent + 2 * pad - kernel) // stride + 1
        for extent, pad, kernel, stride in zip(shape[2:], pool.pad, pool.kernel, pool.stride, strict=True)
    ]
    return pool.counts(shape[2:]) != down


@LAYERS.layer("SPP")
def spp(layer: LayerCall) -> Any:
    shape = layer.shapes[0]
    parts = []
    for level in pyramid(layer.net_layer, shape):
        made = _pooled(layer, layer.x, shape, level)
        parts.append(layer.reshaped(made, [shape[0], math.prod(layer.g.type(made).shape[1:])]))
    return parts[0] if len(parts) == 1 else layer.call("cat", parts, 1)


@LAYERS.layer("LRN")
def lrn(layer: LayerCall) -> Any:
    """x / (k + alpha * mean of squares)^beta; within a channel k is 1."""
    parameters = layer.parameters
    size, alpha, beta = (getattr(parameters, name) for name in ("local_size", "alpha", "beta"))
    if parameters.norm_region == ACROSS_CHANNELS:
        return layer.call("local_response_norm", layer.x, size, alpha, beta, parameters.k)
    half = size // 2
    squares = layer.call("avg_pool2d", layer.call("square", layer.x), [size] * 2, [1, 1], [half] * 2)
    base = layer.call("add", layer.call("mul", squares, layer.number(alpha)), layer.number(1))
    power = layer.call("pow", base, layer.g.constant(float(-beta), np.float32))
    return layer.call("mul", layer.x, power)
