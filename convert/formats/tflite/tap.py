"""Makes tensors of a TFLite file outputs, without a copy of the model in objects."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.tflite.faults import damaged_result
from tmconvert.formats.tflite.flatbuffer import Flatbuffer, Table
from tmconvert.formats.tflite.records import read_model

_SUBGRAPHS, _SIGNATURES = 2, 7  # slots of a model
_TENSORS, _OUTPUTS, _NAME = 0, 2, 3  # slots of a subgraph, and of a tensor


def tapped_tflite(path: Path, names: Sequence[str], signature: str = "") -> bytearray:
    """Returns the file with the tensors ``names`` of its main subgraph, or of that of ``signature``, as
    outputs, and without signatures.

    A new vector of outputs is appended, to which the subgraph then refers. That of a signature changes places
    with the first one, which a runtime runs. Raises LoadError TM1009 for a damaged file, KeyError for a
    tensor that it does not have, UsageError TM6014 for an unknown signature.
    """
    mapped = map_file(str(path))
    model = Flatbuffer(mapped, lambda _: damaged_result(str(path))).root()
    number = read_model(str(path), mapped, signature).main if signature else 0
    main = next(iter(model.tables(_SUBGRAPHS)[number:]), None)
    outputs = None if main is None else main.field(_OUTPUTS)
    if main is None or outputs is None:
        raise damaged_result(str(path))
    found = {tensor.text(_NAME): number for number, tensor in enumerate(main.tables(_TENSORS))}
    indices = [found[name] for name in names]
    data = bytearray(mapped)
    signatures = model.field(_SIGNATURES)
    if signatures is not None:
        start, _ = model.file.vector(model.file.offset(signatures), 4)
        struct.pack_into("<I", data, start - 4, 0)
    _swap_subgraphs(model, data, number)
    data += bytes(-len(data) % 8)
    struct.pack_into("<I", data, outputs, len(data) - outputs)
    data += struct.pack(f"<{len(indices) + 1}I", len(indices), *indices)
    return data


def _swap_subgraphs(model: Table, data: bytearray, number: int) -> None:
    """Swaps the first subgraph and that of a number, in place; their offsets are relative."""
    entries = model.field(_SUBGRAPHS)
    if not number or entries is None:
        return
    first, _ = model.file.vector(model.file.offset(entries), 4)
    other = first + 4 * number
    one, two = (struct.unpack_from("<I", data, each)[0] + each for each in (first, other))
    struct.pack_into("<I", data, first, two - first)
    struct.pack_into("<I", data, other, one - other)
