"""Numbers and texts of an operator, by name, which rules of profiles limit.

A quantity is a path or a name. Paths are ``attribute.NAME``; ``SIDE.PLACE.PROPERTY`` with the side ``input``
or ``output``, a number for the place, and a property of ``PROPERTIES``; and ``inputs.PROPERTY``,
``outputs.PROPERTY`` or ``computed.PROPERTY`` for each tensor of that side. ``extent.N`` is the size of an
axis, from the end where N is negative. Names are those of ``NAMED``. A quantity has no values where an
operator lacks what it is about, or its sizes are open: a rule does not apply there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tmconvert.profiles.operation import Operation, Tensor

Number = float | str
Values = Sequence[Number]
# of TFLite, whose files omit values that the schema has by default
_DEFAULTS: Mapping[str, Number] = {
    "padding": "SAME",
    "dilation_h_factor": 1,
    "dilation_w_factor": 1,
    "fused_activation_function": "NONE",
    "align_corners": False,
    "half_pixel_centers": False,
    "adj_x": False,
    "adj_y": False,
    "keep_dims": False,
    "axis": 0,
    "batch_dims": 0,
    "group": 1,
    "mode": "nearest",
}


def is_quantity(name: str) -> bool:
    """Whether rules can be about ``name``."""
    first, *rest = name.split(".")
    if name in NAMED or (first == "attribute" and len(rest) == 1):
        return True
    if first in ("input", "output"):
        return len(rest) > 1 and _is_number(rest[0]) and _is_property(rest[1:])
    return first in ("inputs", "outputs", "computed") and _is_property(rest)


def _is_property(path: Sequence[str]) -> bool:
    is_extent = len(path) == 2 and path[0] == "extent" and _is_number(path[1])
    return is_extent or (len(path) == 1 and path[0] in PROPERTIES)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def values_of(name: str, operation: Operation) -> list[Number]:
    """Returns the values of a quantity for an operator."""
    if name in NAMED:
        try:
            return list(NAMED[name](operation))
        except (IndexError, TypeError, ValueError, ZeroDivisionError):  # of an operator that is not valid
            return []
    first, *rest = name.split(".")
    if first == "attribute":
        value = operation.attributes.get(rest[0], _DEFAULTS.get(rest[0]))
        values = value if isinstance(value, (list, tuple)) else [value]
        return [each for each in values if isinstance(each, (int, float, str))]
    if first in ("input", "output"):
        side = operation.inputs if first == "input" else operation.outputs
        place, path = int(rest[0]), rest[1:]
        tensor = side[place] if -len(side) <= place < len(side) else None
        tensors = [] if tensor is None else [tensor]
    else:
        sides = {"inputs": operation.given, "outputs": operation.outputs, "computed": operation.computed}
        tensors, path = list(sides[first]), rest
    return [value for each in tensors for value in _property(each, path)]


def _property(tensor: Tensor, path: Sequence[str]) -> Iterator[Number]:
    if path[0] != "extent":
        yield from PROPERTIES[path[0]](tensor)
        return
    shape, axis = tensor.shape or (), int(path[1])
    if -len(shape) <= axis < len(shape) and (extent := shape[axis]) is not None:
        yield extent


def _shape(tensor: Tensor | None) -> tuple[int, ...]:
    """Raises ValueError for one whose sizes are open or not known."""
    if tensor is None or tensor.shape is None or any(each is None for each in tensor.shape):
        raise ValueError
    return tuple(each for each in tensor.shape if each is not None)


def _elements(tensor: Tensor) -> Values:
    shape = tensor.shape
    if shape is None or any(each is None for each in shape):
        return []
    return [math.prod(each for each in shape if each is not None)]


PROPERTIES: dict[str, Callable[[Tensor], Values]] = {
    "rank": lambda tensor: [] if tensor.shape is None else [len(tensor.shape)],
    "type": lambda tensor: [tensor.dtype],
    "is_constant": lambda tensor: [tensor.is_constant],
    "elements": _elements,
    "scales": lambda tensor: [len(tensor.scale)],
    "scale": lambda tensor: list(tensor.scale),
    "distance of scale from a power of two": lambda tensor: [
        abs(math.log2(each) - round(math.log2(each))) for each in tensor.scale if each > 0
    ],
    "zero_point": lambda tensor: list(tensor.zero_point),
    "extents": lambda tensor: [each for each in tensor.shape or () if each is not None],
    "maker": lambda tensor: [tensor.maker],
    "users": lambda tensor: [tensor.users],
    "is_output": lambda tensor: [tensor.is_output],
    "open sizes": lambda tensor: [] if tensor.shape is None else [sum(each is None for each in tensor.shape)],
}


def _kernel(operation: Operation) -> Values:
    if "filter_height" in operation.attributes or "filter_width" in operation.attributes:
        return [_number(operation, "filter_height"), _number(operation, "filter_width")]
    if "kernel_shape" in operation.attributes:
        return values_of("attribute.kernel_shape", operation)
    axes = slice(2, None) if operation.type in ("Conv", "ConvTranspose") else slice(1, -1)
    return _shape(operation.inputs[1])[axes]


def _number(operation: Operation, name: str) -> float:
    value = operation.attributes.get(name, _DEFAULTS.get(name, 0))
    return value if isinstance(value, (int, float)) else 0


def _pairs(*names: str, other: str) -> Callable[[Operation], Values]:
    """Returns the values of TFLite's attributes ``names``, or of ONNX's ``other``."""

    def pairs(operation: Operation) -> Values:
        found = values_of(f"attribute.{other}", operation)
        return found or [number for name in names if (number := _number(operation, name))]

    return pairs


def _groups(operation: Operation) -> Values:
    """Groups of a convolution; TFLite has those whose filters take a part of the channels."""
    if operation.type in ("Conv", "ConvTranspose"):
        return values_of("attribute.group", operation)
    return [_shape(operation.inputs[0])[-1] // _shape(operation.inputs[1])[-1]]


def _group_channels(operation: Operation) -> Values:
    """Channels of the input and of the result in each group; none for one group."""
    if operation.type == "ConvTranspose":
        (channels, *_), (groups, *_) = _shape(operation.inputs[1]), [*_groups(operation), 1]
        return [channels // int(groups), _shape(operation.inputs[1])[1]] if groups != 1 else []
    channels, (filters, *_, part) = _shape(operation.inputs[0])[-1], _shape(operation.inputs[1])
    return [part, filters * part // channels] if part < channels else []


def _broadcast_batches(operation: Operation) -> Values:
    first, second = _shape(operation.inputs[0])[:-2], _shape(operation.inputs[1])[:-2]
    return [first != second and bool(second)]


def _axes(operation: Operation) -> list[int]:
    """The reduced axes, not negative."""
    axes, rank = operation.inputs[1], len(_shape(operation.inputs[0]))
    assert axes is not None
    if axes.read is None:
        raise ValueError
    return sorted(int(each) % max(rank, 1) for each in np.ravel(axes.read()))


def _four(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns a shape with axes of one before it, up to four."""
    return (1,) * (4 - len(shape)) + shape


def _reduced_batch(operation: Operation) -> Values:
    return [_four(_shape(operation.inputs[0]))[0]]


def _depth_reduction(operation: Operation) -> Values:
    """Whether the last axis is reduced, of a tensor with several rows, columns and channels."""
    shape = _shape(operation.inputs[0])
    return [len(shape) - 1 in _axes(operation) and min(_four(shape)[-3:]) > 1]


def _resize_scales(operation: Operation) -> list[tuple[int, int]]:
    """(result, operand) of height and width, as the option of corners counts them."""
    x, y = _shape(operation.inputs[0]), _shape(operation.outputs[0])
    less = int(bool(operation.attributes.get("align_corners")))
    return [(y[axis] - less, x[axis] - less) for axis in (1, 2)]


def _resize_factor(operation: Operation) -> Values:
    x, y = _shape(operation.inputs[0]), _shape(operation.outputs[0])
    if x == y or x[1:3] == (1, 1):
        return []
    scales = _resize_scales(operation)
    return [made / given for made, given in scales if given] if scales else []


def _transpose_conv_excess(operation: Operation) -> Values:
    """How far results of TRANSPOSE_CONV are larger than strides and kernel alone make them."""
    x, kernel, y = _shape(operation.inputs[2]), _shape(operation.inputs[1]), _shape(operation.outputs[0])
    strides = int(_number(operation, "stride_h")), int(_number(operation, "stride_w"))
    is_same = operation.attributes.get("padding", "SAME") == "SAME"
    wanted = [
        x[axis] * stride + (0 if is_same else kernel[axis] - stride)
        for axis, stride in zip((1, 2), strides, strict=True)
    ]
    return [abs(y[axis] - size) for axis, size in zip((1, 2), wanted, strict=True)]


def _weight_sum(operation: Operation) -> Values:
    """The largest sum of absolute weights, without zero points, of an output channel."""
    weight = operation.inputs[1]
    if weight is None or weight.read is None:
        return []
    data = weight.read().astype(np.int64)
    axis = -1 if operation.type == "DEPTHWISE_CONV_2D" else 0
    zero = weight.zero_point[0] if len(weight.zero_point) == 1 else 0
    others = tuple(each for each in range(data.ndim) if each != axis % max(data.ndim, 1))
    return [int(np.abs(data - zero).sum(axis=others).max(initial=0))]


def _expanded_constant(operation: Operation) -> Values:
    """The first sizes of constants of the largest rank, if that is 2 or 3."""
    ranks = [len(each.shape or ()) for each in operation.given]
    return [
        each.shape[0] or 0
        for each in operation.given
        if each.is_constant
        and each.shape is not None
        and len(each.shape) in (2, 3)
        and len(each.shape) == max(ranks)
    ]


def _output_makers(operation: Operation) -> Values:
    """The type of the operator that computes an operand, where nothing else takes it, it is an output of the
    model, and the other operand is a constant with one row.
    """
    first, second = operation.given
    return [
        x.maker
        for x, other in ((first, second), (second, first))
        if x.is_output and x.users == 1 and other.is_constant and math.prod(_shape(other)[:-1]) == 1
    ]


def _cut_axes(operation: Operation) -> Values:
    x, y = _shape(operation.inputs[0]), _shape(operation.outputs[0])
    return [sum(a != b for a, b in zip(x, y, strict=True))]


def _strided_axes(operation: Operation) -> Values:
    """The axes of a STRIDED_SLICE with steps above 1, from the end: -1 for the last."""
    steps = operation.inputs[3]
    if steps is None or steps.read is None:
        return []
    numbers = np.ravel(steps.read()).tolist()
    return [axis - len(numbers) for axis, step in enumerate(numbers) if step != 1]


def _flat_sizes(operation: Operation) -> Values:
    """(height * width) as NPUs count them: all axes between the first and the last."""
    return [math.prod(_shape(operation.inputs[0])[:-1])]


def _quantized(operation: Operation) -> Values:
    """Whether each computed tensor has quantization parameters."""
    return [all(each.scale for each in operation.computed if each.dtype in ("int8", "uint8", "int16"))]


NAMED: dict[str, Callable[[Operation], Values]] = {
    "inputs": lambda operation: [len(operation.given)],
    "outputs": lambda operation: [len(operation.outputs)],
    "version": lambda operation: [operation.version] if operation.version else [],
    "kernel": _kernel,
    "kernel elements": lambda operation: [math.prod(int(each) for each in _kernel(operation))],
    "kernel height": lambda operation: list(_kernel(operation))[:1],
    "stride": _pairs("stride_h", "stride_w", other="strides"),
    "dilation": _pairs("dilation_h_factor", "dilation_w_factor", other="dilations"),
    "different dilations": lambda operation: [len({*NAMED["dilation"](operation)})],
    "groups": _groups,
    "channels of a group": _group_channels,
    "broadcast batches": _broadcast_batches,
    "one tensor twice": lambda operation: [
        len({each.name for each in operation.given[:2]}) < len(operation.given[:2])
    ],
    "difference of input ranks": lambda operation: [
        abs(len(_shape(operation.inputs[0])) - len(_shape(operation.inputs[1])))
    ],
    "reduced axes": lambda operation: list(_axes(operation)),
    "axes after the reduced": lambda operation: [
        len(_shape(operation.inputs[0])) - 1 - max(_axes(operation))
    ],
    "reduced elements": lambda operation: [
        math.prod(_shape(operation.inputs[0])[axis] for axis in _axes(operation))
    ],
    "longest reduced axis": lambda operation: [
        max((_shape(operation.inputs[0])[axis] for axis in _axes(operation)), default=1)
    ],
    "batch of a reduction": _reduced_batch,
    "reduction over depth": _depth_reduction,
    "scale factor": _resize_factor,
    "scale factors": lambda operation: [len({*_resize_factor(operation)})],
    "excess of the result": _transpose_conv_excess,
    "sum of weights": _weight_sum,
    "first size of a constant": _expanded_constant,
    "maker of an output": _output_makers,
    "cut axes": _cut_axes,
    "strided axes": _strided_axes,
    "rows": _flat_sizes,
    "has scales": _quantized,
    "equal scales": lambda operation: [
        len({(each.scale, each.zero_point) for each in operation.computed if each.scale}) <= 1
    ],
    "equal types": lambda operation: [len({each.dtype for each in operation.computed}) <= 1],
}
