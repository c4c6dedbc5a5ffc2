"""Dropout and its relatives, which draw random numbers in training and do nothing in evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.random.randomness import chosen, exponential_numbers, uniform_numbers
from tmconvert.frontends.torch.adapters.values import cast
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

ATEN, FUNCTIONS = Table(), Table("torch.nn.functional.")

# minus SELU's value for large negative numbers, to which alpha dropout sets elements
_SATURATION = 1.7580993408473766

Shape = list[Any]


def _all(shape: Shape) -> Shape:
    return shape


def _channels(shape: Shape) -> Shape:
    """Whole channels are dropped: one number for each sample and channel."""
    return [*shape[:2], *[1] * len(shape[2:])]


def _channels_of(rank: int) -> Callable[[Shape], Shape]:
    """As ``_channels``; with an axis less than ``rank`` there is no batch."""

    def channels(shape: Shape) -> Shape:
        return [shape[0], *[1] * len(shape[1:])] if len(shape) == rank - 1 else _channels(shape)

    return channels


def dropped(g: Emitter, x, p: float, shape: Shape) -> Any:
    """Returns ``x`` with elements set to 0 at random, and the others divided by 1 - p."""
    if p >= 1:
        return (Term(g, x) * 0.0).value
    kept = Term(g, cast(g, chosen(g, shape, 1 - p), g.type(x).dtype))
    return (Term(g, x) * (kept * (1 / (1 - p)))).value


def _alpha_dropped(g: Emitter, x, p: float, shape: Shape) -> Any:
    """Sets elements to SELU's saturation, and keeps mean and variance."""
    if p >= 1:
        return (Term(g, x) * 0.0).value
    scale = 1 / math.sqrt((_SATURATION**2 * p + 1) * (1 - p))
    kept = Term(g, cast(g, chosen(g, shape, 1 - p), g.type(x).dtype))
    return (Term(g, x) * (kept * scale) + (kept - (1 - p)) * (_SATURATION * scale)).value


def _declare(name: str, drop: Callable[..., Any], masked: Callable[[Shape], Shape]) -> None:
    def adapter(
        g: Emitter, input, p: float = 0.5, training: bool = True, inplace: bool = False, train=None
    ) -> Any:
        if not (training if train is None else train) or p == 0:
            return input
        return drop(g, input, p, masked(list(g.type(input).shape)))

    ATEN.add(name)(adapter)


for _name, _drop, _masked in (
    ("dropout", dropped, _all),
    ("dropout1d", dropped, _channels_of(3)),
    ("dropout2d", dropped, _channels),
    ("dropout3d", dropped, _channels_of(5)),
    ("feature_dropout", dropped, _channels),
    ("alpha_dropout", _alpha_dropped, _all),
    ("feature_alpha_dropout", _alpha_dropped, _channels),
):
    _declare(_name, _drop, _masked)


@ATEN.add("native_dropout")
def native_dropout(g, input, p, train):
    """Dropout and its mask, which is true everywhere in evaluation mode."""
    shape = list(g.type(input).shape)
    if not train or p == 0:
        return input, g.call("aten::expand", g.constant(True), shape)
    kept = chosen(g, shape, 1 - p)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return (Term(g, input) * (Term(g, cast(g, kept, g.type(input).dtype)) * scale)).value, kept


@ATEN.add("rrelu", "rrelu_with_noise")
def rrelu(g, input, lower=1 / 8, upper=1 / 3, training=False, *more, **_):
    """RReLU: slopes between the bounds, in evaluation mode the mean of both."""
    if not training:
        return g.call("aten::leaky_relu", input, (lower + upper) / 2)
    type_ = g.type(input)
    slopes = Term(g, uniform_numbers(g, list(type_.shape))) * (upper - lower) + lower
    x = Term(g, input)
    return g.call("aten::where", x.call("gt", 0.0).value, input, (x * slopes.to(type_.dtype)).value)


@FUNCTIONS.add("gumbel_softmax")
def gumbel_softmax(g, logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Softmax of the logits with Gumbel noise; a one-hot vector of its largest element with ``hard``."""
    type_ = g.type(logits)
    noise = Term(g, exponential_numbers(g, list(type_.shape))).call("log").to(type_.dtype)
    soft = g.call("aten::softmax", ((Term(g, logits) - noise) * (1 / tau)).value, dim)
    if not hard:
        return soft
    axis = dim % type_.rank
    largest = g.call("aten::argmax", soft, axis, True)
    steps = cast(g, _positions(g, type_.shape, axis), g.type(largest).dtype)
    return cast(g, g.call("aten::eq", steps, largest), type_.dtype)


def _positions(g: Emitter, shape: tuple[Any, ...], axis: int) -> Any:
    """Returns 0, 1, ... along an axis, with extents of 1 in the others."""
    steps = g.call("aten::arange", 0, shape[axis])
    return g.call("aten::reshape", steps, [*[1] * axis, shape[axis], *[1] * (len(shape) - axis - 1)])
