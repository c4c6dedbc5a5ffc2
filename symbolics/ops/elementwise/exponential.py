"""Exponentials and logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor, number
from tmconvert.symbolics.results import broadcast, same_as

Array = np.ndarray

# Where a sigmoid or softplus saturates in float32, so that its branches agree
SATURATED = 15


def _xlogy(x: Array, other: Array) -> Array:
    return np.where((x == 0) & ~np.isnan(other), 0, x * np.log(other))


UNARY: dict[str, Callable[[Array], Array]] = {
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "log_sigmoid": lambda x: -np.logaddexp(0, -x),
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "xlogy": _xlogy,
}


def _unary(name: str) -> Op:
    op = Op(f"aten::{name}", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY)
    op.reference(lambda x: UNARY[name](x).astype(x.dtype))
    return op


def _binary(name: str) -> Op:
    args = [Tensor("x", FLOATS), Tensor("other", FLOATS)]
    op = Op(f"aten::{name}", args=args, result=broadcast("x", "other"), layout=ANY)
    op.reference(lambda x, other: BINARY[name](x, other).astype(x.dtype))
    return op


EXPONENTIAL = {name: _unary(name) for name in UNARY} | {name: _binary(name) for name in BINARY}
EXPONENTIAL["exp2"].onnx(since=7)(lambda g, x: g.op("Pow", g.const(2), x))
EXPONENTIAL["exp2"].tflite()(lambda g, x: g.op("POW", g.const(2), x))
EXPONENTIAL["exp2"].caffe()(lambda g, x: g.op("Exp", x, base=2.0))


@formula(EXPONENTIAL["expm1"])  # tanh(x / 2) = (e^x - 1) / (e^x + 1) keeps what is small
def expm1(x: Term) -> Term:
    return (x * 0.5).tanh() * (x.exp() + 1)


formula(EXPONENTIAL["log2"])(lambda x: x.log() * (1 / math.log(2)))
formula(EXPONENTIAL["log10"])(lambda x: x.log() * (1 / math.log(10)))


@formula(EXPONENTIAL["log1p"])
def log1p(x: Term) -> Term:
    """log(u) - ((u - 1) - x) / u for u = 1 + x as rounded: the quotient corrects the rounding error."""
    limits = np.finfo(x.dtype)
    u = x + 1
    finite = u.clamp(min=float(limits.tiny), max=float(limits.max))
    lost = (finite - 1) - x.clamp(min=-1, max=float(limits.max))
    return u.log() - lost / finite


formula(EXPONENTIAL["log_sigmoid"])(lambda x: -(-x).softplus())


@formula(EXPONENTIAL["logaddexp"])
def logaddexp(x: Term, other: Term) -> Term:
    most = float(np.finfo(x.dtype).max)  # the difference of two infinities is no number
    apart = x.clamp(min=-most, max=most) - other.clamp(min=-most, max=most)
    return x.maximum(other) + (-apart.abs()).softplus()


@formula(EXPONENTIAL["logaddexp2"])
def logaddexp2(x: Term, other: Term) -> Term:
    return (x * math.log(2)).logaddexp(other * math.log(2)) * (1 / math.log(2))


formula(EXPONENTIAL["xlogy"])(lambda x, other: (x.eq(0) & other.eq(other)).where(0, x * other.log()))


softplus = Op(
    "aten::softplus",
    args=[Tensor("x", FLOATS), number("beta", 1), number("threshold", 20)],
    result=same_as("x"),
    layout=ANY,
)


@softplus.reference
def softplus_ref(x: Array, beta: float, threshold: float) -> Array:
    """log(1 + exp(beta x)) / beta, and x itself where beta x exceeds the threshold."""
    scaled = x * np.array(beta, x.dtype)
    return np.where(scaled > threshold, x, np.logaddexp(scaled, np.zeros((), x.dtype)) / beta).astype(x.dtype)


@softplus.onnx(since=9)
def softplus_onnx9(g, x, beta, threshold):
    scaled = x if beta == 1 else g.op("Mul", x, g.const(beta))
    y = g.op("Softplus", scaled)
    y = y if beta == 1 else g.op("Div", y, g.const(beta))
    if threshold >= SATURATED:
        return y
    return g.op("Where", g.op("Greater", scaled, g.const(threshold), dtype=bool), x, y, dtype=x.dtype)


@formula(softplus)  # exp of a negative number never overflows
def softplus_log(x: Term, beta: float, threshold: float) -> Term:
    scaled = x if beta == 1 else x * beta
    y = scaled.relu() + ((-scaled.abs()).exp() + 1).log()
    y = y if beta == 1 else y * (1 / beta)
    return y if threshold >= SATURATED else (scaled > threshold).where(x, y)


def _logit_result(x: TensorType, eps: float | None) -> TensorType:
    if eps is not None and not 0 <= eps <= 0.5:
        raise ValueError(f"eps {eps} is not between 0 and 1/2")
    return x


logit = Op("aten::logit", args=[Tensor("x", FLOATS), number("eps", None)], result=_logit_result, layout=ANY)


@logit.reference
def logit_ref(x: Array, eps: float | None) -> Array:
    if eps is not None:
        x = np.clip(x, np.array(eps, x.dtype), np.array(1 - eps, x.dtype))
    return np.log(x / (1 - x))


@formula(logit)
def logit_log(x: Term, eps: float | None) -> Term:
    if eps is not None:
        x = x.clamp(min=eps, max=1 - eps)
    return (x / (1 - x)).log()


OPS = [*EXPONENTIAL.values(), softplus, logit]
