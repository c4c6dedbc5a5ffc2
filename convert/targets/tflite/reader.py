"""Reads the tensors of a TFLite file as values of a target graph."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.tflite.records import TensorRecord, read_model
from tmconvert.formats.tflite.schema import NARROW_BITS, OTHER_TYPES, TYPE_NAMES
from tmconvert.formats.tflite.tensors import TensorReader
from tmconvert.lowering.target_graph import Quantization, Value

_NUMBERS = ("float32", "float16", "int8", "int16", "int32", "int64")  # of weights and biases


def tflite_constants(path: Path, signature: str = "") -> dict[str, list[Value]]:
    """Returns the constants that may be weights or biases, by name, with data and scales.

    They are those of all subgraphs, or of those that ``signature`` runs. Tensors may share a name.

    Raises LoadError TM1001, TM1041 or TM1042.
    """
    found = {}
    for name, values in tflite_tensors(path, signature).items():
        if constants := [value for value in values if value.is_constant and value.dtype.name in _NUMBERS]:
            found[name] = constants
    return found


def tflite_tensors(path: Path, signature: str = "") -> dict[str, list[Value]]:
    """Returns the tensors by name, except for types that NumPy lacks; constants have data,
    those of int4 and int2 in int8.

    They are those of all subgraphs, or of those that ``signature`` runs.

    Raises LoadError TM1001, TM1041 or TM1042.
    """
    found: dict[str, list[Value]] = defaultdict(list)
    reader = TensorReader(str(path))
    model = read_model(str(path), map_file(str(path)), signature)
    for subgraph in model.reached() if signature else model.subgraphs:
        for record in subgraph.tensors:
            dtype = _DTYPES.get(record.type)
            if dtype is None:
                continue
            if record.content is None:
                shaped = None
            elif TYPE_NAMES[record.type] in NARROW_BITS:
                shaped = reader.stored_array(record)
            else:
                shaped = np.frombuffer(record.content, dtype).reshape(record.example)
            value = Value(record.name, dtype, record.example, shaped, _quantization(record))
            found[record.name].append(value)
    return found


_DTYPES = {
    number: np.dtype(name)
    for number, name in TYPE_NAMES.items()
    if name in np.sctypeDict and np.dtype(name).kind in "biufc"
} | {OTHER_TYPES[name]: np.dtype(np.int8) for name in NARROW_BITS}


def _quantization(record: TensorRecord) -> Quantization | None:
    known, blocks = record.quantization, record.blocks
    if blocks is not None:
        return Quantization(blocks.scales(record.example), block_size=blocks.size)
    if known is None:
        return None
    zero_point = np.array(known.zero_point, np.int64) if any(known.zero_point) else None
    return Quantization(np.array(known.scale, np.float32), known.axis, zero_point)
