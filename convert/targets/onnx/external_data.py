"""Stores the weights of an ONNX model in a separate file.

The model stores for each tensor: location (the file's name), offset and length. Offsets are multiples of the
page size, so that runtimes can map the weights into memory. Source: ONNX's docs/ExternalData.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from tmconvert.ir.lazy_constants import Array
from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.output.element_writer import ElementWriter

# Bytes. Smaller constants stay in the model: the shape inference needs the values of shapes and axes.
SMALL_CONSTANT = 1 << 10
# Above this a model does not fit into one file: 2 GiB less what the nodes may take.
MOST_INLINE = (2 << 30) - (64 << 20)

_ALIGNMENT = 4096


def external_constants(graph: TargetGraph) -> list[Value]:
    """Returns the constants that go into the external data file, if any."""
    return [value for value in graph.constants() if value.nbytes > SMALL_CONSTANT]


def external_bytes(graph: TargetGraph) -> int:
    return sum(value.nbytes for value in external_constants(graph))


def weights_path(model: Path) -> Path:
    """Returns the path of the weights of ``model``: ``out.onnx.data`` for ``out.onnx``."""
    return Path(f"{model}.data")


_HALVES = frozenset({"int4", "uint4"})


def _length(data: Array) -> int:
    """Returns the number of bytes of ``in_bytes``, without computing them."""
    return (data.size + 1) // 2 if name_of(data.dtype) in _HALVES else data.nbytes


def in_bytes(data: Array) -> Array:
    """Returns elements in file form: 4-bit types are packed in pairs, the first in the lower half."""
    if name_of(data.dtype) not in _HALVES:
        return data
    from tmconvert.lowering.rounded_constants import packed

    return packed(data)


class ExternalLayout:
    """Offsets of ``values`` in the file ``name``."""

    def __init__(self, name: str, values: Sequence[Value]) -> None:
        self.name = name
        self._values = values
        self._offsets: dict[int, int] = {}
        end = 0
        for value in values:
            self._offsets[id(value)] = -(-end // _ALIGNMENT) * _ALIGNMENT
            end = self._offsets[id(value)] + _length(value.elements())

    def has(self, value: Value) -> bool:
        return id(value) in self._offsets

    def place(self, value: Value) -> dict[str, str]:
        """Returns the entries of the tensor's ``external_data``."""
        return {
            "location": self.name,
            "offset": str(self._offsets[id(value)]),
            "length": str(_length(value.elements())),
        }

    def write(self, file: BinaryIO) -> None:
        """Write the values, one at a time, with zeros in between."""
        end, elements = 0, ElementWriter(file)
        for value in self._values:
            file.write(bytes(self._offsets[id(value)] - end))
            stored = in_bytes(value.elements())
            elements.write(stored)
            end = self._offsets[id(value)] + stored.nbytes
