"""RoI pooling (deformable_psroi_pooling, vision.roi_pooling) and NMSKeep."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import modes, sorting, tensor
from tmconvert.frontends.megengine.adapters.values import cast, per_axis, reshaped, static_int
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

FUNCTIONS = Table("megengine.functional.")
OPERATORS = Table("opdef.")
MODULES = Table("megengine.module.deformable_psroi_pooling.")

MAX_BATCH = 64


@FUNCTIONS.add("vision.roi_pooling")
def roi_pooling(g, inp, rois, output_shape, mode="max", scale=1.0):
    """The maximum, or the mean, of each bin of a box; zero for empty bins."""
    boxes, size = cast(g, rois, g.type(inp).dtype), per_axis(g, output_shape, 2)
    if mode.lower() == "max":
        return g.call("torchvision::roi_pool", inp, boxes, size, scale)
    if mode.lower() != "average":
        raise Refusal(f"roi_pooling with mode {mode!r} is not supported", "use 'max' or 'average'")
    height, width = g.type(inp).shape[2:]
    corners = Term(g, modes.applied(g, "ROUND", (Term(g, boxes) * scale).value))
    rows = _parts(g, corners, 2, size[0], height)
    columns = _parts(g, corners, 1, size[1], width)
    images = g.call("aten::index_select", inp, 0, cast(g, g.call("aten::select", boxes, 1, 0), np.int32))
    sums = g.call("aten::matmul", rows.value, images)
    sums = Term(g, g.call("aten::matmul", sums, g.call("aten::permute", columns.value, [0, 1, 3, 2])))
    ones = [Term(g, g.call("aten::sum", part.value, [3], True)) for part in (rows, columns)]
    counts = ones[0] * Term(g, g.call("aten::permute", ones[1].value, [0, 1, 3, 2]))
    return (sums / counts.clamp(min=1)).value


def _parts(g: Emitter, corners: Term, first: int, parts: int, extent: int) -> Term:
    """[K, 1, parts, extent]: 1 for each pixel of an axis that belongs to a bin of a box."""
    count = corners.type.shape[0]
    low, high = (Term(g, _column(g, corners.value, place)) for place in (first, first + 2))
    share = (high - low + 1).clamp(min=1) / parts
    steps = np.arange(parts).reshape(1, 1, -1, 1)
    begin, end = (share * steps).floor() + low, (share * (steps + 1)).ceil() + low
    pixels = g.constant(np.arange(extent), corners.type.dtype)
    inside = g.call(
        "aten::logical_and", g.call("aten::ge", pixels, begin.value), g.call("aten::lt", pixels, end.value)
    )
    assert g.type(inside).shape == (count, 1, parts, extent)
    return Term(g, cast(g, inside, corners.type.dtype))


def _column(g: Emitter, boxes, place: int) -> Any:
    """[K, 1, 1, 1]: one value per box."""
    return reshaped(g, g.call("aten::select", boxes, 1, place), [g.type(boxes).shape[0], 1, 1, 1])


@FUNCTIONS.add("nn.deformable_psroi_pooling")
def deformable_psroi_pooling(
    g, inp, rois, trans, no_trans, part_size, pooled_h, pooled_w, sample_per_part, spatial_scale,
    trans_std=0.1,
):  # fmt: skip
    """The mean of linearly interpolated samples in bins of boxes, which ``trans`` moves.

    Shapes: inp [N, C, H, W], rois [K, 5], trans [K, 2, pooled_h, pooled_w] (x before y), in units of the box
    times ``trans_std`` -> [K, C, pooled_h, pooled_w]. Samples outside do not count.
    """
    part, tall, wide, each = (static_int(g, n) for n in (part_size, pooled_h, pooled_w, sample_per_part))
    extents = g.type(inp).shape[2:]
    count = g.type(rois).shape[0]
    if min(tall, wide, each) < 1 or not (no_trans or part == tall == wide):
        raise Refusal(
            f"psroi pooling of {part} parts to {tall} by {wide} is not supported",
            "part_size, pooled_h and pooled_w must be equal: MegEngine reads wrong elements otherwise",
        )
    places = []
    for axis, parts in enumerate((wide, tall)):
        edges = (modes.applied(g, "ROUND", _column(g, rois, 1 + axis + end)) for end in (0, 2))
        low, high = (Term(g, edge) for edge in edges)
        start = low * spatial_scale - 0.5
        size = ((high + 1) * spatial_scale - 0.5 - start).clamp(min=0.1)
        form = (1, 1, 1, -1) if axis == 0 else (1, 1, -1, 1)
        bins, inner = (part.reshape(form) for part in np.divmod(np.arange(parts * each), each))
        bin_size = size / parts
        place = bin_size * bins + start
        if not no_trans:
            place = place + _moves(g, trans, axis, each) * trans_std * size
        place = place + bin_size / each * inner  # in this order: a sample may be on the edge of the image
        shape = [count, 1, tall * each, wide * each]
        places.append(Term(g, g.call("aten::expand", place.value, shape)))
    inside = _between(g, places[0], extents[1]) * _between(g, places[1], extents[0])
    coordinates = g.call(
        "aten::permute", tensor.concat(g, [place.value for place in places], 1), [0, 2, 3, 1]
    )
    images = cast(g, g.call("aten::select", rois, 1, 0), np.int32)
    taken = g.call("tm::remap", inp, coordinates, images, "replicate", 0.0, "linear")
    summed, counted = (
        Term(g, g.call("aten::avg_pool2d", value, [each, each], [each, each])) * (each * each)
        for value in (g.call("aten::mul", taken, inside.value), inside.value)
    )
    return (summed / counted.clamp(min=1)).value


def _moves(g: Emitter, trans, axis: int, each: int) -> Term:
    """[K, 1, pooled_h each, pooled_w each]: the offset of the samples along an axis."""
    moves = g.call("aten::slice", trans, 1, axis, axis + 1)
    for where in (2, 3):
        moves = g.call("aten::repeat_interleave", moves, each, where) if each > 1 else moves
    return Term(g, moves)


def _between(g: Emitter, place: Term, extent: int) -> Term:
    """One where a coordinate is inside an image of ``extent`` pixels, else zero."""
    bounds = (g.constant(bound, place.type.dtype) for bound in (-0.5, extent - 0.5))
    tests = (
        g.call(op, place.value, bound) for op, bound in zip(("aten::ge", "aten::le"), bounds, strict=True)
    )
    return Term(g, cast(g, g.call("aten::logical_and", *tests), place.type.dtype))


@MODULES.add("DeformablePSROIPooling")
def psroi_module(g, module, inp, rois, trans):
    names = ("no_trans", "part_size", "pooled_h", "pooled_w", "sample_per_part", "spatial_scale", "trans_std")
    return deformable_psroi_pooling(g, inp, rois, trans, *(module.attributes[name] for name in names))


@OPERATORS.add("DeformablePSROIPooling")
def psroi_operator(g, inp, rois, trans, **state):
    """Returns also the counts of samples, which only training uses."""
    return [deformable_psroi_pooling(g, inp, rois, trans, **state), None]


@OPERATORS.add("NMSKeep")
def nms_keep(g, boxes, *, iou_thresh, max_output):
    """Returns [B, max_output] indices of the kept boxes, padded with the last one, and their counts [B].

    Boxes [B, N, 4] come with falling scores, so that the kept ones are in order.
    """
    batch, count, _ = g.type(boxes).shape
    most = static_int(g, max_output)
    if not 0 < batch <= MAX_BATCH or count < 1 or most < 1:
        raise Refusal(f"NMSKeep of {g.type(boxes)} is not supported", "use megengine.functional.vision.nms")
    scores = g.constant(np.arange(count, 0, -1), np.float32)
    made = [
        _kept(g, g.call("aten::select", boxes, 0, i), scores, float(np.float32(iou_thresh)), most)
        for i in range(int(batch))
    ]
    return [tensor.concat(g, list(each), 0) for each in zip(*made, strict=True)]


def _kept(g: Emitter, boxes, scores, threshold: float, most: int) -> tuple[Any, Any]:
    """Returns [1, most] indices of the kept boxes of one image, and their count [1]."""
    count = g.type(boxes).shape[0]
    kept = cast(g, g.call("torchvision::nms", boxes, scores, threshold), np.int32)
    numbers = Term(g, g.constant(np.arange(count), np.int32))
    flags = g.call("aten::any", g.call("aten::eq", reshaped(g, kept, [-1, 1]), numbers.value), [0])
    keys = numbers + (1 - Term(g, cast(g, flags, np.int32))) * count
    total = Term(g, g.call("aten::sum", cast(g, flags, np.int32), [0], False)).clamp(max=most)
    places = g.call("aten::minimum", g.constant(np.arange(most), np.int32), (total - 1).value)
    found = g.call("aten::index_select", sorting.sort(g, keys.value)[0], 0, places)
    return reshaped(g, found, [1, most]), reshaped(g, total.value, [1])
