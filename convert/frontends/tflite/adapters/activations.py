"""Activations."""

from __future__ import annotations

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import rank, reshaped
from tmconvert.frontends.tflite.adapters.values import PREFIX, number
from tmconvert.frontends.tflite.layout import (
    ChannelsFirst,
    along,
    channels_first,
    elementwise,
    like,
    value_of,
)

OPERATORS = Table(PREFIX)
_PLAIN = {
    "RELU": "relu",
    "RELU6": "relu6",
    "LOGISTIC": "sigmoid",
    "TANH": "tanh",
    "HARD_SWISH": "hardswish",
    "ELU": "elu",
}
_CLAMPS = {"RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


def _add_plain(name: str, op: str) -> None:
    @OPERATORS.add(name)
    def adapter(g, x):
        return elementwise(g, f"aten::{op}", x)


def _add_clamp(name: str, low: float, high: float) -> None:
    @OPERATORS.add(name)
    def adapter(g, x):
        return elementwise(g, "aten::clamp", x, min=low, max=high)


for _name, _op in _PLAIN.items():
    _add_plain(_name, _op)
for _name, _bounds in _CLAMPS.items():
    _add_clamp(_name, *_bounds)


@OPERATORS.add("LEAKY_RELU")
def leaky_relu(g, x, *, alpha):
    return elementwise(g, "aten::leaky_relu", x, negative_slope=alpha)


@OPERATORS.add("GELU")
def gelu(g, x, *, approximate=False):
    return elementwise(g, "aten::gelu", x, approximate="tanh" if approximate else "none")


@OPERATORS.add("PRELU")
def prelu(g, x, alpha):
    slopes = g.type(alpha)
    channels = g.type(x).shape[-1]
    if rank(g, x) in (2, 4) and slopes.size == channels == slopes.shape[-1]:
        weight = reshaped(g, alpha, [channels])
        if rank(g, x) == 2:
            return g.call("aten::prelu", x, weight)
        return ChannelsFirst(g.call("aten::prelu", channels_first(g, x), weight))
    below = elementwise(g, "aten::mul", x, alpha)
    positive = elementwise(g, "aten::gt", x, number(g, x, 0))
    source = channels_first(g, x) if isinstance(below, ChannelsFirst) else x
    return like(below, g.call("aten::where", value_of(positive), source, value_of(below)))


@OPERATORS.add("SOFTMAX")
def softmax(g, x, *, beta):
    if beta != 1.0:
        if getattr(x, "qparams", None) is not None:
            raise Refusal(f"a softmax of integers with the factor {beta} is not supported")
        x = g.call("aten::mul", x, number(g, x, beta))
    return along(g, "aten::softmax", x, rank(g, x) - 1)


OPERATORS.add("LOG_SOFTMAX")(lambda g, x: along(g, "aten::log_softmax", x, rank(g, x) - 1))
