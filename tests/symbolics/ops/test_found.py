"""What is special of results whose size depends on the data."""

from __future__ import annotations

import numpy as np
import pytest

from tests.symbolics.ops.harness import assert_op_matches, normal, reference, refusal
from tests.symbolics.ops.samples.found import boxes


def kept_by_loops(rows: np.ndarray, scores: np.ndarray, threshold: float) -> list[int]:
    order = sorted(range(len(rows)), key=lambda i: -scores[i])
    areas = [(x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in rows]
    kept: list[int] = []
    for i in order:
        for j in kept:
            width = max(np.float32(0), min(rows[i, 2], rows[j, 2]) - max(rows[i, 0], rows[j, 0]))
            height = max(np.float32(0), min(rows[i, 3], rows[j, 3]) - max(rows[i, 1], rows[j, 1]))
            union = areas[i] + areas[j] - width * height
            if union and float(width * height / union) > threshold:
                break
        else:
            kept.append(i)
    return kept


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1 / 3, 0.5, 0.6, 0.7])
def test_nms(threshold: float) -> None:
    """Of boxes on a grid many overlap by just the threshold."""
    for seed in range(5):
        rows, scores = boxes(seed, 25), np.round(normal(seed, 25), 1)
        expected = np.array(kept_by_loops(rows, scores, threshold))
        attributes = {"iou_threshold": threshold}
        assert_op_matches("torchvision::nms", [rows, scores], attributes, opsets=[17], expected=[expected])


def test_boxes_of_different_classes_do_not_meet() -> None:
    rows, scores, classes = boxes(1, 30), normal(2, 30), np.arange(30) % 3
    attributes = {"iou_threshold": 0.2}
    expected: list[int] = []
    for each in range(3):
        own = np.flatnonzero(classes == each)
        expected += own[kept_by_loops(rows[own], scores[own], 0.2)].tolist()
    (actual,) = reference("torchvision::batched_nms", [rows, scores, classes], attributes)
    assert actual.tolist() == sorted(expected, key=lambda i: -scores[i])


@pytest.mark.parametrize(
    ("op", "args", "attributes", "reason"),
    [
        ("torchvision::nms", [boxes(1, 3), normal(1, 3)], {"iou_threshold": 1.5}, "thresholds from 0 to 1"),
        (
            "torchvision::nms",
            [boxes(1, 3).astype(np.float64), normal(1, 3).astype(np.float64)],
            {"iou_threshold": 0.5},
            "float32 boxes only",
        ),
        ("aten::unique_consecutive", [np.zeros((0, 3))], {}, "of an empty tensor is not supported"),
    ],
)
def test_refused(op: str, args: list[np.ndarray], attributes: dict[str, float], reason: str) -> None:
    assert reason in refusal("onnx", op, args, attributes)
