"""``tmconvert.score`` of detectors: boxes in each form of outputs, in pictures of other sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tmconvert
from tests.frontends.onnx.models import of_nodes
from tmconvert.errors import UsageError
from tmconvert.inspection.detect import in_picture

pytest.importorskip("pycocotools")
Image = pytest.importorskip("PIL.Image")

SIZE = (40, 80)  # of the input: height and width
# left, top, right, bottom in a picture of 20 x 80, its category
TRUTH = [([8, 2, 40, 12], 3), ([10, 4, 30, 18], 7), ([50, 0, 79, 19], 3)]
IDS = [3, 5, 7]


def in_input(resize: str) -> np.ndarray:
    """Returns the boxes as a perfect detector finds them in the input."""
    boxes = np.array([box for box, _ in TRUTH], np.float32)
    return boxes * np.array([1, 2, 1, 2]) if resize == "stretch" else boxes + np.array([0, 10, 0, 10])


def as_torchvision(boxes: np.ndarray) -> dict[str, np.ndarray]:
    labels = np.array([category for _, category in TRUTH])
    return {"boxes": boxes, "labels": labels, "scores": np.array([0.9, 0.8, 0.7])}


def as_rows(boxes: np.ndarray) -> dict[str, np.ndarray]:
    others = [[0.9 - at / 10, IDS.index(category)] for at, (_, category) in enumerate(TRUTH)]
    return {
        "y": np.concatenate(
            [
                boxes,
                others,
            ],
            axis=1,
        )[None]
    }


def centred(boxes: np.ndarray) -> np.ndarray:
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)


def as_columns(boxes: np.ndarray) -> dict[str, np.ndarray]:
    """Each box twice, the second time a pixel aside and with a lower score, which suppression removes."""
    scores = np.full((3, len(IDS)), 0.0)
    scores[range(3), [IDS.index(category) for _, category in TRUTH]] = [0.9, 0.8, 0.7]
    twice = np.concatenate(
        [np.concatenate([centred(boxes), scores], 1), np.concatenate([centred(boxes + 1), scores / 2], 1)]
    )
    return {"y": twice.T[None]}


def as_detr(classes: int) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    def made(boxes: np.ndarray) -> dict[str, np.ndarray]:
        logits = np.full((3, classes), -9.0)
        for at, (_, category) in enumerate(TRUTH):
            logits[at, IDS.index(category) if classes <= len(IDS) + 1 else category] = 5.0 - at
        return {"logits": logits[None], "pred_boxes": (centred(boxes) / np.tile(SIZE[::-1], 2))[None]}

    return made


FORMS: dict[str, Any] = {
    "torchvision": as_torchvision,
    "rows": as_rows,
    "columns": as_columns,
    "softmax by number": as_detr(4),
    "sigmoid by number": as_detr(3),
    "softmax by id": as_detr(9),
    "sigmoid by id": as_detr(8),
}


def detector(outputs: dict[str, np.ndarray], path: Path) -> Path:
    """A model that finds the same in each image."""
    nodes = [onnx.helper.make_node("ReduceMin", ["x"], ["least"], keepdims=0)]
    nodes += [onnx.helper.make_node("Mul", ["least", "zero"], ["nothing"])]
    model = of_nodes(nodes, {"x": [1, 3, *SIZE]}, [])
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0), "zero"))
    for name, array in outputs.items():
        is_float = array.dtype.kind == "f"
        held = array.astype(np.float32 if is_float else np.int64)
        model.graph.initializer.append(onnx.numpy_helper.from_array(held, f"{name}_held"))
        other = "nothing" if is_float else "nothing_int"
        model.graph.node.append(onnx.helper.make_node("Add", [f"{name}_held", other], [name]))
        element = onnx.TensorProto.FLOAT if is_float else onnx.TensorProto.INT64
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, element, array.shape))
    model.graph.node.insert(2, onnx.helper.make_node("Cast", ["nothing"], ["nothing_int"], to=7))
    onnx.save(model, path)
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Labels of one picture of 20 x 80."""
    Image.fromarray(np.zeros((20, 80, 3), np.uint8)).save(tmp_path / "one.png")
    images = [{"id": 4, "file_name": "one.png", "height": 20, "width": 80}]
    boxes = [[left, top, right - left, bottom - top] for (left, top, right, bottom), _ in TRUTH]
    annotations = [
        {
            "id": at + 1,
            "image_id": 4,
            "category_id": category,
            "bbox": box,
            "area": box[2] * box[3],
            "iscrowd": 0,
        }
        for at, (box, (_, category)) in enumerate(zip(boxes, TRUTH, strict=True), 1)
    ]
    categories = [{"id": each, "name": str(each)} for each in IDS]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


@pytest.mark.parametrize("resize", ["stretch", "pad"])
@pytest.mark.parametrize("form", FORMS)
def test_a_perfect_detector_has_a_precision_of_one(form: str, resize: str, labels: Path) -> None:
    file = detector(FORMS[form](in_input(resize)), labels.parent / "m.onnx")
    (found,) = tmconvert.score(file, data=labels, task="map", resize=resize).files
    assert (found.value, found.others["at 0.5"]) == (pytest.approx(1, abs=1e-6),) * 2


def test_wrong_boxes_cost_precision(labels: Path) -> None:
    """A box that is half as high overlaps by 0.5: it counts at that overlap alone."""
    boxes = in_input("stretch")
    boxes[0, 3] = boxes[0, 1] + (boxes[0, 3] - boxes[0, 1]) * 0.52
    file = detector(as_torchvision(boxes), labels.parent / "m.onnx")
    (found,) = tmconvert.score(file, data=labels, task="map").files
    assert found.others["at 0.5"] == pytest.approx(1, abs=1e-6) and found.value < 0.9


def test_what_cannot_be_scored_is_refused(labels: Path) -> None:
    file = detector({"y": np.zeros((1, 7, 3))[:, :4]}, labels.parent / "m.onnx")
    with pytest.raises(UsageError, match="not boxes in a known form"):
        tmconvert.score(file, data=labels, task="map")
    labels.write_text("[1]")
    with pytest.raises(UsageError, match=r"labels\.json cannot be read"):
        tmconvert.score(file, data=labels, task="map")


def test_corners_of_a_cropped_picture() -> None:
    found = in_picture(np.array([[0, 0, 40, 40]]), (40, 40), (20, 40), "crop")
    assert found.tolist() == [[10, 0, 30, 20]]
