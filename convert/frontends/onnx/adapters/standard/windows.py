"""Parameters of windows: strides, dilations, and padding in its three spellings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapters.values import rank
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.clamps import maximum, minimum
from tmconvert.ir.symbolic.dims import same_size


class Window(NamedTuple):
    """A window over the spatial axes; padding at the ``begin`` and ``end`` of each."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    begin: list[int]
    end: list[int]

    @property
    def is_even(self) -> bool:
        """Whether both ends of each axis have the same padding."""
        return all(map(same_size, self.begin, self.end))


def window(
    g: Emitter, x, kernel: Sequence[int], strides: Sequence[int] | None, dilations: Sequence[int] | None,
    pads: Sequence[int] | None, auto_pad: str,
) -> Window:  # fmt: skip
    """Returns the window of an operator on ``x`` [N, C, ...]. Raises Refusal."""
    axes = rank(g, x) - 2
    sizes, steps = list(kernel), list(strides or [1] * axes)
    spread, padding = list(dilations or [1] * axes), list(pads or [0] * 2 * axes)
    if (len(sizes), len(steps), len(spread), len(padding)) != (axes, axes, axes, 2 * axes):
        raise Refusal(f"the attributes of a window do not fit a tensor of rank {axes + 2}")
    begin, end = padding[:axes], padding[axes:]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        extents = g.type(x).shape[2:]
        whole = [
            _same(extent, size, step, each)
            for extent, size, step, each in zip(extents, sizes, steps, spread, strict=True)
        ]
        small, large = [each // 2 for each in whole], [each - each // 2 for each in whole]
        begin, end = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    elif auto_pad == "VALID":
        begin = end = [0] * axes
    elif auto_pad not in ("NOTSET", ""):
        raise Refusal(f"auto_pad {auto_pad!r} is unknown")
    return Window(sizes, steps, spread, begin, end)


def _same(extent: Any, size: int, stride: int, dilation: int) -> Any:
    """Returns the padding with which there is a window for each ``stride`` elements."""
    reach = (size - 1) * dilation + 1
    if stride == 1:
        return reach - 1
    count = -(-extent // stride)
    return maximum((count - 1) * stride + reach - extent, 0)


def is_zero(sizes: Sequence[Any]) -> bool:
    """Whether all sizes are 0; open ones, which may be, are not."""
    return all(isinstance(size, int) and size == 0 for size in sizes)


def padded(g: Emitter, x, begin: Sequence[Any], end: Sequence[Any], value: float) -> Any:
    """Pads the spatial axes."""
    if is_zero(begin) and is_zero(end):
        return x
    pairs = [each for pair in zip(begin, end, strict=True) for each in pair]
    value = value if g.type(x).dtype.kind == "f" else int(value)
    return g.call("aten::pad", x, [0] * 4 + pairs, "constant", value)


def ceil_end(extent: Any, size: int, stride: int, dilation: int, begin: Any, end: Any) -> Any:
    """Returns the padding at the end with which ceil_mode has whole windows; none begins in the padding."""
    reach = (size - 1) * dilation + 1
    count = minimum(-(-(extent + begin + end - reach) // stride) + 1, -(-(extent + begin) // stride))
    return maximum((count - 1) * stride + reach - extent - begin, end)


def product(sizes: Sequence[int]) -> int:
    return math.prod(sizes)
