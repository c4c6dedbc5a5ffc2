"""Shared result type rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.symbolic.journal import validated
from tmconvert.ir.types import Ints, Shape, TensorType


def same_as(name: str) -> Callable[..., TensorType]:
    """The result has the type of the argument ``name``."""

    def rule(**arguments: Any) -> TensorType:
        return arguments[name]

    return rule


def fits(value: int | float, dtype: np.dtype) -> bool:
    """Whether a tensor of ``dtype`` can hold ``value``; a float tensor holds it rounded."""
    if dtype.kind == "f":
        return True
    if dtype.kind == "b":
        return value in (0, 1)
    limits = np.iinfo(dtype)
    return float(value).is_integer() and limits.min <= value <= limits.max


def same_with(*names: str) -> Callable[..., TensorType]:
    """The type of ``x``; the attributes ``names`` must be numbers that fit it."""

    def rule(x: TensorType, **numbers: float) -> TensorType:
        wrong = [numbers[name] for name in names if not fits(numbers[name], x.dtype)]
        if wrong:
            raise ValueError(f"{wrong[0]} does not have the type of {x}")
        return x

    return rule


def broadcast(*names: str, dtype: str | None = None) -> Callable[..., TensorType]:
    """Equal dtypes, shapes broadcast as in NumPy; ``dtype`` overrides the element type of the result."""

    def rule(**arguments: Any) -> TensorType:
        types = [arguments[name] for name in names]
        if len({type_.dtype for type_ in types}) > 1:
            raise TypeError(f"different dtypes: {', '.join(map(str, types))}")
        shape = broadcast_shapes(*(type_.shape for type_ in types))
        return TensorType(np.dtype(dtype) if dtype else types[0].dtype, shape)

    return rule


def normalized_axis(axis: int, rank: int) -> int:
    """Returns a non-negative axis. Raises ValueError when it is out of range."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def kernel_attribute(weight: Any) -> list[int] | None:
    """Returns ONNX's kernel_shape; None for a kernel of an open size, which a runtime takes of the weight."""
    taps = list(weight.shape[2:])
    return None if is_symbolic(taps) else taps


def window_extent(
    extent: int, kernel: int, stride: int, padding: int, dilation: int = 1, *, ceil_mode: bool = False
) -> int:
    """Returns the number of outputs of a sliding window along one axis.

    floor((extent + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, or ceil; then the last
    window is dropped if it starts in the padding behind the end. Raises ValueError if none fits.
    Source: torch.nn.MaxPool2d, ONNX MaxPool-12 and later.
    """
    reach = extent + 2 * padding - dilation * (kernel - 1) - 1
    if validated(lambda: reach < 0):
        raise ValueError(f"a window of {dilation * (kernel - 1) + 1} is larger than {extent} + 2 x {padding}")
    if not ceil_mode:
        return reach // stride + 1
    # the last window starts before the end, so that at most ceil((extent + padding) / stride) count
    return -(-(extent + min(reach - extent + stride, padding)) // stride)


def overhang(extent: Any, outputs: Any, kernel: int, stride: int, padding: int, dilation: int = 1) -> Any:
    """Returns how far the last of ``outputs`` windows extends beyond the end; may be negative."""
    return (outputs - 1) * stride - padding + dilation * (kernel - 1) + 1 - extent


def overhangs(
    extents: Sequence[int], outputs: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int],
) -> Ints:  # fmt: skip
    """Returns ``overhang`` of each axis."""
    return list(map(overhang, extents, outputs, kernel, stride, padding, dilation))


def end_padding(
    x: Shape, outputs: Shape, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> Ints:
    """Returns the end padding with which pooling of the shape ``x`` without ceil_mode gives ``outputs``.

    The least; of a symbolic size one that serves all: with it ``window_extent`` rounds down to what it
    rounds up to without.
    """
    if not ceil_mode:
        return padding
    ends = overhangs(x[2:], outputs[2:], kernel, stride, padding, dilation)
    return [
        max(0, end)
        if isinstance(end, int)
        else min(padding[i] + stride[i], dilation[i] * (kernel[i] - 1) + 1) - 1
        for i, end in enumerate(ends)
    ]


def onnx_padding(kernel: Ints, padding: Ints, after: Ints) -> dict[str, Any]:
    """Returns the attributes of MaxPool; ceil_mode where the padding exceeds ONNX Runtime's limit."""
    rows = list(zip(kernel, padding, after, strict=True))
    if all(amount < size for size, _, amount in rows):
        return {"pads": padding + after}
    ends = [amount if amount < size else least for size, least, amount in rows]
    return {"pads": padding + ends, "ceil_mode": 1}


def pooled(
    x: TensorType, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> TensorType:
    """Returns the type of pooling over spatial axes. Raises ValueError if a window may lie in the padding."""
    axes = len(kernel_size)
    spatial = []
    for i in range(axes):
        reach = dilation[i] * (kernel_size[i] - 1) + 1
        amounts = (kernel_size[i], stride[i], dilation[i])  # not their least: sizes would be compared
        if any(amount < 1 for amount in amounts) or not 0 <= padding[i] < reach:
            raise ValueError(
                f"kernel {kernel_size}, stride {stride} and dilation {dilation} must be positive, "
                f"and the padding {padding} smaller than the window"
            )
        spatial.append(
            window_extent(
                x.shape[2 + i], kernel_size[i], stride[i], padding[i], dilation[i], ceil_mode=ceil_mode
            )
        )
    return TensorType(x.dtype, (*x.shape[:2], *spatial))


def around(shape: Shape, first: int, end: int) -> tuple[int, int, int]:
    """Returns the numbers of elements of the axes before [first, end), of these axes, and of those after."""
    before, within, after = (math.prod(part) for part in (shape[:first], shape[first:end], shape[end:]))
    return before, within, after
