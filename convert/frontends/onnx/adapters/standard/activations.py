"""Activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, like, rank, reshaped
from tmconvert.ir.emitter import Emitter

OPERATORS = OperatorTable()
SELU_ALPHA, SELU_GAMMA = 1.6732631921768188, 1.0507010221481323  # the defaults of Selu, float32


@OPERATORS.add("LeakyRelu")
def leaky_relu(g, X, *, alpha=0.01, consumed_inputs=None):
    return g.call("aten::leaky_relu", X, negative_slope=alpha)


OPERATORS.add("Elu")(lambda g, X, *, alpha=1.0, consumed_inputs=None: g.call("aten::elu", X, alpha=alpha))
OPERATORS.add("Celu")(lambda g, X, *, alpha=1.0: g.call("aten::celu", X, alpha=alpha))


@OPERATORS.add("Selu")
def selu1(g, X, *, alpha=1.6732, gamma=1.0507, consumed_inputs=None):
    return selu(g, X, alpha=alpha, gamma=gamma)


@OPERATORS.add("Selu", since=6)
def selu(g, X, *, alpha=SELU_ALPHA, gamma=SELU_GAMMA):
    if math.isclose(alpha, SELU_ALPHA, rel_tol=1e-6) and math.isclose(gamma, SELU_GAMMA, rel_tol=1e-6):
        return g.call("aten::selu", X)
    return g.call("aten::elu", X, alpha=alpha, scale=gamma)


@OPERATORS.add("HardSigmoid")
def hard_sigmoid(g, X, *, alpha=0.2, beta=0.5, consumed_inputs=None):
    if math.isclose(alpha, 1 / 6, rel_tol=1e-5) and beta == 0.5:
        return g.call("aten::hardsigmoid", X)
    line = g.call("aten::add", g.call("aten::mul", X, like(g, X, alpha)), like(g, X, beta))
    return g.call("aten::clamp", line, 0.0, 1.0)


OPERATORS.add("HardSwish")(lambda g, X: g.call("aten::hardswish", X))


@OPERATORS.add("Swish")
def swish(g, X, *, alpha=1.0):
    if alpha == 1.0:
        return g.call("aten::silu", X)
    return g.call("aten::mul", X, g.call("aten::sigmoid", g.call("aten::mul", X, like(g, X, alpha))))


OPERATORS.add("Mish")(lambda g, X: g.call("aten::mish", X))
OPERATORS.add("Gelu")(lambda g, X, *, approximate="none": g.call("aten::gelu", X, approximate=approximate))
OPERATORS.add("Softplus")(lambda g, X: g.call("aten::softplus", X))
OPERATORS.add("Softsign")(lambda g, input: g.call("aten::softsign", input))
OPERATORS.add("ThresholdedRelu")(lambda g, X, *, alpha=1.0: g.call("aten::threshold", X, alpha, 0.0))


@OPERATORS.add("Shrink")
def shrink(g, input, *, bias=0.0, lambd=0.5):
    if g.type(input).dtype.kind == "f" and bias in (0.0, lambd):
        return g.call("aten::softshrink" if bias else "aten::hardshrink", input, lambd)
    below, above = (
        g.call(f"aten::{op}", input, like(g, input, bound)) for op, bound in (("lt", -lambd), ("gt", lambd))
    )
    shift = like(g, input, bias)
    inner = g.call("aten::where", above, g.call("aten::sub", input, shift), like(g, input, 0))
    return g.call("aten::where", below, g.call("aten::add", input, shift), inner)


@OPERATORS.add("Dropout")
def dropout(g, data, ratio=None, training_mode=None, *, seed=None, is_test=None, consumed_inputs=None):
    """The identity, with a mask of ones: models are converted for inference."""
    if training_mode is not None:
        known = g.known(training_mode)
        if known is None or known.any():
            raise Refusal("dropout in training mode draws random numbers", "export the model for inference")
    ones = g.call("aten::expand", g.constant(True), list(g.type(data).shape))
    return data, ones


# ---- along an axis


def _along_axis(name: str, op: str) -> None:
    @OPERATORS.add(name, since=13)
    def adapter(g, input, *, axis=-1):
        return g.call(f"aten::{op}", input, axis_of(g, input, axis))

    @OPERATORS.add(name)
    def adapter1(g, input, *, axis=1):
        return flattened(g, input, axis, lambda rows: g.call(f"aten::{op}", rows, 1))


def flattened(g: Emitter, x, axis: int, apply) -> Any:
    """Applies a function of rows to ``x`` flattened to a matrix at an axis, as before opset 13."""
    shape = list(g.type(x).shape)
    place = axis + rank(g, x) if axis < 0 else axis
    if not 0 <= place <= len(shape):
        raise Refusal(f"axis {axis} is out of range for a tensor of rank {len(shape)}")
    if place == len(shape) - 1 and len(shape) == 2:
        return apply(x)
    rows = reshaped(g, x, [math.prod(shape[:place]), math.prod(shape[place:])])
    return reshaped(g, apply(rows), shape)


for _name, _op in {"Softmax": "softmax", "LogSoftmax": "log_softmax"}.items():
    _along_axis(_name, _op)


@OPERATORS.add("Hardmax", since=13)
def hardmax(g, input, *, axis=-1):
    place = axis_of(g, input, axis)
    shape = g.type(input).shape
    best = cast(g, g.call("aten::argmax", input, place, True), np.int64)
    count = cast(g, g.call("aten::arange", 0, shape[place], 1), np.int64)
    numbers = reshaped(g, count, [-1 if axis_ == place else 1 for axis_ in range(len(shape))])
    return g.call("aten::to", g.call("aten::eq", best, numbers), dtype=g.type(input).dtype.name)


@OPERATORS.add("Hardmax")
def hardmax1(g, input, *, axis=1):
    return flattened(g, input, axis, lambda rows: hardmax(g, rows, axis=1))
