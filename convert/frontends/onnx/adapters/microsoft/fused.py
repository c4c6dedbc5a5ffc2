"""Fused operators of com.microsoft, which the optimizers of ONNX Runtime write."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard import (
    convolutions,
    gathering,
    matrices,
    pooling,
    shapes,
    slicing,
    sorting,
)
from tmconvert.frontends.onnx.adapters.standard.activations import flattened
from tmconvert.frontends.onnx.adapters.values import axis_of, cast, like, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable("com.microsoft")
EPSILON = 1e-12  # of the normalizations here
_ACTIVATIONS: dict[str, Callable[..., Term]] = {
    "": lambda x: x,
    "Relu": lambda x: x.relu(),
    "Tanh": lambda x: x.tanh(),
    "Sigmoid": lambda x: x.sigmoid(),
    "LeakyRelu": lambda x, alpha=0.01: x.call("leaky_relu", negative_slope=alpha),
    "Clip": lambda x, low, high: x.clamp(low, high),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: (x * alpha + beta).clamp(0.0, 1.0),
    "HardSwish": lambda x: x.hardswish(),
}


def activated(g: Emitter, x, name: str, params: Sequence[float] = ()) -> Any:
    """Applies the activation of a fused operator. Raises Refusal."""
    if name not in _ACTIVATIONS:
        raise Refusal(f"the activation {name!r} is unknown")
    return _ACTIVATIONS[name](Term(g, x), *params).value


# ---- convolutions and products


@OPERATORS.add("FusedConv")
def fused_conv(g, X, W, B=None, Z=None, *, activation="", activation_params=(), **attributes):
    """activation(conv(X, W) + B + Z)."""
    made = convolutions.conv(g, X, W, B, **attributes)
    made = made if Z is None else g.call("aten::add", made, Z)
    return activated(g, made, activation, activation_params)


@OPERATORS.add("NhwcConv", "NhwcFusedConv")
def nhwc_conv(g, X, W, B=None, Z=None, **attributes):
    """A convolution of [N, H, W, C]; the weight is that of Conv."""
    given, other = (None if each is None else g.call("aten::permute", each, [0, 3, 1, 2]) for each in (X, Z))
    return g.call("aten::permute", fused_conv(g, given, W, B, other, **attributes), [0, 2, 3, 1])


@OPERATORS.add("NhwcMaxPool")
def nhwc_max_pool(g, x, **attributes):
    """Maximum pooling of [N, H, W, C]."""
    made, _ = pooling.max_pool(g, g.call("aten::permute", x, [0, 3, 1, 2]), **attributes)
    return g.call("aten::permute", made, [0, 2, 3, 1])


@OPERATORS.add("FusedGemm")
def fused_gemm(
    g, A, B, C=None,
    *, activation="", activation_alpha=None, activation_beta=None, activation_gamma=None, **attributes,
):  # fmt: skip
    params = [value for value in (activation_alpha, activation_beta) if value is not None]
    return activated(g, matrices.gemm(g, A, B, C, **attributes), activation, params)


@OPERATORS.add("FusedMatMul", "TransposeMatMul")
def fused_matmul(g, A, B, *, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0):
    left, right = _transposed(g, A, transA, transBatchA), _transposed(g, B, transB, transBatchB)
    made = matrices.product(g, left, right)
    return made if alpha == 1.0 else g.call("aten::mul", made, like(g, made, alpha))


def _transposed(g: Emitter, x, is_transposed: int, has_batch_last: int) -> Any:
    """Transposes a matrix. With ``has_batch_last`` its row axis is the first one, before the batch."""
    count = rank(g, x)
    order = list(range(count))
    if has_batch_last:
        order = [*order[1:-1], 0, order[-1]]
    if is_transposed and count > 1:
        order[-2:] = [order[-1], order[-2]]
    return x if order == sorted(order) else g.call("aten::permute", x, order)


# ---- activations


@OPERATORS.add("Gelu")
def gelu(g, X):
    return g.call("aten::gelu", X, approximate="none")


OPERATORS.add("BiasGelu")(lambda g, A, B: gelu(g, g.call("aten::add", A, B)))


@OPERATORS.add("FastGelu")
def fast_gelu(g, X, bias=None):
    given = X if bias is None else g.call("aten::add", X, bias)
    return g.call("aten::gelu", given, approximate="tanh")


OPERATORS.add("GemmFastGelu")(lambda g, X, W, bias=None: fast_gelu(g, g.call("aten::matmul", X, W), bias))


@OPERATORS.add("QuickGelu")
def quick_gelu(g, X, *, alpha=1.702):
    x = Term(g, X)
    return (x * (x * alpha).sigmoid()).value


@OPERATORS.add("BiasSplitGelu")
def bias_split_gelu(g, X, bias):
    """The first half of the last axis, by the gelu of the second one."""
    whole = g.call("aten::add", X, bias)
    axis = rank(g, whole) - 1
    half = g.type(whole).shape[axis] // 2
    left, right = g.call("aten::split_with_sizes", whole, [half, half], axis)
    return g.call("aten::mul", left, gelu(g, right))


OPERATORS.add("BiasAdd")(lambda g, X, bias, skip: g.call("aten::add", g.call("aten::add", X, bias), skip))


@OPERATORS.add("BiasSoftmax")
def bias_softmax(g, data, bias, *, axis=1, is_inner_broadcast):
    """The softmax of data + bias, over ``axis`` and all axes after it."""
    place, shape = axis_of(g, data, axis), list(g.type(bias).shape)
    if not is_inner_broadcast and len(shape) == rank(g, data):
        made = g.call("aten::add", data, bias)
    else:  # repeated along the batch axes that it lacks
        missing = rank(g, data) - len(shape)
        sizes = shape if missing <= 0 else [*([1] * missing), *shape]
        made = g.call("aten::add", data, reshaped(g, bias, sizes))
    if place == rank(g, made) - 1:
        return g.call("aten::softmax", made, place)
    return flattened(g, made, place, lambda rows: g.call("aten::softmax", rows, 1))


@OPERATORS.add("BiasDropout")
def bias_dropout(g, data, bias, residual=None, ratio=None, training_mode=None, *, seed=None):
    made = g.call("aten::add", data, bias)
    return made if residual is None else g.call("aten::add", made, residual)


# ---- normalizations


@OPERATORS.add("SkipLayerNormalization")
def skip_layer_normalization(g, input, skip, gamma, beta=None, bias=None, *, epsilon=EPSILON):
    """Normalizes the sum of two tensors and a bias; the sum is the fourth result."""
    whole = _sum(g, input, skip, bias)
    made = g.call("aten::layer_norm", whole, list(g.type(gamma).shape), gamma, beta, epsilon)
    return made, None, None, whole


@OPERATORS.add("SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(g, input, skip, gamma, bias=None, *, epsilon=EPSILON):
    whole = _sum(g, input, skip, bias)
    return g.call("aten::rms_norm", whole, list(g.type(gamma).shape), gamma, epsilon), None, None, whole


def _sum(g, *terms):
    return functools.reduce(
        lambda a, b: g.call("aten::add", a, b), [each for each in terms if each is not None]
    )


@OPERATORS.add("EmbedLayerNormalization")
def embed_layer_normalization(
    g, input_ids, segment_ids, word_embedding, position_embedding, segment_embedding=None, gamma=None,
    beta=None, mask=None, position_ids=None,
    *, epsilon=EPSILON, mask_index_type=1,
):  # fmt: skip
    """Normalized sum of the embeddings of words, positions and segments; then the length of each sequence."""
    batch, length = g.type(input_ids).shape
    words = g.call("aten::embedding", word_embedding, cast(g, input_ids, np.int64))
    if position_ids is None:
        positions = g.call("aten::slice", position_embedding, 0, 0, length, 1)
    else:
        positions = g.call("aten::embedding", position_embedding, cast(g, position_ids, np.int64))
    segments = None
    if segment_ids is not None and segment_embedding is not None:
        segments = g.call("aten::embedding", segment_embedding, cast(g, segment_ids, np.int64))
    whole = _sum(g, words, positions, segments)
    made = g.call("aten::layer_norm", whole, list(g.type(gamma).shape), gamma, beta, epsilon)
    if mask is None:
        lengths = g.call("aten::expand", g.constant(0, np.int32), [batch])
    else:
        lengths = cast(g, g.call("aten::sum", mask, [1], False), np.int32)
    return made, lengths, whole


@OPERATORS.add("GroupNorm")
def group_norm(g, X, gamma, beta, *, activation, channels_last=1, epsilon=1e-5, groups):
    """Group normalization, with SiLU after it if ``activation`` is 1."""
    given = g.call("aten::permute", X, [0, 3, 1, 2]) if channels_last else X
    made = g.call("aten::group_norm", given, groups, gamma, beta, epsilon)
    made = g.call("aten::silu", made) if activation else made
    return g.call("aten::permute", made, [0, 2, 3, 1]) if channels_last else made


# ---- others


@OPERATORS.add("Pad")
def pad(g, data, pads, value=None, *, mode="constant"):
    return slicing.pad(g, data, reshaped(g, pads, [-1]), value, mode=mode)


OPERATORS.add("Trilu")(lambda g, X, k=None, *, upper=1: matrices.trilu(g, X, k, upper=upper))
OPERATORS.add("Unique")(lambda g, x: sorting.unique(g, x, sorted=0))
OPERATORS.add("ExpandDims")(lambda g, X, axis: shapes.unsqueeze(g, X, axis))
OPERATORS.add("GatherND")(lambda g, data, indices: gathering.gather_nd(g, data, indices))
OPERATORS.add("Inverse")(lambda g, X: g.call("aten::linalg_inv", X))


@OPERATORS.add("CDist")
def cdist(g, A, B, *, metric="sqeuclidean"):
    """Distances between rows of two matrices."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise Refusal(f"the metric {metric!r} is not supported")
    made = Term(g, g.call("aten::cdist", A, B, 2))
    return made.value if metric == "euclidean" else (made * made).value
