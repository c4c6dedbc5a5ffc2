"""Changes one constant of a written file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from tmconvert.formats.caffe.schema import schema
from tmconvert.formats.tflite.records import read_model

Change = Callable[[np.ndarray], np.ndarray]


def change_onnx(path: Path, out: Path, name: str, change: Change) -> None:
    """Changes an initializer."""
    model = onnx.load(path)
    tensor = next(each for each in model.graph.initializer if each.name == name)
    array = onnx.numpy_helper.to_array(tensor)
    changed = onnx.numpy_helper.from_array(np.asarray(change(array), array.dtype), name)
    tensor.CopyFrom(changed)
    onnx.save(model, out)


def change_tflite(path: Path, out: Path, name: str, change: Change) -> None:
    """Changes the buffer of a tensor, in place."""
    data = bytearray(path.read_bytes())
    view = memoryview(data)
    model = read_model(str(path), view)
    record = next(
        each for each in model.subgraphs[0].tensors if each.name == name and each.content is not None
    )
    assert record.content is not None
    dtype = {0: np.float32, 1: np.float16, 2: np.int32, 7: np.int16, 9: np.int8}[record.type]
    array = np.frombuffer(record.content, dtype).reshape(record.shape)
    array.setflags(write=True) if array.flags.writeable else None
    np.copyto(np.frombuffer(record.content, dtype).reshape(record.shape), change(array.copy()))
    out.write_bytes(bytes(view))


def change_caffe(path: Path, out: Path, name: str, change: Change) -> None:
    """Changes a blob, NAME/NUMBER, of the caffemodel next to a prototxt."""
    layer_name, _, number = name.rpartition("/")
    net = schema().NetParameter()
    net.ParseFromString(path.with_suffix(".caffemodel").read_bytes())
    layer = next(each for each in net.layer if each.name == layer_name)
    blob = layer.blobs[int(number)]
    array = np.array(blob.data, np.float32).reshape(tuple(blob.shape.dim))
    changed = np.asarray(change(array), np.float32)
    del blob.data[:]
    blob.data.extend(changed.reshape(-1).tolist())
    out.write_text(path.read_text())
    out.with_suffix(".caffemodel").write_bytes(net.SerializeToString())
