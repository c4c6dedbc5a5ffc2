"""What a TFLite file says of itself, and the constants in it."""

from __future__ import annotations

import json
import mmap
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..lower.target_graph import Quantization, Value
from .tflite_schema import TENSOR_TYPES

_LAYOUT, _OPTIONS = "tmconvert.layout", "tmconvert.options"


def tflite_layouts(path: Path) -> tuple[list[bool], list[bool]] | None:
    """Which inputs and outputs are stored channels-last, as the file's metadata says; None if it does not."""
    orders = _entry(path, _LAYOUT)
    if orders is None:
        return None
    inputs, outputs = ([order == "nhwc" for order in orders[of]] for of in ("inputs", "outputs"))
    return inputs, outputs


def tflite_options(path: Path) -> Mapping[str, Any]:
    """The options of the conversion that wrote the file, as ``metadata`` stored them; empty without."""
    return _entry(path, _OPTIONS) or {}


def tflite_constants(path: Path) -> dict[str, list[Value]]:
    """The constants of all subgraphs that may hold weights or biases, by name, with their data and scales.

    Tensors may share a name.
    """
    model, data = _model(path)
    names = ("float32", "float16", "int8", "int16", "int32", "int64")
    dtypes = {TENSOR_TYPES[name]: np.dtype(name) for name in names}
    found: dict[str, list[Value]] = defaultdict(list)
    for subgraph in (model.Subgraphs(i) for i in range(model.SubgraphsLength())):
        for tensor in (subgraph.Tensors(i) for i in range(subgraph.TensorsLength())):
            content = _content(model.Buffers(tensor.Buffer()), data)
            if content is None or tensor.Type() not in dtypes:
                continue
            dtype = dtypes[tensor.Type()]
            shape = tuple(int(tensor.Shape(i)) for i in range(tensor.ShapeLength()))
            quantization, scales = tensor.Quantization(), None
            if quantization is not None and quantization.ScaleLength():
                scales = Quantization(
                    quantization.ScaleAsNumpy(),
                    quantization.QuantizedDimension(),
                    quantization.ZeroPointAsNumpy() if quantization.ZeroPointLength() else None,
                )
            name = tensor.Name().decode()
            found[name].append(Value(name, dtype, shape, content.view(dtype).reshape(shape), scales))
    return found


def tflite_model(path: Path) -> Any:
    """The root table of the file, whose accessors read as they are called."""
    return _model(path)[0]


def _model(path: Path) -> tuple[Any, mmap.mmap]:
    import tflite

    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return tflite.Model.GetRootAsModel(data, 0), data


def _entry(path: Path, key: str) -> Any:
    """An entry of the metadata, which is JSON; None without."""
    model, data = _model(path)
    for i in range(model.MetadataLength()):
        entry = model.Metadata(i)
        if entry.Name() == key.encode():
            content = _content(model.Buffers(entry.Buffer()), data)
            return None if content is None else json.loads(bytes(content))
    return None


def _content(buffer: Any, data: mmap.mmap) -> np.ndarray | None:
    """The bytes of a buffer: within the flatbuffer, or behind it where the buffer says."""
    if buffer.DataLength():
        return np.asarray(buffer.DataAsNumpy())
    if buffer.Size() > 1:
        return np.frombuffer(data, np.uint8, buffer.Size(), buffer.Offset())
    return None
