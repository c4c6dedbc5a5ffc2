"""Boxes of detectors, and their mean average precision by the rules of COCO, which pycocotools computes.

Three forms of outputs are read: boxes, labels and scores as those of torchvision; logits and boxes as those
of DETR and its kind; and one tensor as those of ultralytics, with and without suppression in the file.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.calibration.settings import Resize
from tmconvert.calibration.unfit import unfit
from tmconvert.symbolics.registry import catalogue

MOST, LEAST_SCORE, OVERLAP = 300, 0.001, 0.7  # boxes of an image as ultralytics validates
_LABELS = "the labels are a file in COCO's format: images, annotations and categories"


class Boxes(NamedTuple):
    """Boxes ``corners`` [n, 4] (left, top, right, bottom in pixels of the input), scores and classes [n].

    ``is_id`` states that the classes are ids of categories, rather than their numbers in the order of ids.
    """

    corners: np.ndarray
    scores: np.ndarray
    classes: np.ndarray
    is_id: bool


def read_labels(path: Path) -> Any:
    """Returns the labels as pycocotools has them. Raises UsageError TM6033."""
    try:
        from pycocotools.coco import COCO
    except ImportError as error:
        help = "pip install 'tmconvert[boxes]'"
        raise unfit("boxes require pycocotools, which is not installed", help) from error
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found = COCO(str(path))
        if not (found.getImgIds() and found.getCatIds()):
            raise KeyError("images or categories")
        for each in found.loadImgs(found.getImgIds()):
            if missing := {"file_name", "height", "width"} - set(each):
                raise KeyError(f"{', '.join(sorted(missing))} of the image {each['id']}")
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise unfit(f"{path} cannot be read: {error!r:.200}", _LABELS) from error
    return found


def boxes_of(outputs: Mapping[str, np.ndarray], size: tuple[int, int], ids: Sequence[int]) -> Boxes | None:
    """Returns the boxes in the outputs for one image of ``size`` (height, width); None for other outputs."""
    names = sorted(outputs, key=lambda name: "box" not in name.lower())  # classes may be four, too
    if len(outputs) == 1:
        whole = outputs[names[0]]
        array = whole[0] if whole.ndim == 3 else whole
        return _of_one_tensor(array, len(ids)) if array.ndim == 2 else None
    arrays = [outputs[name] for name in names]
    corners = next((each for each in arrays if each.ndim in (2, 3) and each.shape[-1] == 4), None)
    if corners is None:
        return None
    others = [each for each in arrays if each is not corners]
    if corners.ndim == 3:
        corners, others = corners[0], [each[0] for each in others]
    lists = [each for each in others if each.ndim == 1 and len(each) == len(corners)]
    if len(lists) == 2:
        lists.sort(key=lambda each: each.dtype.kind == "f")  # labels, then scores
        return Boxes(corners, lists[1], lists[0].astype(np.int64), True)
    logits = next((each for each in others if each.ndim == 2 and len(each) == len(corners)), None)
    return None if logits is None else _of_logits(logits, corners, size, ids)


def _of_one_tensor(array: np.ndarray, classes: int) -> Boxes | None:
    """Rows of corners, score and class, or columns of centres, sizes and scores of classes."""
    if array.shape[1] == 6 and np.array_equal(array[:, 5], np.rint(array[:, 5])):
        return Boxes(array[:, :4], array[:, 4], np.rint(array[:, 5]).astype(np.int64), False)
    if len(array) != 4 + classes:
        return None
    scores, best = array[4:].max(axis=0), array[4:].argmax(axis=0)
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > LEAST_SCORE][: 10 * MOST]
    corners, scores, best = _corners(array[:4, order].T), scores[order], best[order]
    # boxes of different classes do not overlap where each class has an area of its own
    apart = corners + best[:, None] * (np.abs(corners).max(initial=0) + 1)
    kept = catalogue()["torchvision::nms"].evaluate([apart, scores], {"iou_threshold": OVERLAP})
    return Boxes(corners[kept], scores[kept], best[kept], False)


def _of_logits(logits: np.ndarray, boxes: np.ndarray, size: tuple[int, int], ids: Sequence[int]) -> Boxes:
    """The last class is that of no object where there is one more than labels or ids can be."""
    wide, count = logits.astype(np.float64), logits.shape[1]
    if count in (len(ids) + 1, max(ids) + 2):
        exponentials = np.exp(wide - wide.max(axis=1, keepdims=True))
        chances, count = (exponentials / exponentials.sum(axis=1, keepdims=True))[:, :-1], count - 1
    else:
        chances = 1 / (1 + np.exp(-wide))
    best = np.argsort(-chances.reshape(-1), kind="stable")[:MOST]
    corners = _corners(boxes[best // count]) * np.tile(size[::-1], 2)
    return Boxes(corners, chances.reshape(-1)[best], best % count, count != len(ids))


def _corners(boxes: np.ndarray) -> np.ndarray:
    """Returns left, top, right and bottom of boxes of centre and size."""
    centres, halves = boxes[:, :2], boxes[:, 2:] / 2
    return np.concatenate([centres - halves, centres + halves], axis=1)


def in_picture(
    corners: np.ndarray, size: tuple[int, int], picture: tuple[int, int], resize: Resize
) -> np.ndarray:
    """Returns corners in pixels of the picture, which was resized to the ``size`` of the input.

    >>> in_picture(np.array([[0, 10, 40, 30]]), (40, 40), (20, 40), "pad").tolist()
    [[0.0, 0.0, 40.0, 20.0]]
    """
    scales = np.array(size[::-1]) / picture[::-1]
    if resize != "stretch":
        scales = np.full(2, scales.max() if resize == "crop" else scales.min())
    margins = (np.array(size[::-1]) - scales * picture[::-1]) / 2
    found: np.ndarray = (corners - np.tile(margins, 2)) / np.tile(scales, 2)
    return found


def precisions(labels: Any, found: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Returns the mean average precision over overlaps from 0.5 to 0.95, and that at 0.5."""
    from pycocotools.cocoeval import COCOeval

    if not found:
        return 0.0, 0.0
    with contextlib.redirect_stdout(io.StringIO()):
        rated = COCOeval(labels, labels.loadRes(list(found)), "bbox")
        rated.evaluate()
        rated.accumulate()
        rated.summarize()
    return float(rated.stats[0]), float(rated.stats[1])
