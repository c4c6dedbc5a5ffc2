"""``torch.ops.quantized``: the ops of a model converted by torch.ao.quantization.

An adapter computes in real numbers; the result is then quantized with the QParams that the run recorded for
it. ``packed`` is a dict of weight, bias and, for a convolution, its other arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
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
    def rectified(g, *args, **kwargs):
        return g.call("aten::relu", formula(g, *args, **kwargs))


# ---- layers with packed weights


def _convolution(g: Emitter, x, packed: dict[str, Any], *qparams) -> Any:
    settings = (packed[name] for name in ("stride", "padding", "dilation", "groups"))
    return convolutions.conv(g, x, packed["weight"], packed["bias"], *settings)


def _transposed(g: Emitter, x, packed: dict[str, Any], *qparams) -> Any:
    settings = (packed[name] for name in ("stride", "padding", "output_padding", "groups", "dilation"))
    return convolutions.conv_transpose(g, x, packed["weight"], packed["bias"], *settings)


def _of_rows(layer: Formula) -> Formula:
    """A 1-d layer, whose packed weights are those of an image of height 1."""

    def formula(g: Emitter, x, packed: dict[str, Any], *qparams) -> Any:
        shape = list(g.type(x).shape)
        made = layer(g, reshaped(g, x, [*shape[:-1], 1, shape[-1]]), packed)
        shape = list(g.type(made).shape)
        return reshaped(g, made, [*shape[:-2], shape[-1]])

    return formula


def _linear(g: Emitter, x, packed: dict[str, Any], *qparams) -> Any:
    return convolutions.linear(g, x, packed["weight"], packed["bias"])


def _conv_add(g: Emitter, x, accumulated, packed: dict[str, Any], *qparams) -> Any:
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
def linear_leaky_relu(g, x, packed, scale, zero_point, negative_slope):
    return g.call("aten::leaky_relu", _linear(g, x, packed), negative_slope)


ATEN.add("linear_tanh")(lambda g, x, packed, *qparams: g.call("aten::tanh", _linear(g, x, packed)))


# ---- arithmetic


def _binary(op: str) -> Formula:
    def formula(g, a, b, *qparams, **named):
        other = g.constant(np.float32(b)) if isinstance(b, (int, float)) else b
        return g.call(op, a, other)

    return formula


def _cat(g: Emitter, tensors: list[Any], dim: int = 0, *qparams, **named) -> Any:
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
    def adapter(g, x, *qparams, **named):
        return g.call(op, x)


_unary("hardswish", "aten::hardswish")
_unary("sigmoid", "aten::sigmoid")
_unary("relu6", "aten::relu6")


@ATEN.add("leaky_relu")
def leaky_relu(g, x, negative_slope, *rest, **named):
    return g.call("aten::leaky_relu", x, negative_slope)


ATEN.add("elu")(lambda g, x, scale, zero_point, alpha=1.0, *rest, **named: g.call("aten::elu", x, alpha))
ATEN.add("celu")(lambda g, x, scale, zero_point, alpha=1.0: g.call("aten::celu", x, alpha))


@ATEN.add("prelu")
def prelu(g, x, weight, *qparams, **named):
    """PReLU; positive values are multiplied by 1 quantized like the slopes, whose range may end below 1."""
    if weight.qparams is None:
        return activations.prelu(g, x, weight)
    one = float(quantize_to_even(np.ones(()), weight.qparams))
    if abs(one - 1) < 1e-6:
        return activations.prelu(g, x, weight)
    slopes = g.call("aten::div", weight, g.constant(np.float32(one)))
    return g.call("aten::mul", activations.prelu(g, x, slopes), g.constant(np.float32(one)))


ATEN.add("softmax")(lambda g, x, dim, *qparams, **named: g.call("aten::softmax", x, dim))
ATEN.add("clamp")(lambda g, x, min=None, max=None: g.call("aten::clamp", x, min, max))


@ATEN.add("dropout")
def dropout(g, x, scale, zero_point, p=0.5, training=False):
    if training:
        raise Refusal("dropout is active", "leave out --training (training=True)")
    return x


@ATEN.add("threshold")
def threshold(g, x, threshold, value):
    return g.call("aten::threshold", x, threshold, value)


# ---- tables


def _table(name: str) -> None:
    @ATEN.add(f"embedding_{name}")
    def embedding(g, packed, indices, pruned_weights=False):
        return lookup.embedding(g, packed["weight"], indices)

    @ATEN.add(f"embedding_bag_{name}")
    def embedding_bag(
        g, packed, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False,
        per_sample_weights=None, compressed_indices_mapping=None, include_last_offset=False,
    ):  # fmt: skip
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


def _batch_norm(g: Emitter, x, weight, bias, mean, variance, eps: float, *qparams) -> Any:
    return normalization.batch_norm(g, x, weight, bias, mean, variance, False, 0.0, eps)


for _name in ("batch_norm", "batch_norm1d", "batch_norm2d", "batch_norm3d"):
    _declare(_name, _batch_norm)


@ATEN.add("layer_norm")
def layer_norm(g, x, normalized_shape, weight, bias, eps, *qparams, **named):
    return normalization.layer_norm(g, x, normalized_shape, weight, bias, eps)


@ATEN.add("group_norm")
def group_norm(g, x, num_groups, weight, bias, eps, *qparams, **named):
    return normalization.group_norm(g, x, num_groups, weight, bias, eps)


@ATEN.add("instance_norm")
def instance_norm(g, x, weight, bias, eps, *qparams, **named):
    return normalization.instance_norm(g, x, weight, bias, None, None, True, 0.0, eps)
