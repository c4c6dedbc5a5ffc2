"""Writes the safetensors format: a length, a JSON header, and the elements of all tensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

import numpy as np

from tmconvert.container.format import ALIGNMENT, STORED_AS
from tmconvert.output.element_writer import ElementWriter, Sink

_LENGTH = struct.Struct("<Q")


class Safetensors:
    """Streams ``tensors`` by name as one file of ``size`` bytes, without copying them.

    Larger element types come first, so that each tensor is aligned to its elements; the data begins
    at a multiple of ``ALIGNMENT``.
    """

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self._ordered = sorted(tensors.items(), key=lambda item: -_item_size(item[1]))
        header, offset = {}, 0
        for name, array in self._ordered:
            stored, count = STORED_AS[array.dtype.name]
            shape = [*array.shape, count] if count > 1 else list(array.shape)
            header[name] = {"dtype": stored, "shape": shape, "data_offsets": [offset, offset + array.nbytes]}
            offset += array.nbytes
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-(_LENGTH.size + len(text)) % ALIGNMENT)
        self._head = _LENGTH.pack(len(text)) + text
        self.size = len(self._head) + offset

    def write(self, file: Sink) -> None:
        """Writes all ``size`` bytes."""
        file.write(self._head)
        elements = ElementWriter(file)
        for _, array in self._ordered:
            elements.write(array)


def _item_size(array: np.ndarray) -> int:
    return array.dtype.itemsize // STORED_AS[array.dtype.name][1]
