"""Normalization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, like, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable()
EPSILON = 1e-5


@OPERATORS.add("BatchNormalization")
def batch_normalization(
    g, X, scale, B, input_mean, input_var,
    *, epsilon=EPSILON, momentum=0.9, training_mode=0, spatial=1, is_test=1, consumed_inputs=None,
):  # fmt: skip
    if training_mode:
        return _trained(g, X, scale, B, input_mean, input_var, epsilon, momentum)
    if not spatial:
        return _of_elements(g, X, scale, B, input_mean, input_var, epsilon)
    vectors = [cast(g, each, g.type(X).dtype) for each in (scale, B, input_mean, input_var)]
    return g.call("aten::batch_norm", X, *vectors, epsilon)


def _of_elements(g: Emitter, x, scale, bias, mean, var, epsilon: float) -> Any:
    """Normalizes with statistics of each element of a sample, as before opset 9."""
    shape = g.type(x).shape[1:]
    scale, bias, mean, var = (Term(g, reshaped(g, each, list(shape))) for each in (scale, bias, mean, var))
    factor = scale / (var + epsilon).sqrt()
    return ((Term(g, x) - mean) * factor + bias).value


def _trained(g: Emitter, x, scale, bias, mean, var, epsilon: float, momentum: float) -> tuple[Any, ...]:
    """Normalizes by the statistics of the batch, and returns the running ones, too."""
    axes = [axis for axis in range(rank(g, x)) if axis != 1]
    own_mean = g.call("aten::mean", x, axes, False)
    own_var = g.call("aten::var", x, axes, 0, False)
    made = g.call("aten::batch_norm", x, scale, bias, own_mean, own_var, epsilon)

    def running(old, new):
        kept = g.call("aten::mul", old, like(g, old, momentum))
        return g.call("aten::add", kept, g.call("aten::mul", new, like(g, new, 1 - momentum)))

    return made, running(mean, own_mean), running(var, own_var)


@OPERATORS.add("InstanceNormalization")
def instance_normalization(g, input, scale, B, *, epsilon=EPSILON, consumed_inputs=None):
    return g.call("aten::instance_norm", input, scale, B, epsilon)


@OPERATORS.add("LayerNormalization")
def layer_normalization(g, X, Scale, B=None, *, axis=-1, epsilon=EPSILON, stash_type=1):
    place = axis_of(g, X, axis)
    shape = list(g.type(X).shape)
    axes, normalized = list(range(place, len(shape))), shape[place:]
    scale, bias = (_as_weight(g, each, normalized) for each in (Scale, B))
    if (Scale is None) == (scale is None) and (B is None) == (bias is None):
        made = g.call("aten::layer_norm", X, normalized, scale, bias, epsilon)
    else:
        made = g.call("aten::mul", g.call("aten::layer_norm", X, normalized, None, None, epsilon), Scale)
        made = made if B is None else g.call("aten::add", made, B)

    def mean() -> Any:
        return g.call("aten::mean", X, axes, True)

    def inverse() -> Any:
        var = g.call("aten::var", X, axes, 0, True)
        return g.call("aten::rsqrt", g.call("aten::add", var, like(g, var, epsilon)))

    return made, mean, inverse


def _as_weight(g: Emitter, weight, normalized: list[Any]) -> Any:
    """Returns a weight with exactly the normalized shape, or None where it is broadcast otherwise."""
    if weight is None:
        return None
    shape = list(g.type(weight).shape)
    if shape == normalized:
        return weight
    if math.prod(shape) == math.prod(normalized) and [n for n in shape if n != 1] == [
        n for n in normalized if n != 1
    ]:
        return reshaped(g, weight, normalized)
    return None


@OPERATORS.add("RMSNormalization", "SimplifiedLayerNormalization")
def rms_normalization(g, X, scale, *, axis=-1, epsilon=EPSILON, stash_type=1):
    normalized = list(g.type(X).shape[axis_of(g, X, axis) :])
    weight = _as_weight(g, scale, normalized)
    made = g.call("aten::rms_norm", X, normalized, weight, epsilon)
    return made if weight is not None else g.call("aten::mul", made, scale)


@OPERATORS.add("GroupNormalization", since=21)
def group_normalization(g, X, scale, bias, *, num_groups, epsilon=EPSILON, stash_type=1):
    return g.call("aten::group_norm", X, num_groups, scale, bias, epsilon)


@OPERATORS.add("GroupNormalization", since=18)
def group_normalization18(g, X, scale, bias, *, num_groups, epsilon=EPSILON):
    """Scale and bias are one for each group here."""
    each = g.type(X).shape[1] // num_groups
    scale, bias = (
        reshaped(g, g.call("aten::expand", reshaped(g, vector, [num_groups, 1]), [num_groups, each]), [-1])
        for vector in (scale, bias)
    )
    return g.call("aten::group_norm", X, num_groups, scale, bias, epsilon)


@OPERATORS.add("LRN")
def lrn(g, X, *, size, alpha=0.0001, beta=0.75, bias=1.0):
    return g.call("aten::local_response_norm", X, size, alpha, beta, bias)


@OPERATORS.add("LpNormalization")
def lp_normalization(g, input, *, axis=-1, p=2):
    """x / |x|; where the norm is 0, the result is 0."""
    norm = g.call("aten::linalg_vector_norm", input, p, [axis_of(g, input, axis)], True)
    zero = g.call("aten::eq", norm, like(g, norm, 0))
    safe = g.call("aten::where", zero, like(g, norm, 1), norm)
    return g.call("aten::div", input, safe)


@OPERATORS.add("MeanVarianceNormalization")
def mean_variance_normalization1(g, X, *, across_channels=0, normalize_variance=1):
    first = 1 if across_channels else 2
    axes = [0, *range(first, rank(g, X))]
    if normalize_variance:
        return mean_variance_normalization(g, X, axes=axes)
    return g.call("aten::sub", X, g.call("aten::mean", X, axes, True))


@OPERATORS.add("MeanVarianceNormalization", since=9)
def mean_variance_normalization(g, X, *, axes=(0, 2, 3)):
    """(x - mean) / (sqrt(var) + 1e-9), with the variance as mean(x^2) - mean(x)^2."""
    places = [axis_of(g, X, axis) for axis in axes]
    mean = g.call("aten::mean", X, places, True)
    squares = g.call("aten::mean", g.call("aten::mul", X, X), places, True)
    var = g.call("aten::sub", squares, g.call("aten::mul", mean, mean))
    deviation = g.call("aten::add", g.call("aten::sqrt", var), like(g, X, np.float32(1e-9)))
    return g.call("aten::div", g.call("aten::sub", X, mean), deviation)
