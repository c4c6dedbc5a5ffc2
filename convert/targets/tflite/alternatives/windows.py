"""Convolutions and poolings in the strides, sizes and groups that devices have."""

from __future__ import annotations

from math import prod

import numpy as np

from tmconvert.lowering.target_graph import Attribute, Operator, Value
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, sizes

_MOST_STRIDE = 3
_MOST_DENSE = 1 << 22  # weights of a convolution that is written without groups


def padded(g: FormWriter) -> list[Operator] | None:
    """PAD, then a window without padding of its own. Averages do not count what is padded, so they stay."""
    operator = g.operator
    x, result = operator.inputs[0], operator.outputs[0]
    shape, made = sizes(x), sizes(result)
    is_same = operator.attributes.get("padding", "SAME") == "SAME"
    if x is None or shape is None or made is None or not is_same or len(shape) != 4:
        return None
    kernel, strides, dilations = _kernel(operator), _pair(operator, "stride"), _dilations(operator)
    if kernel is None:
        return None
    pads = [[0, 0]]
    for axis in (0, 1):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        missing = max((made[axis + 1] - 1) * strides[axis] + extent - shape[axis + 1], 0)
        pads.append([missing // 2, missing - missing // 2])
    pads.append([0, 0])
    wide = [size + sum(pair) for size, pair in zip(shape, pads, strict=True)]
    amounts = g.const(np.array(pads, np.int32))
    return g.last(
        operator.type,
        [g.op("PAD", [x, amounts], wide), *operator.inputs[1:]],
        options={**operator.attributes, "padding": "VALID"},
    )


def strided_slice(g: FormWriter) -> list[Operator] | None:
    """A window with a smaller stride that divides the stride, and every n-th row and column of its result."""
    operator = g.operator
    shape, made = sizes(operator.inputs[0]), sizes(operator.outputs[0])
    if shape is None or made is None or operator.attributes.get("padding", "SAME") != "VALID":
        return None
    strides = _pair(operator, "stride")
    smaller = [max(s for s in range(1, _MOST_STRIDE + 1) if stride % s == 0) for stride in strides]
    steps = [stride // s for stride, s in zip(strides, smaller, strict=True)]
    kernel, dilations = _kernel(operator), _dilations(operator)
    if kernel is None or steps == [1, 1]:
        return None
    wide = list(made)
    for axis in (0, 1):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        wide[axis + 1] = (shape[axis + 1] - extent) // smaller[axis] + 1
    value = g.copy(operator.inputs, wide, stride_h=smaller[0], stride_w=smaller[1])
    ends = [(size - 1) * step + 1 for size, step in zip(made[1:3], steps, strict=True)]
    begin, end, by = [0] * 4, [made[0], *ends, made[3]], [1, *steps, 1]
    return g.last("STRIDED_SLICE", [value, g.ints(begin), g.ints(end), g.ints(by)])


def without_excess(g: FormWriter) -> list[Operator] | None:
    """TRANSPOSE_CONV of a larger operand, and the part of its result that is wanted.

    The rows that an output padding adds have the bias alone: those that a row of zeros adds, too.
    """
    operator = g.operator
    kernel, x, result = operator.inputs[1], operator.inputs[2], operator.outputs[0]
    shape, made, window = sizes(x), sizes(result), sizes(kernel)
    if x is None or shape is None or made is None or window is None:
        return None
    strides = _pair(operator, "stride")
    if operator.attributes.get("padding", "SAME") != "VALID":
        return None
    wide, grown = list(shape), list(made)
    for axis, stride in zip((1, 2), strides, strict=True):
        natural = shape[axis] * stride + window[axis] - stride
        if made[axis] > natural:
            wide[axis] += -(-(made[axis] - natural) // stride)
        grown[axis] = wide[axis] * stride + window[axis] - stride
    pads = np.array([[0, size - given] for size, given in zip(wide, shape, strict=True)], np.int32)
    value = x if not pads.any() else g.op("PAD", [x, g.const(pads)], wide)
    full = g.copy([g.ints(grown), kernel, value, *operator.inputs[3:]], grown)
    return g.last("SLICE", [full, g.ints([0] * 4), g.ints(made)])


def without_groups(g: FormWriter) -> list[Operator] | None:
    """A convolution in groups as one with zeros between the groups."""
    operator = g.operator
    x, weight = operator.inputs[:2]
    shape, filters = sizes(x), sizes(weight)
    if shape is None or filters is None or weight is None or weight.data is None:
        return None
    channels, part = shape[-1], filters[-1]
    if part == channels or prod(filters) * (channels // part) > _MOST_DENSE:
        return None
    groups = channels // part
    dense = np.full((*filters[:-1], channels), _zero(weight), weight.dtype)
    each = filters[0] // groups
    for group in range(groups):
        rows = slice(group * each, (group + 1) * each)
        dense[rows, ..., group * part : (group + 1) * part] = weight.data[rows]
    inputs = [x, g.const(dense, weight), *operator.inputs[2:]]
    return g.last(operator.type, inputs, options=operator.attributes)


def _zero(weight: Value) -> int:
    known = weight.quantization
    return 0 if known is None or known.zero_point is None else int(known.zero_point[0])


def _pair(operator: Operator, name: str) -> list[int]:
    found: list[Attribute] = [operator.attributes.get(f"{name}_{side}", 1) for side in ("h", "w")]
    return [each if isinstance(each, int) else 1 for each in found]


def _dilations(operator: Operator) -> list[int]:
    found = [operator.attributes.get(f"dilation_{side}_factor", 1) for side in ("h", "w")]
    return [each if isinstance(each, int) else 1 for each in found]


def _kernel(operator: Operator) -> tuple[int, int] | None:
    if "POOL" in operator.type:
        height, width = (operator.attributes.get(f"filter_{side}") for side in ("height", "width"))
        return (height, width) if isinstance(height, int) and isinstance(width, int) else None
    shape = sizes(operator.inputs[1])
    return None if shape is None or len(shape) != 4 else (shape[1], shape[2])


WINDOWS = (
    ("CONV_2D DEPTHWISE_CONV_2D", padded),
    ("AVERAGE_POOL_2D CONV_2D DEPTHWISE_CONV_2D MAX_POOL_2D", strided_slice),
    ("TRANSPOSE_CONV", without_excess),
    ("CONV_2D", without_groups),
)
