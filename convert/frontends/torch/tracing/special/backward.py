"""Decompositions of backward ATen ops that ``torch._decomp`` lacks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

_aten = torch.ops.aten
_TABLE: dict[Any, Callable[..., Any]] = {}


def decomposition(function: object) -> Callable[..., Any] | None:
    """Returns the decomposition of an ATen op into other ATen ops."""
    return _TABLE.get(function)


def _of(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(compute: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _TABLE[getattr(_aten, name).default] = compute
        return compute

    return add


# ---- convolutions


@_of("convolution_backward")
def _convolution(
    gradient: Tensor, input: Tensor, weight: Tensor, bias_sizes: object, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, output_padding: Sequence[int],
    groups: int, output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    axes = weight.dim() - 2
    steps, around, spread = (
        list(each) * (axes if len(each) == 1 else 1) for each in (stride, padding, dilation)
    )
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        # rows at the end of the input which no step of the kernel reached
        unreached = [
            0 if transposed else extent - ((made - 1) * step - 2 * pad + far * (size - 1) + 1)
            for extent, made, step, pad, far, size in zip(
                input.shape[2:], gradient.shape[2:], steps, around, spread, weight.shape[2:], strict=True
            )
        ]
        of_input = _aten.convolution(
            gradient, weight, None, steps, around, spread, not transposed, unreached, groups
        )
    if output_mask[1]:
        images, kernels = (gradient, input) if transposed else (input, gradient)
        of_weight = _weight_gradient(images, kernels, weight.shape[2:], steps, around, spread, groups)
    if output_mask[2]:
        of_bias = gradient.sum([0, *range(2, gradient.dim())])
    return of_input, of_weight, of_bias


def _weight_gradient(
    images: Tensor, kernels: Tensor, sizes: Sequence[int], stride: list[int], padding: list[int],
    dilation: list[int], groups: int,
) -> Tensor:  # fmt: skip
    """Weight gradient: a convolution with batch and channels, and stride and dilation, exchanged."""
    batch, channels, *extents = images.shape
    per_group = channels // groups
    exchanged = images.reshape(batch, groups, per_group, *extents).transpose(0, 2)
    found = _aten.convolution(
        exchanged.reshape(per_group, groups * batch, *extents),
        kernels.transpose(0, 1),
        None,
        dilation,
        padding,
        stride,
        False,
        [0] * len(stride),
        groups,
    )
    for axis, size in enumerate(sizes, start=2):
        if found.shape[axis] != size:
            found = found.narrow(axis, 0, size)
    return found.transpose(0, 1)


# ---- linear operators on images that work on one axis after the other


def _transpose_of(forward: Callable[[Tensor], Tensor], gradient: Tensor, extents: Sequence[int]) -> Tensor:
    """Gradient of a linear op; its matrix along each axis is computed from unit vectors."""
    axes = len(extents)
    matrices = _matrices(forward, tuple(extents))
    for axis, matrix in zip(range(-axes, 0), matrices, strict=True):
        gradient = (gradient.transpose(axis, -1) @ matrix.to(gradient.dtype)).transpose(axis, -1)
    return gradient


def _matrices(forward: Callable[[Tensor], Tensor], extents: tuple[int, ...]) -> list[Tensor]:
    """Returns the [outputs, inputs] matrix of each axis.

    The operator's result is the product of one factor per axis: along the others all inputs are one, and the
    factors of these at the middle are divided out.
    """
    with _disable_current_modes():
        whole = forward(torch.ones(1, 1, *extents, dtype=torch.float64))[0, 0]
        middle = tuple(size // 2 for size in whole.shape)
        found = []
        for axis, extent in enumerate(extents):
            units = torch.eye(extent, dtype=torch.float64)
            shape = [extent, 1, *(extent if each == axis else 1 for each in range(len(extents)))]
            made = forward(units.reshape(shape).expand(extent, 1, *extents).contiguous())[:, 0]
            place: list[Any] = [slice(None), *middle]
            place[axis + 1] = slice(None)
            found.append(made[tuple(place)].t().contiguous())
        found[0] = found[0] / whole[middle] ** (len(extents) - 1)
        return [matrix.to(torch.float32) for matrix in found]


def _averaged(axes: int, gradient: Tensor, input: Tensor, *options: object, **named: object) -> Tensor:
    pool = getattr(_aten, f"avg_pool{axes}d")
    return _transpose_of(lambda x: pool(x, *options, **named), gradient, input.shape[-axes:])


def _adaptively_averaged(axes: int, gradient: Tensor, input: Tensor) -> Tensor:
    pool, sizes = getattr(_aten, f"_adaptive_avg_pool{axes}d"), list(gradient.shape[-axes:])
    return _transpose_of(lambda x: pool(x, sizes), gradient, input.shape[-axes:])


for _axes in (2, 3):
    _of(f"avg_pool{_axes}d_backward")(functools.partial(_averaged, _axes))
    _of(f"_adaptive_avg_pool{_axes}d_backward")(functools.partial(_adaptively_averaged, _axes))


def _replicated(axes: int, gradient: Tensor, input: Tensor, padding: list[int]) -> Tensor:
    pad = getattr(_aten, f"replication_pad{axes}d")
    return _transpose_of(lambda x: pad(x, padding), gradient, input.shape[-axes:])


for _axes in (1, 2, 3):
    _of(f"replication_pad{_axes}d_backward")(functools.partial(_replicated, _axes))


def _resized(
    forward: Any, gradient: Tensor, output_size: list[int], input_size: list[int], *options: Any, **named: Any
) -> Tensor:
    return _transpose_of(lambda x: forward(x, output_size, *options, **named), gradient, input_size[2:])


for _name in (
    *(f"upsample_nearest{axes}d" for axes in (1, 2, 3)),
    *(f"_upsample_nearest_exact{axes}d" for axes in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"),
    *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
):
    _of(f"{_name}_backward")(functools.partial(_resized, getattr(_aten, _name).default))


# ---- pools that take the largest


def _put_back(axes: int, gradient: Tensor, input: Tensor, indices: Tensor) -> Tensor:
    lead = list(input.shape[:-axes])
    flat = [*lead, math.prod(gradient.shape[-axes:])]
    zeros = torch.zeros([*lead, math.prod(input.shape[-axes:])], dtype=gradient.dtype)
    return zeros.scatter_add(-1, indices.reshape(flat), gradient.reshape(flat)).reshape(input.shape)


for _axes in (2, 3):
    _of(f"adaptive_max_pool{_axes}d_backward")(functools.partial(_put_back, _axes))


@_of("max_pool3d_with_indices_backward")
def _max_pool3d(gradient: Tensor, input: Tensor, *options: Any, **named: Any) -> Tensor:
    indices = named["indices"] if "indices" in named else options[-1]
    return _put_back(3, gradient, input, indices)


# ---- activations


@_of("softshrink_backward", "hardshrink_backward")
def _shrink(gradient: Tensor, input: Tensor, lambd: float) -> Tensor:
    return torch.where(input.abs() > lambd, gradient, torch.zeros_like(gradient))


@_of("log_sigmoid_backward")
def _log_sigmoid(gradient: Tensor, input: Tensor, buffer: object) -> Tensor:
    return gradient * (-input).sigmoid()  # the buffer is no part of the vocabulary


# ---- products


@_of("_trilinear")
def _trilinear(
    *arguments: Any,  # three tensors, the axes that each is given, the axes that are summed
    unroll_dim: int = 1,
) -> Tensor:
    product: Any = None
    for tensor, expanded in zip(arguments[:3], arguments[3:6], strict=True):
        for axis in expanded:
            tensor = tensor.unsqueeze(axis)
        product = tensor if product is None else product * tensor
    return product.sum(arguments[6]) if arguments[6] else product


# ---- distances


@_of("_cdist_forward")
def _distances(x1: Tensor, x2: Tensor, p: float, compute_mode: object = None) -> Tensor:
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@_of("_cdist_backward")
def _distances_backward(gradient: Tensor, x1: Tensor, x2: Tensor, p: float, distances: Tensor) -> Tensor:
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    gradient, distances = gradient.unsqueeze(-1), distances.unsqueeze(-1)
    if p == 0:
        return torch.zeros_like(x1)
    if p == 1:
        return (gradient * difference.sign()).sum(-2)
    if math.isinf(p):
        is_largest = (difference.abs() == distances).to(gradient.dtype)
        return (gradient * difference.sign() * is_largest).sum(-2)
    divided = torch.where(distances == 0, torch.ones_like(distances), distances)
    ratio = difference / divided
    if p != 2:
        ratio = ratio.sign() * ratio.abs() ** (p - 1)
    return (gradient * ratio).sum(-2)


# ---- attention


@_of("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor,
    dropout_p: float, is_causal: bool,
    *, attn_mask: Tensor | None = None, scale: float | None = None,
) -> Any:  # fmt: skip
    if dropout_p:
        return NotImplemented
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.transpose(-1, -2)) * factor
    if is_causal:
        rows, columns = scores.shape[-2:]
        attn_mask = torch.full((rows, columns), -math.inf, dtype=scores.dtype).triu(1)
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(-1)
    of_weights = gradient @ value.transpose(-1, -2)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * factor
    return of_scores @ key, of_scores.transpose(-1, -2) @ query, weights.transpose(-1, -2) @ gradient
