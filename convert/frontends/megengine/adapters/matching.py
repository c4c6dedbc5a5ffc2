"""megengine.functional.vision: boxes, and images against each other; what has results of unknown size."""

from __future__ import annotations

from typing import Any, NoReturn

from ....errors import Refusal
from ....ir.emitter import Emitter
from .table import Table
from .values import cast, per_axis, static_int

FUNCTIONS = Table("megengine.functional.")

MAX_DISPLACEMENTS = 1024


@FUNCTIONS.add("vision.roi_pooling")
def roi_pooling(
    g: Emitter, inp: Any, rois: Any, output_shape: Any, mode: str = "max", scale: float = 1.0
) -> Any:
    if mode.lower() != "max":
        raise Refusal(f"roi_pooling with mode {mode!r} is not supported", "use 'max', or roi_align")
    return g.call(
        "torchvision::roi_pool", inp, cast(g, rois, g.type(inp).dtype), per_axis(output_shape, 2), scale
    )


@FUNCTIONS.add("vision.correlation")
def correlation(
    g: Emitter,
    data1: Any,
    data2: Any,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
) -> Any:
    """For each displacement of the second image, the mean of products (or distances) in a window."""
    kernel, reach, step = static_int(g, kernel_size), static_int(g, max_displacement), static_int(g, stride2)
    shape = g.type(data1).shape
    if g.type(data2).shape != shape or len(shape) != 4 or min(kernel, step, stride1) < 1 or kernel % 2 == 0:
        raise Refusal(f"correlation of {g.type(data1)} and {g.type(data2)} by {kernel_size} is not supported")
    around = [0, 0, 0, 0, *[pad_size] * 4]
    images = [g.call("aten::pad", image, around) for image in (data1, data2)] if pad_size else [data1, data2]
    extents = [extent + 2 * pad_size for extent in shape[2:]]
    counts = [-(-(extent - 2 * (reach + kernel // 2)) // stride1) for extent in extents]
    used = [(count - 1) * stride1 + kernel for count in counts]
    moves = range(-(reach // step) * step, reach + 1, step)
    if min(counts) < 1 or len(moves) ** 2 > MAX_DISPLACEMENTS:
        raise Refusal(f"correlation of {extents} by {len(moves)} displacements is not supported")

    def window(image: Any, down: int, across: int) -> Any:
        rows = g.call("aten::slice", image, 2, reach + down, reach + down + used[0])
        return g.call("aten::slice", rows, 3, reach + across, reach + across + used[1])

    first, parts = window(images[0], 0, 0), []
    for down in moves:
        for across in moves:
            second = window(images[1], down, across)
            if is_multiply:
                matched = g.call("aten::mul", first, second)
            else:
                matched = g.call("aten::abs", g.call("aten::sub", first, second))
            parts.append(g.call("aten::mean", matched, [1], True))
    maps = g.call("aten::cat", parts, 1)
    if kernel == 1 and stride1 == 1:
        return maps
    return g.call("aten::avg_pool2d", maps, [kernel, kernel], [stride1, stride1])


def _of_unknown_size(name: str, instead: str) -> None:
    def adapter(g: Emitter, *args: Any, **kwargs: Any) -> NoReturn:
        raise Refusal(f"the size of what {name} gives depends on the data, which is not supported", instead)

    FUNCTIONS.add(name)(adapter)


_of_unknown_size("vision.nms", "end the model before it, and select boxes where the model is used")
_of_unknown_size("tensor.cond_take", "use where, which keeps the shape")


@FUNCTIONS.add("vision.nvof")
def nvof(g: Emitter, src: Any, precision: int = 1) -> NoReturn:
    raise Refusal("nvof needs special hardware of NVIDIA, which no target has", "compute the flow apart")
