"""torchvision::nms and batched_nms: non-maximum suppression."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.symbolic.data_dependent import found
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.op import INTEGERS, Op, Tensor, boolean, integer, number
from tmconvert.symbolics.ops.reductions.sort import order_of, topk_tflite

Array = np.ndarray

INT64 = np.dtype(np.int64)
MOST_CLASSES = 256  # of all images, whose boxes are suppressed one class after the other
MOST = (1 << 31) - 1  # boxes that a file may keep


def _result(boxes: TensorType, scores: TensorType, **others: Any) -> TensorType:
    if boxes.shape[1] != 4 or scores.shape != boxes.shape[:1] or boxes.dtype != scores.dtype:
        raise ValueError(f"boxes {boxes} and scores {scores} do not fit each other")
    if "idxs" in others and others["idxs"].shape != scores.shape:
        raise ValueError(f"{others['idxs']} do not fit the boxes {boxes}")
    return TensorType(INT64, (found(scores.shape[0]),))


_BOXES = [
    Tensor("boxes", ("float32", "float64"), ranks=(2,)),
    Tensor("scores", ("float32", "float64"), ranks=(1,)),
]
nms = Op("torchvision::nms", args=[*_BOXES, number("iou_threshold")], result=_result)
batched_nms = Op(
    "torchvision::batched_nms",
    args=[*_BOXES, Tensor("idxs", INTEGERS, ranks=(1,)), number("iou_threshold")],
    result=_result,
)
OPS = [nms, batched_nms]


def _rows(boxes: TensorType, scores: TensorType, **options: Any) -> TensorType:
    if boxes.shape[2] != 4 or (scores.shape[0], scores.shape[2]) != boxes.shape[:2]:
        raise ValueError(f"boxes {boxes} and scores {scores} do not fit each other")
    return TensorType(INT64, (found(scores.size), 3))


nms_of_classes = Op(
    "tm::nms_of_classes",
    args=[
        Tensor("boxes", ("float32",), ranks=(3,)), Tensor("scores", ("float32",), ranks=(3,)),
        integer("most"), number("iou_threshold"), number("score_threshold", None),
        boolean("is_centre", False),
    ],
    result=_rows,
)  # fmt: skip
OPS.append(nms_of_classes)


@nms_of_classes.reference
def nms_of_classes_ref(
    boxes: Array, scores: Array, most: int, iou_threshold: float, score_threshold: float | None,
    is_centre: bool,
) -> Array:  # fmt: skip
    """Returns rows of (image, class, box) for at most ``most`` boxes of each class, the best first.

    Only scores above ``score_threshold`` count. Shapes: boxes [N, K, 4] of two opposite corners each, or of
    the centre and the size if ``is_centre``, scores [N, C, K]. Source: the page of NonMaxSuppression in
    onnx/docs.
    """
    first, second = boxes[..., :2], boxes[..., 2:]
    ends = (
        (first - second / 2, first + second / 2)
        if is_centre
        else (np.minimum(first, second), np.maximum(first, second))
    )
    boxes, rows = np.concatenate(ends, -1), []
    for image, class_ in np.ndindex(*scores.shape[:2]):
        marks = scores[image, class_]
        above = marks > (-np.inf if score_threshold is None else np.float32(score_threshold))
        places = np.flatnonzero(above)
        kept = places[nms_ref(boxes[image][places], marks[places], iou_threshold)][:most]
        rows += [(image, class_, place) for place in kept]
    return np.array(rows, INT64).reshape(-1, 3)


@nms_of_classes.onnx(since=10)
def nms_of_classes_onnx10(g, boxes, scores, most, iou_threshold, score_threshold, is_centre):
    limits = [iou_threshold] if score_threshold is None else [iou_threshold, score_threshold]
    constants = [g.const(np.array([limit], np.float32)) for limit in limits]
    shape = g.result_types[0].shape
    options = {"center_point_box": 1} if is_centre else {}
    given = boxes, scores, g.ints([most]), *constants
    return g.op("NonMaxSuppression", *given, shape=shape, dtype=INT64, **options)


@nms.reference
def nms_ref(boxes: Array, scores: Array, iou_threshold: float) -> Array:
    """Returns indices of the kept boxes (x1, y1, x2, y2), the highest score first.

    Of equal scores the first box is the better one. A box goes where its intersection with a kept one is more
    than ``iou_threshold`` of their union. Source: torchvision.ops.nms.
    """
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    waiting, kept = order_of(scores, 0, descending=True), []
    while waiting.size:
        best, waiting = waiting[0], waiting[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[waiting, :2])
        high = np.minimum(boxes[best, 2:], boxes[waiting, 2:])
        common = np.maximum(high - low, 0).prod(1, dtype=boxes.dtype)
        overlap = common / (areas[best] + areas[waiting] - common)
        waiting = waiting[~(overlap.astype(np.float64) > iou_threshold)]
    return np.array(kept, INT64)


@nms.onnx(since=10)
def nms_onnx10(g, boxes, scores, iou_threshold):
    if boxes.dtype != np.float32:
        g.refuse("ONNX NonMaxSuppression supports float32 boxes only", "convert them to float32 in the model")
    if not 0 <= iou_threshold <= 1:
        g.refuse(f"ONNX NonMaxSuppression supports thresholds from 0 to 1, not {iou_threshold}")
    count, (kept,) = boxes.shape[0], g.result_types[0].shape
    threshold = np.float32(iou_threshold)
    if float(threshold) > iou_threshold:  # a float32 is above the number where it is above the one below it
        threshold = np.nextafter(threshold, np.float32(-1))
    chosen = g.op(
        "NonMaxSuppression",
        g.op("Reshape", boxes, g.ints([1, -1, 4]), shape=(1, count, 4)),
        g.op("Reshape", scores, g.ints([1, 1, -1]), shape=(1, 1, count)),
        g.ints([MOST]),
        g.const(np.array([threshold], np.float32)),
        shape=(kept, 3),
        dtype=INT64,
    )
    return g.op("Gather", chosen, g.ints(2), axis=1, shape=(kept,))


@nms.tflite()
def nms_tflite(g, boxes, scores, iou_threshold):
    """Handles NON_MAX_SUPPRESSION_V4's undefined order of equal scores, and its repeated selection of empty
    boxes.

    It is given ranks for scores, and in the place of such a box, which meets none, one apart from all.
    """
    if iou_threshold < 0:
        g.refuse(f"TFLite's NON_MAX_SUPPRESSION_V4 supports non-negative thresholds, not {iou_threshold}")
    (count, _), (kept,), kind = boxes.shape, g.result_types[0].shape, boxes.dtype
    order = topk_tflite(g, scores, count, 0, True, True)[1]
    if iou_threshold >= 1:  # no boxes overlap by more
        return g.cast(order, INT64)
    boxes = g.op("GATHER", boxes, order, axis=0, shape=(count, 4))
    ranks = g.op("RANGE", *(g.ints(number) for number in (0, count, 1)), shape=(count,))
    ranks = g.cast(ranks, kind)
    low, high = (
        g.op("SLICE", boxes, g.ints([0, first]), g.ints([count, 2]), shape=(count, 2)) for first in (0, 2)
    )
    size = g.op("REDUCE_MIN", g.op("SUB", high, low), g.ints([1]), keep_dims=True, shape=(count, 1))
    has_area = g.op("GREATER", size, g.const(np.array(0, kind)), dtype=bool)
    far = g.op("REDUCE_MAX", boxes, g.ints([0, 1]), keep_dims=False, shape=())
    column = idioms.tflite.reshaped(g, g.op("MUL", ranks, g.const(np.array(2, kind))), (count, 1))
    corners = g.op("ADD", g.op("ADD", column, far), g.const(np.array([[1, 1, 2, 2]], kind)), shape=(count, 4))
    boxes = g.op("SELECT_V2", has_area, boxes, corners, dtype=kind, shape=(count, 4))
    # it drops a box at the threshold, too
    threshold = np.float32(iou_threshold)
    if float(threshold) <= iou_threshold:
        threshold = max(np.nextafter(threshold, np.float32(1)), np.finfo(np.float32).tiny)
    limits = [g.const(np.array(number, np.float32)) for number in (threshold, -np.inf)]
    options = {"shapes": [(count,), ()], "dtype": np.int32}
    found_, number = g.op(
        "NON_MAX_SUPPRESSION_V4", boxes, g.op("NEG", ranks), g.ints(count), *limits, **options
    )
    found_ = g.op("SLICE", found_, g.ints([0]), idioms.tflite.reshaped(g, number, (1,)), shape=(kept,))
    return g.cast(g.op("GATHER", order, found_, axis=0, shape=(kept,)), INT64)


@batched_nms.reference
def batched_nms_ref(boxes: Array, scores: Array, idxs: Array, iou_threshold: float) -> Array:
    """As nms within each class: boxes of other classes are moved apart. Source: torchvision's batched_nms."""
    far = boxes.max(initial=0) + boxes.dtype.type(1)
    return nms_ref(boxes + (idxs.astype(boxes.dtype) * far)[:, np.newaxis], scores, iou_threshold)


@batched_nms.decompose(onnx=10)
def batched_nms_moved(g, boxes, scores, idxs, iou_threshold):
    type_ = g.type(boxes)
    # of no boxes there is no largest coordinate
    corners = g.call("aten::cat", [boxes, g.constant(np.zeros((1, 4), type_.dtype))], 0)
    far = g.call("aten::add", g.call("aten::amax", corners, [0, 1]), g.constant(1, type_.dtype))
    moves = g.call("aten::mul", g.call("aten::to", idxs, dtype=type_.dtype.name), far)
    moved = g.call("aten::add", boxes, g.call("aten::reshape", moves, [type_.shape[0], 1]))
    return g.call("torchvision::nms", moved, scores, iou_threshold)


def kept_boxes(g: Any, boxes: Any, scores: Any, threshold: Any, overlap: float, most: Any) -> Any:
    """Returns the int64 indices of at most ``most`` boxes that are kept, the highest score first.

    ``boxes`` [n, 4] have the smaller corner first. Only boxes of a higher score than ``threshold`` count, all
    with None; one that shares more than ``overlap`` of the union with a better one is left out.
    """
    places = None
    if threshold is not None:
        limit = Term(g, g.call("aten::reshape", threshold, [])).to(g.type(scores).dtype)
        above = g.call("aten::nonzero", g.call("aten::gt", scores, limit.value))
        places = g.call("aten::select", above, 1, 0)
        boxes, scores = (g.call("aten::index_select", each, 0, places) for each in (boxes, scores))
    kept = g.call("torchvision::nms", boxes, scores, overlap)
    kept = g.call("aten::slice", kept, 0, 0, min(most, MOST), 1)
    if places is None:
        return kept
    return g.call("aten::index_select", Term(g, places).to(np.int64).value, 0, kept)


@nms_of_classes.decompose(onnx=10)
def suppressed_one_by_one(g, boxes, scores, most, iou_threshold, score_threshold, is_centre):
    """Emits the suppression of each class of each image, whose numbers are static."""
    images, classes, _ = g.type(scores).shape
    if is_symbolic((images, classes)) or images * classes > MOST_CLASSES:
        raise Refusal(
            f"NonMaxSuppression of {images} images and {classes} classes: only ONNX has an operator"
        )
    limit = None if score_threshold is None else g.constant(score_threshold, np.float32)
    first, second = (Term(g, g.call("aten::slice", boxes, 2, start, start + 2, 1)) for start in (0, 2))
    half = second * 0.5
    ends = (first - half, first + half) if is_centre else (first.minimum(second), first.maximum(second))
    boxes, rows = g.call("aten::cat", [end.value for end in ends], 2), []
    for image in range(images):
        own, marks = (g.call("aten::select", each, 0, image) for each in (boxes, scores))
        for number_ in range(classes):
            mark = g.call("aten::select", marks, 0, number_)
            chosen = kept_boxes(g, own, mark, limit, iou_threshold, most)
            count = list(g.type(chosen).shape)
            labels = [g.call("aten::expand", g.constant(each), count) for each in (image, number_)]
            columns = [g.call("aten::reshape", each, [*count, 1]) for each in (*labels, chosen)]
            rows.append(g.call("aten::cat", columns, 1))
    return rows[0] if len(rows) == 1 else g.call("aten::cat", rows, 0)


for _op in OPS:
    _op.unsupported("caffe", "a Caffe net has static sizes only")
