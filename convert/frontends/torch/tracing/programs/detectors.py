"""Checkpoints of ultralytics: pickles of modules, which run code when they are loaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.users_code import shown

SIZE = 640  # of images, where a checkpoint names none


class Detector(NamedTuple):
    """A module, an image [1, channels, height, width] in 0..1, and what ultralytics stores in files."""

    module: Any
    image: torch.Tensor
    metadata: dict[str, str]


def read_detector(path: Path) -> Detector:
    """Loads a checkpoint, whose code runs. Raises LoadError TM1021, TM1028."""
    os.environ.setdefault("YOLO_AUTOINSTALL", "false")
    try:
        from ultralytics.nn.tasks import load_checkpoint
    except ImportError as error:
        raise LoadError(
            "TM1021",
            "a checkpoint of ultralytics needs ultralytics, which is not installed",
            notes=[("help", "pip install ultralytics")],
        ) from error
    try:
        model = load_checkpoint(path)[0]
    except Exception as error:  # of many kinds: damaged pickles, classes of other releases
        raise LoadError(
            "TM1028", f"ultralytics cannot load it: {shown(error):.300}", source=Source(str(path))
        ) from error
    for each in model.modules():
        if hasattr(each, "export"):  # heads, which return what is stored in files
            each.export, each.format = True, "onnx"
    metadata = _metadata(model)
    image = torch.rand(1, metadata["channels"], *metadata["imgsz"])
    with torch.no_grad():
        model(image)  # the heads compute their anchors once
    return Detector(model, image, {name: str(value) for name, value in metadata.items()})


def _metadata(model: Any) -> dict[str, Any]:
    """Returns what AutoBackend reads: the task, the names of classes, and the sizes of images."""
    stride = int(max(model.stride))
    size = model.args.get("imgsz") or SIZE
    sizes = [size, size] if isinstance(size, int) else list(size)
    found = {
        "stride": stride,
        "task": model.task,
        "head": type(model.model[-1]).__name__,
        "batch": 1,
        "imgsz": [-(-each // stride) * stride for each in sizes],
        "names": dict(model.names),
        "args": {"batch": 1, "dynamic": False, "nms": False},
        "channels": getattr(model, "yaml", {}).get("channels", 3),
        "end2end": bool(getattr(model, "end2end", False)),
    }
    points = {name: getattr(model, name, None) for name in ("kpt_shape", "kpt_names")}
    points["kpt_shape"] = getattr(model.model[-1], "kpt_shape", None)
    return found | {name: value for name, value in points.items() if value is not None}
