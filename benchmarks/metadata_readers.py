"""Metadata and labels of written files, read by the programs that they are for.

    python benchmarks/metadata_readers.py        each consumer that is installed: ultralytics, mediapipe

ultralytics' AutoBackend reads the class names and the stride of an ONNX and of a TFLite file; MediaPipe Tasks
opens a TFLite classifier, whose normalization and labels are in it, and names the class of an image.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import tmconvert

SAMPLES = Path(__file__).parents[1] / "samples"
LABELS = [f"digit {number}" for number in range(10)]


def of_ultralytics(folder: Path) -> str:
    from ultralytics.nn.autobackend import AutoBackend

    names = dict(enumerate(LABELS))
    metadata = {"stride": "32", "task": "classify", "batch": "1", "imgsz": "[8, 8]", "names": str(names)}
    for target, convert in (("onnx", tmconvert.to_onnx), ("tflite", tmconvert.to_tflite)):
        path = folder / f"net.{target}"
        convert(SAMPLES / "digits.tm", path, metadata=metadata)
        read = AutoBackend(str(path))
        if (read.names, read.stride, read.task) != (names, 32, "classify"):
            return f"{target}: {read.names}, {read.stride}, {read.task}"
    return ""


def of_mediapipe(folder: Path) -> str:
    import mediapipe
    import torch
    from mediapipe.tasks.python import vision

    torch.manual_seed(0)
    head = (torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Softmax(1))
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 10, 3), *head).eval()
    path, labels = folder / "classifier.tflite", folder / "labels.txt"
    labels.write_text("\n".join(LABELS))
    example, images = [torch.zeros(1, 3, 8, 8)], "rgb, nhwc, float32, mean=0.5, std=0.25"
    tmconvert.to_tflite(net, path, labels=labels, example_inputs=example, preprocess=images)
    image = mediapipe.Image(mediapipe.ImageFormat.SRGB, np.zeros((8, 8, 3), np.uint8))
    found = vision.ImageClassifier.create_from_model_path(str(path)).classify(image)
    name = found.classifications[0].categories[0].category_name
    return "" if name in LABELS else f"the class is {name!r}"


CONSUMERS: Mapping[str, Callable[[Path], str]] = {"ultralytics": of_ultralytics, "mediapipe": of_mediapipe}


def main() -> int:
    wrong = 0
    for name, read in CONSUMERS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                different = read(Path(folder))
            except ImportError as error:
                print(f"{name}: not installed ({error})")
                continue
        wrong += bool(different)
        print(f"{name}: {different or 'right'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
