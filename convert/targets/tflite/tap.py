"""Makes tensors of a TFLite file outputs, without a copy of the model in objects."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import tflite

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source

_SIGNATURES, _OUTPUTS = 18, 8  # places in the lists of fields of a model and of a subgraph


def tapped_tflite(path: Path, names: Sequence[str]) -> bytearray:
    """Returns the file with the tensors ``names`` of its main subgraph as outputs, and without signatures.

    A new vector of outputs is appended, to which the subgraph then refers. Raises LoadError TM1009 for a
    damaged file, KeyError for a tensor that it does not have.
    """
    data = bytearray(path.read_bytes())
    try:
        return _tapped(data, names)
    except (struct.error, IndexError, ValueError, TypeError, AttributeError) as error:
        raise LoadError("TM1009", "this is a damaged TFLite file", source=Source(str(path))) from error


def _tapped(data: bytearray, names: Sequence[str]) -> bytearray:
    model = tflite.Model.GetRootAsModel(data, 0)
    main = model.Subgraphs(0)
    found = {main.Tensors(i).Name().decode(): i for i in range(main.TensorsLength())}
    indices = [found[name] for name in names]
    field = main._tab.Pos + main._tab.Offset(_OUTPUTS)
    signatures = model._tab.Offset(_SIGNATURES)
    if signatures:
        at = model._tab.Pos + signatures
        (offset,) = struct.unpack_from("<I", data, at)
        struct.pack_into("<I", data, at + offset, 0)
    data += bytes(-len(data) % 8)
    struct.pack_into("<I", data, field, len(data) - field)
    data += struct.pack(f"<{len(indices) + 1}I", len(indices), *indices)
    return data
