"""Convolutions."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard.windows import Window, padded, window
from tmconvert.frontends.onnx.adapters.values import rank, reshaped, static_ints
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.clamps import maximum

OPERATORS = OperatorTable()


@OPERATORS.add("Conv")
def conv(
    g, X, W, B=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None
):
    kernel = list(g.type(W).shape[2:])
    if kernel_shape is not None and list(kernel_shape) != kernel:
        raise Refusal(f"kernel_shape {list(kernel_shape)} is not that of the weight, {kernel}")
    settings = window(g, X, kernel, strides, dilations, pads, auto_pad)
    return convolved(g, X, W, B, settings, group)


def convolved(g: Emitter, x, weight, bias, settings: Window, group: int) -> Any:
    """A convolution with any padding."""
    axes = rank(g, x) - 2
    if not 1 <= axes <= 3:
        raise Refusal(f"convolutions over {axes} axes are not supported")
    padding = settings.begin
    if not settings.is_even:
        x, padding = padded(g, x, settings.begin, settings.end, 0.0), [0] * axes
    return g.call(f"aten::conv{axes}d", x, weight, bias, settings.strides, padding, settings.dilations, group)


@OPERATORS.add("ConvTranspose")
def conv_transpose(
    g, X, W, B=None,
    *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, output_padding=None, output_shape=None,
    pads=None, strides=None,
):  # fmt: skip
    axes = rank(g, X) - 2
    if not 1 <= axes <= 3:
        raise Refusal(f"convolutions over {axes} axes are not supported")
    steps, spread = list(strides or [1] * axes), list(dilations or [1] * axes)
    extra, padding = list(output_padding or [0] * axes), list(pads or [0] * 2 * axes)
    begin, end = padding[:axes], padding[axes:]
    reach = [(size - 1) * each + 1 for size, each in zip(g.type(W).shape[2:], spread, strict=True)]
    sizes = [(n - 1) * step for n, step in zip(g.type(X).shape[2:], steps, strict=True)]
    wanted = list(output_shape)[-axes:] if output_shape else None
    if wanted is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * step for n, step in zip(g.type(X).shape[2:], steps, strict=True)]
    if wanted is not None:
        whole = [
            size + more + each - result
            for size, more, each, result in zip(sizes, extra, reach, wanted, strict=True)
        ]
        upper = auto_pad == "SAME_UPPER"
        if not output_shape:  # ONNX Runtime crops nothing where a stride leaves gaps between windows
            whole = [maximum(each, 0) for each in whole]
        begin = [each // 2 if upper else each - each // 2 for each in whole]
        end = [each - first for each, first in zip(whole, begin, strict=True)]
    return _transposed(g, X, W, B, steps, begin, end, extra, group, spread)


def _transposed(
    g: Emitter, x, weight, bias, strides: list[int], begin: list[Any], end: list[Any], extra: list[int],
    group: int, dilations: list[int],
) -> Any:  # fmt: skip
    """A transposed convolution; with uneven padding the result is computed without it and cropped."""
    axes = len(strides)
    op = f"aten::conv_transpose{axes}d"
    limits = [max(step, each) for step, each in zip(strides, dilations, strict=True)]
    # less padding at the end is more output there
    more = [a - (last - first) for a, first, last in zip(extra, begin, end, strict=True)]
    if all(first >= 0 for first in begin) and all(
        0 <= each < limit for each, limit in zip(more, limits, strict=True)
    ):
        return g.call(op, x, weight, bias, strides, begin, more, group, dilations)
    whole = g.call(op, x, weight, None, strides, [0] * axes, [0] * axes, group, dilations)
    after = [a - last for a, last in zip(extra, end, strict=True)]
    whole = padded(g, whole, [-first for first in begin], after, 0.0)
    return whole if bias is None else g.call("aten::add", whole, reshaped(g, bias, [1, -1, *[1] * axes]))


@OPERATORS.add("DeformConv")
def deform_conv(
    g, X, W, offset, B=None, mask=None,
    *, dilations=None, group=1, kernel_shape=None, offset_group=1, pads=None, strides=None,
):  # fmt: skip
    if rank(g, X) != 4:
        raise Refusal("a deformable convolution needs two spatial axes")
    settings = window(g, X, g.type(W).shape[2:], strides, dilations, pads, "NOTSET")
    if not settings.is_even:
        X = padded(g, X, settings.begin, settings.end, 0.0)
        settings = settings._replace(begin=[0, 0], end=[0, 0])
    bias = g.constant([0.0] * g.type(W).shape[0], g.type(X).dtype) if B is None else B
    return g.call(
        "torchvision::deform_conv2d",
        X,
        W,
        offset,
        mask,
        bias,
        settings.strides,
        settings.begin,
        settings.dilations,
    )


@OPERATORS.add("Col2Im")
def col2im(g, input, image_shape, block_shape, *, dilations=None, pads=None, strides=None):
    image, block = static_ints(g, image_shape), static_ints(g, block_shape)
    axes = len(image)
    spread, steps, padding = dilations or [1] * axes, strides or [1] * axes, list(pads or [0] * 2 * axes)
    if axes != 2:
        raise Refusal(f"Col2Im over {axes} axes is not supported")
    begin, end = padding[:2], padding[2:]
    full = [size + first + last for size, first, last in zip(image, begin, end, strict=True)]
    if begin == end:
        return g.call("aten::col2im", input, image, block, list(spread), begin, list(steps))
    whole = g.call("aten::col2im", input, full, block, list(spread), [0, 0], list(steps))
    for axis in range(2):
        whole = g.call("aten::slice", whole, axis + 2, begin[axis], begin[axis] + image[axis], 1)
    return whole
