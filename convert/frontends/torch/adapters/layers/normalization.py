"""Batch, instance, group, layer and RMS normalization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.layers import integer_layers
from tmconvert.frontends.torch.adapters.layers.unbatched import in_one_type
from tmconvert.frontends.torch.adapters.values import cast, floating, kind_of, rank, reshaped, static_ints
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

ATEN, FUNCTIONS = Table(), Table()


def _batch_norm(g: Emitter, x, weight, bias, mean, var, training: bool, eps: float) -> Any:
    """Normalizes each channel; in training, or without running statistics, by its own mean and variance."""
    dtype = g.type(x).dtype
    if g.type(x).size == 0:
        return x
    if not training and (mean is None or var is None):
        raise Refusal(
            "batch_norm has no running statistics", "run module.eval() after training with running statistics"
        )
    if training:
        x, weight, bias = in_one_type(g, x, weight, bias)
        return cast(g, _by_own_statistics(g, x, weight, bias, eps), dtype)
    x, *parameters = in_one_type(g, x, weight, bias, mean, var)
    return cast(g, g.call("aten::batch_norm", x, *parameters, eps), dtype)


def _by_own_statistics(g: Emitter, x, weight, bias, eps: float) -> Any:
    axes = [axis for axis in range(rank(g, x)) if axis != 1]
    term = Term(g, x)
    centred = term - term.mean(dim=axes, keepdim=True)
    result = centred / ((centred * centred).mean(dim=axes, keepdim=True) + eps).sqrt()
    shape = [-1, *[1] * (rank(g, x) - 2)]
    if weight is not None:
        result = result * Term(g, reshaped(g, weight, shape))
    return result.value if bias is None else (result + Term(g, reshaped(g, bias, shape))).value


@ATEN.add("batch_norm")
def batch_norm(
    g, input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True
):
    return _batch_norm(g, input, weight, bias, running_mean, running_var, training, eps)


@FUNCTIONS.add("torch.nn.functional.batch_norm")
def functional_batch_norm(
    g, input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    return _batch_norm(g, input, weight, bias, running_mean, running_var, training, eps)


@ATEN.add("native_batch_norm", "_native_batch_norm_legit")
def native_batch_norm(g, input, weight, bias, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    """Returns also mean and 1 / standard deviation of each channel in training mode, for gradients."""
    result = _batch_norm(g, input, weight, bias, running_mean, running_var, training, eps)
    x = in_one_type(g, input, weight)[0]
    if not training:
        nothing = g.constant(np.zeros(0, g.type(x).dtype))
        return result, nothing, nothing
    axes = [axis for axis in range(rank(g, x)) if axis != 1]
    return result, *(reshaped(g, each, [g.type(x).shape[1]]) for each in _statistics(g, x, axes, eps))


@ATEN.add("_native_batch_norm_legit_no_training")
def batch_norm_no_training(g, input, weight, bias, running_mean, running_var, momentum, eps):
    return _batch_norm(g, input, weight, bias, running_mean, running_var, False, eps), None, None


@ATEN.add("_batch_norm_no_update")
def batch_norm_no_update(g, *args):
    return (*batch_norm_no_training(g, *args), None)


@FUNCTIONS.add("torch.ops.aten._native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(g, input, weight, bias, training, momentum, eps):
    return _batch_norm(g, input, weight, bias, None, None, training, eps), None, None


def _instance_norm(g: Emitter, x, weight, bias, mean, var, use_input_stats: bool, eps: float) -> Any:
    if not use_input_stats:
        return _batch_norm(g, x, weight, bias, mean, var, False, eps)
    dtype = g.type(x).dtype
    x, weight, bias = in_one_type(g, x, weight, bias)
    return cast(g, g.call("aten::instance_norm", x, weight, bias, eps), dtype)


@ATEN.add("instance_norm")
def instance_norm(
    g, input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=True
):
    return _instance_norm(g, input, weight, bias, running_mean, running_var, use_input_stats, eps)


@FUNCTIONS.add("torch.nn.functional.instance_norm")
def functional_instance_norm(
    g, input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1,
    eps=1e-5,
):  # fmt: skip
    return _instance_norm(g, input, weight, bias, running_mean, running_var, use_input_stats, eps)


@ATEN.add("group_norm")
def group_norm(g, input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    dtype = g.type(input).dtype
    x, weight, bias = in_one_type(g, input, weight, bias)
    return cast(g, g.call("aten::group_norm", x, num_groups, weight, bias, eps), dtype)


@ATEN.add("native_group_norm")
def native_group_norm(g, input, weight, bias, N, C, HxW, group, eps):
    result = group_norm(g, input, group, weight, bias, eps)
    shape, wide = [N * group, C // group * HxW], in_one_type(g, input, weight)[0]
    mean, spread = _statistics(g, reshaped(g, wide, shape), [1], eps)
    return (result, *(reshaped(g, value, [N, group]) for value in (mean, spread)))


@ATEN.add("layer_norm")
def layer_norm(g, input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    dtype = g.type(input).dtype
    x, weight, bias = in_one_type(g, input, weight, bias)
    shape = static_ints(g, normalized_shape)
    return cast(g, g.call("aten::layer_norm", x, shape, weight, bias, eps), dtype)


@ATEN.add("native_layer_norm")
def native_layer_norm(g, input, normalized_shape, weight, bias, eps):
    """Returns the normalized tensor, and mean and 1 / sqrt(variance + eps) of the input."""
    shape = static_ints(g, normalized_shape)
    axes = list(range(rank(g, input) - len(shape), rank(g, input)))
    result = layer_norm(g, input, shape, weight, bias, eps)
    return (result, *_statistics(g, in_one_type(g, input, weight)[0], axes, eps))


def _statistics(g: Emitter, x, axes: list[int], eps: float) -> tuple[Any, Any]:
    term = Term(g, x)
    mean = term.mean(dim=axes, keepdim=True)
    centred = term - mean
    variance = (centred * centred).mean(dim=axes, keepdim=True)
    return mean.value, (variance + eps).rsqrt().value


@ATEN.add("rms_norm")
def rms_norm(g, input, normalized_shape, weight=None, eps=None):
    """RMS normalization; the default ``eps`` is the machine epsilon of the type."""
    dtype = g.type(input).dtype
    x, weight = in_one_type(g, input, weight)
    shape = static_ints(g, normalized_shape)
    return cast(g, g.call("aten::rms_norm", x, shape, weight, eps), dtype)


@ATEN.add("_fused_rms_norm")
def fused_rms_norm(g, input, normalized_shape, weight=None, eps=None):
    return rms_norm(g, input, normalized_shape, weight, eps), None


@FUNCTIONS.add("torch.nn.functional.local_response_norm")
def local_response_norm(g, input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Windows of an even number of channels have one more channel before than after; in ONNX it is the
    reverse.

    The means of integers are integers.
    """
    is_float = kind_of(g.type(input).dtype) == 2
    if size % 2 and is_float:
        return g.call("aten::local_response_norm", input, size, alpha, beta, k)
    shape = list(g.type(input).shape)
    x = Term(g, input)
    rows = reshaped(g, (x * x).value, [shape[0], 1, shape[1], math.prod(shape[2:])])
    padded = g.call("aten::pad", rows, [0, 0, 0, 0, size // 2, (size - 1) // 2, 0, 0])
    if is_float:
        means = g.call("aten::avg_pool2d", padded, [size, 1], [1, 1])
    else:
        means = integer_layers.averaged(g, padded, [size, 1], [1, 1], [0, 0], False, True, None)
    x, mean = (Term(g, floating(g, each)) for each in (input, reshaped(g, means, shape)))
    return (x / (mean * alpha + k).pow(beta)).value
