"""Convolutions and ``linear``."""

from __future__ import annotations

import functools
import math
from typing import Any

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.layers.unbatched import batched, per_axis
from tmconvert.frontends.torch.adapters.values import kind_of, promoted, rank, reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.ir.types import Ints
from tmconvert.symbolics.results import window_extent

ATEN = Table()


def _convolved(g: Emitter, x, weight, bias, stride, padding, dilation, groups: int) -> Any:
    axes = rank(g, weight) - 2
    steps, spread = per_axis(g, stride, axes), per_axis(g, dilation, axes)

    def compute(images):
        padded, around = _padded(g, images, g.type(weight).shape[2:], padding, spread)
        if kind_of(g.type(x).dtype) < 2:
            ends = [(each, each) for each in around]
            from tmconvert.frontends.torch.adapters.layers import integer_layers

            return integer_layers.convolved(g, padded, weight, bias, steps, ends, spread, groups)
        if isinstance(groups, Dim) and axes < 3:
            return _by_products(g, padded, weight, bias, steps, around, spread, groups)
        return g.call(f"aten::conv{axes}d", padded, weight, bias, steps, around, spread, groups)

    return batched(g, x, axes, compute)


def _by_products(
    g: Emitter, x, weight, bias, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Any:
    """Returns a convolution with a dynamic number of groups, such as one with weights for each sample.

    Targets have the number of groups as an attribute. Groups become an axis of a matrix product of weights
    and windows.
    """
    (batch, _, *extents), (outputs, inputs, *kernel) = g.type(x).shape, g.type(weight).shape
    lines = [1] * (2 - len(kernel))  # one axis of images is the last of two
    images = reshaped(g, x, [batch * groups, inputs, *lines, *extents])
    windows = [[*lines, *each] for each in (kernel, dilation, padding, stride)]
    windows[2] = [*(0 for _ in lines), *padding]
    columns, rows = g.call("aten::im2col", images, *windows), inputs * math.prod(kernel)
    columns = reshaped(g, columns, [batch, groups, rows, g.type(columns).shape[2]])
    factors = reshaped(g, weight, [1, groups, outputs // groups, rows])
    sizes = map(window_extent, extents, kernel, stride, padding, dilation)
    result = reshaped(g, g.call("aten::matmul", factors, columns), [batch, outputs, *sizes])
    if bias is None:
        return result
    return g.call("aten::add", result, reshaped(g, bias, [outputs, *[1] * len(kernel)]))


def _padded(g: Emitter, x: Any, kernel: Any, padding: Any, dilation: Ints) -> tuple[Any, Ints]:
    """Returns the padded input, and the padding at both ends of each axis.

    For "same" the result is as large as the images; where the padding is odd they get one more behind.
    Targets have the padding as an attribute: one of an open size is a call of its own.
    """
    axes = len(kernel)
    if padding == "valid":
        return x, [0] * axes
    if padding == "same":
        whole = [step * (size - 1) for step, size in zip(dilation, kernel, strict=True)]
        before, after = [each // 2 for each in whole], [each - each // 2 for each in whole]
    else:
        before = after = per_axis(g, padding, axes)
    if not is_symbolic((before, after)) and before == after:
        return x, before
    ends = [end for pair in zip(before, after, strict=True) for end in pair]
    return g.call("aten::pad", x, [0] * 4 + ends), [0] * axes


def _transposed(g: Emitter, x, weight, bias, stride, padding, output_padding, groups: int, dilation) -> Any:
    axes = rank(g, weight) - 2
    steps, around, after, spread = (
        per_axis(g, each, axes) for each in (stride, padding, output_padding, dilation)
    )
    compute = functools.partial(_spread, g, f"aten::conv_transpose{axes}d")
    if kind_of(g.type(x).dtype) < 2:
        from tmconvert.frontends.torch.adapters.layers import integer_layers

        compute = functools.partial(integer_layers.spread, g)
    elif isinstance(groups, Dim) and axes < 3:
        compute = functools.partial(_spread_by_products, g)
    more = [step - 1 if is_symbolic(amount) else amount for amount, step in zip(after, steps, strict=True)]
    full = batched(g, x, axes, lambda y: compute(y, weight, bias, steps, around, more, groups, spread))
    for axis, (amount, most) in enumerate(zip(after, more, strict=True), -axes):
        if is_symbolic(amount):  # no operator computes how far its output goes: what follows is cut off
            extent = g.type(full).shape[axis] - most + amount
            full = g.call("aten::slice", full, g.type(full).rank + axis, 0, extent, 1)
    return full


def _spread_by_products(
    g: Emitter, x, weight, bias, stride: Ints, padding: Ints, after: Ints, groups: int, dilation: Ints
) -> Any:
    """Returns a transposed convolution with a dynamic number of groups: sums of products."""
    (batch, _, *extents), (inputs, outputs, *kernel) = g.type(x).shape, g.type(weight).shape
    lines = [1] * (2 - len(kernel))
    rows = outputs * math.prod(kernel)
    factors = reshaped(g, weight, [1, groups, inputs // groups, rows])
    factors = g.call("aten::permute", factors, [0, 1, 3, 2])
    columns = reshaped(g, x, [batch, groups, inputs // groups, math.prod(extents)])
    products = reshaped(
        g, g.call("aten::matmul", factors, columns), [batch * groups, rows, math.prod(extents)]
    )
    numbers = zip(extents, stride, padding, dilation, kernel, after, strict=True)
    sizes = [(n - 1) * step - 2 * cut + far * (k - 1) + more + 1 for n, step, cut, far, k, more in numbers]
    windows = [[*lines, *each] for each in (sizes, kernel, dilation, padding, stride)]
    windows[3] = [*(0 for _ in lines), *padding]
    result = reshaped(g, g.call("aten::col2im", products, *windows), [batch, outputs * groups, *sizes])
    if bias is None:
        return result
    return g.call("aten::add", result, reshaped(g, bias, [*g.type(bias).shape, *[1] * len(kernel)]))


def _spread(
    g: Emitter, op: str, x, weight, bias, stride: Ints, padding: Ints, after: Ints, groups: int,
    dilation: Ints,
) -> Any:  # fmt: skip
    """Handles output padding larger than stride and padding: no window covers it, only the bias."""
    rows = zip(stride, padding, after, strict=True)
    unmet = [extra - cut if extra >= step and extra > cut else 0 for step, cut, extra in rows]
    met = [extra - more for extra, more in zip(after, unmet, strict=True)]
    if not any(unmet):
        return g.call(op, x, weight, bias, stride, padding, after, groups, dilation)
    result = g.call(op, x, weight, None, stride, padding, met, groups, dilation)
    result = g.call("aten::pad", result, [0] * 4 + [end for more in unmet for end in (0, more)])
    if bias is None:
        return result
    return g.call("aten::add", result, reshaped(g, bias, [*g.type(bias).shape, *[1] * len(unmet)]))


@ATEN.add("conv1d", "conv2d", "conv3d")
def conv(g, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _convolved(g, input, weight, bias, stride, padding, dilation, groups)


@ATEN.add("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(g, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return _transposed(g, input, weight, bias, stride, padding, output_padding, groups, dilation)


@ATEN.add("convolution", "_convolution", "convolution_overrideable")
def convolution(
    g, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *settings, **more
):
    """ATen's convolution; ``settings`` are flags of cuDNN and are ignored."""
    if transposed:
        return _transposed(g, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolved(g, input, weight, bias, stride, padding, dilation, groups)


@ATEN.add("_convolution_mode")
def convolution_mode(g, input, weight, bias, stride, padding, dilation, groups):
    return _convolved(g, input, weight, bias, stride, padding, dilation, groups)


@ATEN.add("conv_tbc")
def conv_tbc(g, input, weight, bias, pad=0):
    """``input`` is [T, N, C], ``weight`` [K, C, O]."""
    images, kernels = g.call("aten::permute", input, [1, 2, 0]), g.call("aten::permute", weight, [2, 1, 0])
    result = g.call("aten::conv1d", images, kernels, bias, [1], [pad])
    return g.call("aten::permute", result, [2, 0, 1])


@ATEN.add("linear")
def linear(g, input, weight, bias=None):
    """Linear layer; ``weight`` may be one row [I], for a result without last axis; ``bias`` broadcasts."""
    type_ = g.type(weight)
    if (
        type_.rank == 2
        and (bias is None or g.type(bias).shape == type_.shape[:1])
        and type_.dtype.kind == "f"
    ):
        return g.call("aten::linear", input, weight, bias)
    columns = g.call("aten::permute", weight, [1, 0]) if type_.rank == 2 else weight
    product = g.call("aten::matmul", input, columns)
    return product if bias is None else g.call("aten::add", *promoted(g, product, bias))


@ATEN.add("bilinear")
def bilinear(g, input1, input2, weight, bias=None):
    """Bilinear layer: [..., I] and [..., J] with ``weight`` [O, I, J] give [..., O]."""
    if kind_of(g.type(weight).dtype) == 2:
        return g.call("aten::bilinear", input1, input2, weight, bias)
    (*batch, first), second = g.type(input1).shape, g.type(input2).shape[-1]
    rows = reshaped(g, input1, [*batch, 1, 1, first])
    columns = reshaped(g, input2, [*batch, 1, second, 1])
    result = g.call("aten::matmul", g.call("aten::matmul", rows, weight), columns)
    result = reshaped(g, result, list(g.type(result).shape[:-2]))
    return result if bias is None else g.call("aten::add", result, bias)
