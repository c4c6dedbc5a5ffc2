"""Reductions, indices of largest elements, and sums along an axis."""

from __future__ import annotations

from typing import Any

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import axis_of, rank, static_int
from tmconvert.frontends.tflite.adapters.values import PREFIX, axes_in, number
from tmconvert.frontends.tflite.layout import ChannelsFirst, channels_first_axis, known_channels_first
from tmconvert.ir.emitter import Emitter

OPERATORS = Table(PREFIX)
_REDUCTIONS = {
    "MEAN": "mean",
    "SUM": "sum",
    "REDUCE_PROD": "prod",
    "REDUCE_MAX": "amax",
    "REDUCE_MIN": "amin",
    "REDUCE_ANY": "any",
    "REDUCE_ALL": "all",
}


def _add(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, x, axes, *, keep_dims=False):
        return reduced(g, f"aten::{op}", x, axes_in(g, x, axes), keep_dims)


def reduced(g: Emitter, op: str, x: Any, axes: list[int], keep_dims: bool) -> Any:
    """Reduces axes; in NCHW where the remaining axes keep their order."""
    if not axes:
        return x
    known, count = known_channels_first(g, x), rank(g, x)
    kept = [axis for axis in range(count) if axis not in axes]
    places = [channels_first_axis(axis, count) for axis in kept]
    if known is None or (not keep_dims and places != sorted(places)):
        return g.call(op, x, axes, keep_dims)
    made = g.call(op, known, sorted(channels_first_axis(axis, count) for axis in axes), keep_dims)
    return ChannelsFirst(made) if keep_dims else made


for _name, _op in _REDUCTIONS.items():
    _add(_name, _op)


OPERATORS.add("ARG_MAX")(lambda g, x, axis: g.call("aten::argmax", x, axis_of(g, x, axis), False))
OPERATORS.add("ARG_MIN")(lambda g, x, axis: g.call("aten::argmin", x, axis_of(g, x, axis), False))


@OPERATORS.add("TOPK_V2")
def topk(g, x, k):
    return g.call("aten::topk", x, static_int(g, k, "the number of elements"), rank(g, x) - 1, True, True)


@OPERATORS.add("CUMSUM")
def cumsum(g, x, axis, *, exclusive=False, reverse=False):
    place = axis_of(g, x, axis)
    source = g.call("aten::flip", x, [place]) if reverse else x
    made = g.call("aten::cumsum", source, place)
    made = g.call("aten::sub", made, source) if exclusive else made
    return g.call("aten::flip", made, [place]) if reverse else made


@OPERATORS.add("L2_NORMALIZATION")
def l2_normalization(g, x, *, fused_activation_function="NONE"):
    """Divides by the length of the last axis, at least 1e-6."""
    last = rank(g, x) - 1
    squares = g.call("aten::sum", g.call("aten::square", x), [last], True)
    length = g.call("aten::maximum", g.call("aten::sqrt", squares), number(g, x, 1e-6))
    return g.call("aten::div", x, length)


@OPERATORS.add("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(g, x, *, radius, alpha, beta, bias=0.0):
    size = 2 * radius + 1
    known = known_channels_first(g, x)
    if known is None:
        known = g.call("aten::permute", x, [0, 3, 1, 2])
    return ChannelsFirst(g.call("aten::local_response_norm", known, size, alpha * size, beta, bias))
