"""megengine.functional.vision: boxes, and images against each other; elements chosen by a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions.sorting import sort
from tmconvert.frontends.megengine.adapters.values import cast, reshaped, static_int
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.indexing import places_of

FUNCTIONS = Table("megengine.functional.")
OPERATORS = Table("opdef.")

MAX_DISPLACEMENTS = 1024


@FUNCTIONS.add("vision.correlation")
def correlation(
    g, data1, data2, kernel_size=1, max_displacement=1, stride1=1, stride2=1, pad_size=0, is_multiply=True
):
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

    def window(image, down: int, across: int) -> Any:
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


@FUNCTIONS.add("vision.nms")
def nms(g, boxes, scores, iou_thresh, max_output=None):
    """Boxes of equal scores come in the order of argsort. The threshold is a float32."""
    if g.type(boxes).shape != (*g.type(scores).shape, 4):
        raise Refusal(f"boxes {g.type(boxes)} and scores {g.type(scores)} do not fit each other")
    values, order = sort(g, scores, True)
    boxes = g.call("aten::index_select", cast(g, boxes, np.float32), 0, order)
    kept = g.call("torchvision::nms", boxes, cast(g, values, np.float32), float(np.float32(iou_thresh)))
    if max_output is not None:
        kept = g.call("aten::slice", kept, 0, 0, static_int(g, max_output, "max_output"))
    return g.call("aten::index_select", order, 0, kept)


@FUNCTIONS.add("tensor.cond_take")
def cond_take(g, mask, x):
    """Returns the elements where the mask is true, and their flat indices."""
    if g.type(mask).dtype.kind != "b" or g.type(mask).shape != g.type(x).shape:
        raise Refusal(f"{g.type(mask)} is not a valid mask for {g.type(x)}")
    places = places_of(g, reshaped(g, mask, [-1]))[0]
    return [g.call("aten::index_select", reshaped(g, x, [-1]), 0, places), cast(g, places, np.int32)]


OPERATORS.add("CondTake")(lambda g, x, mask: cond_take(g, mask, x))
