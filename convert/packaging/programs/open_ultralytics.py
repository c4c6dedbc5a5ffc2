"""Runs a model once in the AutoBackend of ultralytics; needs nothing of tmconvert."""

import importlib
import os
from pathlib import Path
from typing import Any

from question import packed, reply, unpacked


def answer(question: dict[str, Any]) -> dict[str, Any]:
    os.environ["YOLO_AUTOINSTALL"] = "false"
    os.environ["YOLO_CONFIG_DIR"] = str(Path.cwd())  # its settings, which it writes at the first import
    torch = importlib.import_module("torch")
    library = importlib.import_module("ultralytics")
    backend = importlib.import_module("ultralytics.nn.autobackend")
    part = question["parts"][""]
    path = str(Path(question["folder"]) / "model.onnx")
    (image,) = (torch.from_numpy(unpacked(each)) for each in part["inputs"].values())
    model = backend.AutoBackend(path, device=torch.device("cpu"))
    outputs = model(image)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    pixels = (image[0].permute(1, 2, 0) * 255).to(torch.uint8).numpy()
    (result,) = library.YOLO(path).predict(pixels, imgsz=list(image.shape[2:]), device="cpu", verbose=False)
    return {
        "version": library.__version__,
        "outputs": {"": {name: packed(each) for name, each in zip(part["outputs"], outputs, strict=True)}},
        "settings": {"task": model.task, "stride": str(model.stride), "names": str(result.names)},
    }


if __name__ == "__main__":
    reply(answer)
