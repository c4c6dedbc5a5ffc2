"""Reads metadata and constants of a TFLite file."""

from __future__ import annotations

import json
import mmap
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.formats.tflite.schema import TENSOR_TYPES
from tmconvert.lowering.target_graph import Quantization, Value

_LAYOUT, _OPTIONS = "tmconvert.layout", "tmconvert.options"


def tflite_layouts(path: Path) -> tuple[list[bool], list[bool]] | None:
    """Returns which inputs and outputs are channels-last, from the file's metadata; None without it."""
    orders = _entry(path, _LAYOUT)
    if orders is None:
        return None
    inputs, outputs = ([order == "nhwc" for order in orders[of]] for of in ("inputs", "outputs"))
    return inputs, outputs


def tflite_options(path: Path) -> Mapping[str, Any]:
    """Returns the options of the conversion that wrote the file, from ``metadata``; empty without them."""
    return _entry(path, _OPTIONS) or {}


def tflite_constants(path: Path) -> dict[str, list[Value]]:
    """Returns the constants of all subgraphs that may be weights or biases, by name, with data and scales.

    Tensors may share a name.
    """
    found = {}
    for name, values in tflite_tensors(path).items():
        if constants := [value for value in values if value.is_constant and value.dtype.name in _NUMBERS]:
            found[name] = constants
    return found


_NUMBERS = ("float32", "float16", "int8", "int16", "int32", "int64")


def tflite_tensors(path: Path) -> dict[str, list[Value]]:
    """Returns the tensors of all subgraphs by name, except for types that NumPy lacks; constants have
    data.
    """
    model, data = _model(path)
    dtypes = {number: np.dtype(name) for name, number in TENSOR_TYPES.items() if name in np.sctypeDict}
    found: dict[str, list[Value]] = defaultdict(list)
    for subgraph in (model.Subgraphs(i) for i in range(model.SubgraphsLength())):
        for tensor in (subgraph.Tensors(i) for i in range(subgraph.TensorsLength())):
            if tensor.Type() not in dtypes:
                continue
            dtype, content = dtypes[tensor.Type()], _content(model.Buffers(tensor.Buffer()), data)
            shape = tuple(int(tensor.Shape(i)) for i in range(tensor.ShapeLength()))
            array = None if content is None else content.view(dtype).reshape(shape)
            name = tensor.Name().decode()
            found[name].append(Value(name, dtype, shape, array, quantization_of(tensor)))
    return found


def quantization_of(tensor: Any) -> Quantization | None:
    """Returns the scales and zero points of a tensor; None without."""
    said = tensor.Quantization()
    if said is None or not said.ScaleLength():
        return None
    zero_point = said.ZeroPointAsNumpy() if said.ZeroPointLength() else None
    return Quantization(said.ScaleAsNumpy(), said.QuantizedDimension(), zero_point)


def tflite_model(path: Path) -> Any:
    """Returns the root table of the file, whose accessors read lazily."""
    return _model(path)[0]


def _model(path: Path) -> tuple[Any, mmap.mmap]:
    import tflite

    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return tflite.Model.GetRootAsModel(data, 0), data


def _entry(path: Path, key: str) -> Any:
    """Returns a JSON entry of the metadata; None without it."""
    model, data = _model(path)
    for i in range(model.MetadataLength()):
        entry = model.Metadata(i)
        if entry.Name() == key.encode():
            content = _content(model.Buffers(entry.Buffer()), data)
            return None if content is None else json.loads(bytes(content))
    return None


def _content(buffer: Any, data: mmap.mmap) -> np.ndarray | None:
    """Returns the bytes of a buffer: within the flatbuffer, or after it."""
    if buffer.DataLength():
        return np.asarray(buffer.DataAsNumpy())
    if buffer.Size() > 1:
        return np.frombuffer(data, np.uint8, buffer.Size(), buffer.Offset())
    return None
