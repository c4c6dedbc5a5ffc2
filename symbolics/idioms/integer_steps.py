"""Decompositions into operators with integer kernels, for ops whose own kernel is missing or inaccurate.

Each function gets an emitter (``calibration/expansion.py``) and the arguments of the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.symbolics.idioms.normalizing import scaled

Mean = Callable[[Any], Any]


def layer_norm(g: Any, x: Any, normalized_shape: list[int], weight: Any, bias: Any, eps: float) -> Any:
    mean = _mean_over(g, list(range(-len(normalized_shape), 0)))
    centred = g.call("aten::sub", x, mean(x))
    return scaled(g, _over_root(g, centred, mean, eps), weight, bias, g.type(x).dtype)


def rms_norm(g: Any, x: Any, normalized_shape: list[int], weight: Any, eps: float | None) -> Any:
    dtype, mean = g.type(x).dtype, _mean_over(g, list(range(-len(normalized_shape), 0)))
    eps = float(np.finfo(dtype).eps) if eps is None else eps
    return scaled(g, _over_root(g, x, mean, eps), weight, None, dtype)


def instance_norm(g: Any, x: Any, weight: Any, bias: Any, eps: float) -> Any:
    mean = _mean_over(g, list(range(2, g.type(x).rank)))
    return _by_channels(g, x, mean, weight, bias, eps)


def group_norm(g: Any, x: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Any:
    """Group norm without reshaping the image: means over positions, then over the channels of a group."""
    type_ = g.type(x)
    batch, channels, axes = type_.shape[0], type_.shape[1], list(range(2, type_.rank))
    rows = [batch, num_groups, channels // num_groups]
    column = [batch, channels, *[1] * len(axes)]

    def mean(image: Any) -> Any:
        plane = g.call("aten::mean", image, axes, True) if axes else image
        return g.call("aten::mean", g.call("aten::reshape", plane, rows), [-1], True)

    def spread(group: Any) -> Any:
        return g.call("aten::reshape", g.call("aten::expand", group, rows), column)

    return _by_channels(g, x, mean, weight, bias, eps, spread)


def _as_it_is(x: Any) -> Any:
    return x


def _by_channels(
    g: Any, x: Any, mean: Mean, weight: Any, bias: Any, eps: float, spread: Mean = _as_it_is
) -> Any:
    type_ = g.type(x)
    column = [1, type_.shape[1], *[1] * (type_.rank - 2)]
    factor, summand = (each and g.call("aten::reshape", each, column) for each in (weight, bias))
    centred = g.call("aten::sub", x, spread(mean(x)))
    return scaled(g, _over_root(g, centred, mean, eps, spread), factor, summand, type_.dtype)


def _mean_over(g: Any, axes: list[int]) -> Mean:
    return lambda x: g.call("aten::mean", x, axes, True)


def _over_root(g: Any, x: Any, mean: Mean, eps: float, spread: Mean = _as_it_is) -> Any:
    """x / sqrt(mean(x x) + eps), with the reciprocal square root as one lookup table."""

    def reciprocal(h: Any, squares: Any) -> Any:
        return h.call("aten::rsqrt", h.call("aten::add", squares, h.constant(eps, h.type(squares).dtype)))

    return g.call("aten::mul", x, spread(g.table(mean(g.call("aten::mul", x, x)), reciprocal)))


def div(g: Any, x: Any, other: Any) -> Any:
    known = g.known(other)
    if known is not None:
        return g.call("aten::mul", x, g.constant(1 / known, g.type(other).dtype))
    return g.call("aten::mul", x, g.table(other, lambda h, y: h.call("aten::reciprocal", y)))


def square(g: Any, x: Any) -> Any:
    return g.call("aten::mul", x, x)


def neg(g: Any, x: Any) -> Any:
    return g.call("aten::mul", x, g.constant(-1, g.type(x).dtype))


def local_response_norm(g: Any, x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    """x (k + alpha m) ^ -beta; the mean m of squares over channels is that of an image of one channel."""
    shape = g.type(x).shape
    planes = g.call("aten::reshape", x, [shape[0], 1, shape[1], math.prod(shape[2:])])
    squares = g.call("aten::mul", planes, planes)
    mean = g.call("aten::avg_pool2d", squares, [size, 1], [1, 1], [size // 2, 0])

    def power(h: Any, y: Any) -> Any:
        scale, offset, exponent = (h.constant(each, h.type(y).dtype) for each in (alpha, k, -beta))
        return h.call("aten::pow", h.call("aten::add", h.call("aten::mul", y, scale), offset), exponent)

    return g.call("aten::reshape", g.call("aten::mul", planes, g.table(mean, power)), shape)
