"""Reads the tensors of a TFLite file as values of a target graph."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.tflite.records import QuantizationRecord, read_model
from tmconvert.formats.tflite.schema import TYPE_NAMES
from tmconvert.lowering.target_graph import Quantization, Value

_NUMBERS = ("float32", "float16", "int8", "int16", "int32", "int64")  # of weights and biases


def tflite_constants(path: Path) -> dict[str, list[Value]]:
    """Returns the constants of all subgraphs that may be weights or biases, by name, with data and scales.

    Tensors may share a name. Raises LoadError TM1001, TM1041 or TM1042.
    """
    found = {}
    for name, values in tflite_tensors(path).items():
        if constants := [value for value in values if value.is_constant and value.dtype.name in _NUMBERS]:
            found[name] = constants
    return found


def tflite_tensors(path: Path) -> dict[str, list[Value]]:
    """Returns the tensors of all subgraphs by name, except for types that NumPy lacks; constants have data.

    Raises LoadError TM1001, TM1041 or TM1042.
    """
    found: dict[str, list[Value]] = defaultdict(list)
    for subgraph in read_model(str(path), map_file(str(path))).subgraphs:
        for record in subgraph.tensors:
            dtype = _DTYPES.get(record.type)
            if dtype is None:
                continue
            array = None if record.content is None else np.frombuffer(record.content, dtype)
            shaped = None if array is None else array.reshape(record.example)
            quantization = None if record.quantization is None else _quantization(record.quantization)
            found[record.name].append(Value(record.name, dtype, record.example, shaped, quantization))
    return found


_DTYPES = {
    number: np.dtype(name)
    for number, name in TYPE_NAMES.items()
    if name in np.sctypeDict and np.dtype(name).kind in "biufc"
}


def _quantization(record: QuantizationRecord) -> Quantization:
    zero_point = np.array(record.zero_point, np.int64) if any(record.zero_point) else None
    return Quantization(np.array(record.scale, np.float32), record.axis, zero_point)
