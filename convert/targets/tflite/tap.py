"""Makes tensors of a TFLite file outputs, without a copy of the model in objects."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from tmconvert.frontends.tflite.faults import damaged
from tmconvert.frontends.tflite.flatbuffer import Flatbuffer

_SUBGRAPHS, _SIGNATURES = 2, 7  # slots of a model
_TENSORS, _OUTPUTS = 0, 2  # slots of a subgraph


def tapped_tflite(path: Path, names: Sequence[str]) -> bytearray:
    """Returns the file with the tensors ``names`` of its main subgraph as outputs, and without signatures.

    A new vector of outputs is appended, to which the subgraph then refers. Raises LoadError TM1041 for a
    damaged file, KeyError for a tensor that it does not have.
    """
    content = path.read_bytes()
    root = Flatbuffer(memoryview(content), lambda cause: damaged(str(path), cause)).root()
    data = bytearray(content)
    main = root.tables(_SUBGRAPHS)[0]
    found = {each.text(3): number for number, each in enumerate(main.tables(_TENSORS))}
    field = main.field(_OUTPUTS)
    if field is None:
        raise damaged(str(path), "it has no outputs")
    signatures = root.field(_SIGNATURES)
    if signatures is not None:
        struct.pack_into("<I", data, root.file.offset(signatures), 0)
    data += bytes(-len(data) % 8)
    indices = [found[name] for name in names]
    struct.pack_into("<I", data, field, len(data) - field)
    data += struct.pack(f"<{len(indices) + 1}I", len(indices), *indices)
    return data
