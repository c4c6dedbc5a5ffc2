"""``torch.ops.quantized``: the ops of a model converted by torch.ao.quantization.

An adapter computes in real numbers; the result is then quantized with the QParams that the run recorded for
it. ``packed`` is a dict of weight, bias and, for a convolution, its other arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import AdapterValue, Table
from tmconvert.frontends.torch.adapters.elementwise import activations
from tmconvert.frontends.torch.adapters.indexing import lookup
from tmconvert.frontends.torch.adapters.layers import convolutions, normalization
from tmconvert.frontends.torch.adapters.values import reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.fake_quant import quantize_to_even

ATEN = Table("quantized::")
Formula = Callable[..., Any]


def _declare(name: str, formula: Formula) -> None:
    """Declares an op and its form with ReLU; the arguments after its own are the QParams of the result."""
    ATEN.add(name)(formula)

    @ATEN.add(f"{name}_relu")
    def rectified(g: Emitter, *args: AdapterValue, **kwargs: AdapterValue) -> Any:
        return g.call("aten::relu", formula(g, *args, **kwargs))


# ---- layers with packed weights


def _convolution(g: Emitter, x: AdapterValue, packed: dict[str, AdapterValue], *qparams: AdapterValue) -> Any:
    settings = (packed[name] for name in ("stride", "padding", "dilation", "groups"))
    return convolutions.conv(g, x, packed["weight"], packed["bias"], *settings)


def _transposed(g: Emitter, x: AdapterValue, packed: dict[str, AdapterValue], *qparams: AdapterValue) -> Any:
    settings = (packed[name] for name in ("stride", "padding", "output_padding", "groups", "dilation"))
    return convolutions.conv_transpose(g, x, packed["weight"], packed["bias"], *settings)


def _of_rows(layer: Formula) -> Formula:
    """A 1-d layer, whose packed weights are those of an image of height 1."""

    def formula(g: Emitter, x: AdapterValue, packed: dict[str, AdapterValue], *qparams: AdapterValue) -> Any:
        shape = list(g.type(x).shape)
        made = layer(g, reshaped(g, x, [*shape[:-1], 1, shape[-1]]), packed)
        shape = list(g.type(made).shape)
        return reshaped(g, made, [*shape[:-2], shape[-1]])

    return formula


def _linear(g: Emitter, x: AdapterValue, packed: dict[str, AdapterValue], *qparams: AdapterValue) -> Any:
    return convolutions.linear(g, x, packed["weight"], packed["bias"])


def _conv_add(
    g: Emitter,
    x: AdapterValue,
    accumulated: AdapterValue,
    packed: dict[str, AdapterValue],
    *qparams: AdapterValue,
) -> Any:
    return g.call("aten::add", _convolution(g, x, packed), accumulated)


LAYERS: dict[str, Formula] = {
    "conv1d": _of_rows(_convolution),
    "conv2d": _convolution,
    "conv3d": _convolution,
    "conv_transpose1d": _of_rows(_transposed),
    "conv_transpose2d": _transposed,
    "conv_transpose3d": _transposed,
    "linear": _linear,
}
for _name, _layer in {**LAYERS, "conv2d_add": _conv_add}.items():
    _declare(_name, _layer)


@ATEN.add("linear_leaky_relu")
def linear_leaky_relu(
    g: Emitter,
    x: AdapterValue,
    packed: dict[str, AdapterValue],
    scale: AdapterValue,
    zero_point: AdapterValue,
    negative_slope: float,
) -> Any:
    return g.call("aten::leaky_relu", _linear(g, x, packed), negative_slope)


@ATEN.add("linear_tanh")
def linear_tanh(g: Emitter, x: AdapterValue, packed: dict[str, AdapterValue], *qparams: AdapterValue) -> Any:
    return g.call("aten::tanh", _linear(g, x, packed))


# ---- arithmetic


def _binary(op: str) -> Formula:
    def formula(
        g: Emitter, a: AdapterValue, b: AdapterValue, *qparams: AdapterValue, **named: AdapterValue
    ) -> Any:
        other = g.constant(np.float32(b)) if isinstance(b, (int, float)) else b
        return g.call(op, a, other)

    return formula


def _cat(
    g: Emitter, tensors: list[AdapterValue], dim: int = 0, *qparams: AdapterValue, **named: AdapterValue
) -> Any:
    return g.call("aten::cat", list(tensors), dim)


for _name, _formula in {
    "add": _binary("aten::add"),
    "mul": _binary("aten::mul"),
    "add_scalar": _binary("aten::add"),
    "mul_scalar": _binary("aten::mul"),
    "cat": _cat,
}.items():
    _declare(_name, _formula)
ATEN.add("matmul")(_binary("aten::matmul"))


# ---- activations


def _unary(name: str, op: str) -> None:
    @ATEN.add(name)
    def adapter(g: Emitter, x: AdapterValue, *qparams: AdapterValue, **named: AdapterValue) -> Any:
        return g.call(op, x)


_unary("hardswish", "aten::hardswish")
_unary("sigmoid", "aten::sigmoid")
_unary("relu6", "aten::relu6")


@ATEN.add("leaky_relu")
def leaky_relu(
    g: Emitter, x: AdapterValue, negative_slope: float, *rest: AdapterValue, **named: AdapterValue
) -> Any:
    return g.call("aten::leaky_relu", x, negative_slope)


@ATEN.add("elu")
def elu(
    g: Emitter,
    x: AdapterValue,
    scale: AdapterValue,
    zero_point: AdapterValue,
    alpha: float = 1.0,
    *rest: AdapterValue,
    **named: AdapterValue,
) -> Any:
    return g.call("aten::elu", x, alpha)


@ATEN.add("celu")
def celu(
    g: Emitter, x: AdapterValue, scale: AdapterValue, zero_point: AdapterValue, alpha: float = 1.0
) -> Any:
    return g.call("aten::celu", x, alpha)


@ATEN.add("prelu")
def prelu(g: Emitter, x: Any, weight: Any, *qparams: Any, **named: Any) -> Any:
    """PReLU; positive values are multiplied by 1 quantized like the slopes, whose range may end below 1."""
    if weight.qparams is None:
        return activations.prelu(g, x, weight)
    one = float(quantize_to_even(np.ones(()), weight.qparams))
    if abs(one - 1) < 1e-6:
        return activations.prelu(g, x, weight)
    slopes = g.call("aten::div", weight, g.constant(np.float32(one)))
    return g.call("aten::mul", activations.prelu(g, x, slopes), g.constant(np.float32(one)))


@ATEN.add("softmax")
def softmax(g: Emitter, x: AdapterValue, dim: int, *qparams: AdapterValue, **named: AdapterValue) -> Any:
    return g.call("aten::softmax", x, dim)


@ATEN.add("clamp")
def clamp(g: Emitter, x: AdapterValue, min: AdapterValue = None, max: AdapterValue = None) -> Any:
    return g.call("aten::clamp", x, min, max)


@ATEN.add("dropout")
def dropout(
    g: Emitter,
    x: AdapterValue,
    scale: AdapterValue,
    zero_point: AdapterValue,
    p: AdapterValue = 0.5,
    training: bool = False,
) -> Any:
    if training:
        raise Refusal("dropout is active", "call module.eval() first")
    return x


@ATEN.add("threshold")
def threshold(g: Emitter, x: AdapterValue, threshold: AdapterValue, value: AdapterValue) -> Any:
    return g.call("aten::threshold", x, threshold, value)


# ---- tables


def _table(name: str) -> None:
    @ATEN.add(f"embedding_{name}")
    def embedding(
        g: Emitter, packed: dict[str, AdapterValue], indices: AdapterValue, pruned_weights: bool = False
    ) -> Any:
        return lookup.embedding(g, packed["weight"], indices)

    @ATEN.add(f"embedding_bag_{name}")
    def embedding_bag(
        g: Emitter,
        packed: dict[str, AdapterValue],
        indices: AdapterValue,
        offsets: AdapterValue = None,
        scale_grad_by_freq: bool = False,
        mode: int = 0,
        pruned_weights: bool = False,
        per_sample_weights: AdapterValue = None,
        compressed_indices_mapping: AdapterValue = None,
        include_last_offset: bool = False,
    ) -> Any:
        """Sums the rows of bags; ``mode`` is ignored, as in torch."""
        if compressed_indices_mapping is not None:
            raise Refusal("rows of the table were pruned", "quantize the table without pruning rows")
        return lookup.functional_embedding_bag(
            g,
            indices,
            packed["weight"],
            offsets,
            mode="sum",
            per_sample_weights=per_sample_weights,
            include_last_offset=include_last_offset,
        )


for _name in ("byte", "4bit"):
    _table(_name)


# ---- normalization


def _batch_norm(
    g: Emitter,
    x: AdapterValue,
    weight: AdapterValue,
    bias: AdapterValue,
    mean: AdapterValue,
    variance: AdapterValue,
    eps: float,
    *qparams: AdapterValue,
) -> Any:
    return normalization.batch_norm(g, x, weight, bias, mean, variance, False, 0.0, eps)


for _name in ("batch_norm", "batch_norm1d", "batch_norm2d", "batch_norm3d"):
    _declare(_name, _batch_norm)


@ATEN.add("layer_norm")
def layer_norm(
    g: Emitter,
    x: AdapterValue,
    normalized_shape: AdapterValue,
    weight: AdapterValue,
    bias: AdapterValue,
    eps: float,
    *qparams: AdapterValue,
    **named: AdapterValue,
) -> Any:
    return normalization.layer_norm(g, x, normalized_shape, weight, bias, eps)


@ATEN.add("group_norm")
def group_norm(
    g: Emitter,
    x: AdapterValue,
    num_groups: int,
    weight: AdapterValue,
    bias: AdapterValue,
    eps: float,
    *qparams: AdapterValue,
    **named: AdapterValue,
) -> Any:
    return normalization.group_norm(g, x, num_groups, weight, bias, eps)


@ATEN.add("instance_norm")
def instance_norm(
    g: Emitter,
    x: AdapterValue,
    weight: AdapterValue,
    bias: AdapterValue,
    eps: float,
    *qparams: AdapterValue,
    **named: AdapterValue,
) -> Any:
    return normalization.instance_norm(g, x, weight, bias, None, None, True, 0.0, eps)
