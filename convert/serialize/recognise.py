"""Which kind of written file this is, and what it says of itself."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import LoadError
from ..source import Source

LAYOUT_KEY = "tmconvert.layout"


def written_target(path: Path) -> str:
    """ "onnx", "tflite" or "caffe" (a prototxt), by content. Raises LoadError TM1001, TM1009."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise LoadError(
            "TM1001", f"cannot read the file: {error.strerror}", source=Source(str(path))
        ) from error
    if head[4:8] == b"TFL3":
        return "tflite"
    if head[:1] == b"\x08":  # ModelProto.ir_version, the first field of every ONNX file
        return "onnx"
    text = head.decode("utf-8", "replace")
    if "layer" in text and "{" in text:
        return "caffe"
    raise LoadError(
        "TM1009",
        "this is no ONNX, TFLite or Caffe model",
        source=Source(str(path)),
        notes=[
            ("help", "give a .onnx, .tflite or .prototxt file; a caffemodel is found beside its prototxt")
        ],
    )


def tflite_layouts(path: Path) -> tuple[list[bool], list[bool]] | None:
    """Which inputs and outputs are stored channels-last, as the file's metadata says; None if it does not."""
    import tflite

    data = path.read_bytes()
    model = tflite.Model.GetRootAsModel(data, 0)
    for i in range(model.MetadataLength()):
        entry = model.Metadata(i)
        if entry.Name() == LAYOUT_KEY.encode():
            text = bytes(model.Buffers(entry.Buffer()).DataAsNumpy())
            orders = json.loads(text)
            return (
                [order == "nhwc" for order in orders["inputs"]],
                [order == "nhwc" for order in orders["outputs"]],
            )
    return None
