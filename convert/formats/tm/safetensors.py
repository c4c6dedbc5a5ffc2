"""Reads and writes tensors in the format of safetensors: a length, a JSON header, elements."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping

import numpy as np

from tmconvert.formats.tm.archive import Member
from tmconvert.formats.tm.faults import bad_tensors
from tmconvert.formats.tm.format import ALIGNMENT, MAX_RANK, ML_DTYPES, OWN_NAME, STORED_AS
from tmconvert.formats.tm.json_text import parse
from tmconvert.output.element_writer import ElementWriter, Sink

MAX_HEADER = 100_000_000
LARGEST = 2**48
ENTRY = {"dtype", "shape", "data_offsets"}
_LENGTH = struct.Struct("<Q")


def read_tensors(data: memoryview, member: Member, what: str) -> dict[str, np.ndarray]:
    """Returns a member's tensors by name: read-only arrays over ``data``. Raises LoadError TM1013, TM1014."""
    content = data[member.start : member.start + member.size]
    if len(content) < 8:
        raise bad_tensors(f"{what} is truncated")
    (length,) = _LENGTH.unpack_from(content)
    if length > min(len(content) - 8, MAX_HEADER):
        raise bad_tensors(f"the header of {what} is longer than {what} itself, or than the limit")
    if member.start % ALIGNMENT or (8 + length) % ALIGNMENT:
        raise bad_tensors(f"the data of {what} is not aligned to {ALIGNMENT} bytes")
    header = parse(bytes(content[8 : 8 + length]), f"the header of {what}")
    if not isinstance(header, dict):
        raise bad_tensors(f"the header of {what} must be an object")
    header.pop("__metadata__", None)
    body = content[8 + length :]
    entries = [(name, *_entry(name, entry)) for name, entry in header.items()]
    _check_tiling([(begin, end) for _, _, _, begin, end in entries], len(body), what)
    return {name: _array(body, name, dtype, shape, begin) for name, dtype, shape, begin, _ in entries}


def _entry(name: str, entry: object) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Returns element type, shape, start and end of a tensor, checked against each other."""
    if not isinstance(entry, dict) or set(entry) != ENTRY:
        raise bad_tensors(f"the tensor {name[:80]!r} must be described by dtype, shape and data_offsets")
    stored, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(stored, str) or stored not in OWN_NAME:
        raise bad_tensors(f"the tensor {name[:80]!r} has an unknown element type")
    if not _are_sizes(shape) or len(shape) > MAX_RANK:
        raise bad_tensors(f"the tensor {name[:80]!r} has an invalid shape")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise bad_tensors(f"the tensor {name[:80]!r} must have two offsets")
    if math.prod(max(extent, 1) for extent in shape) > LARGEST:
        raise bad_tensors(f"the tensor {name[:80]!r} has more elements than any file can have")
    dtype = dtype_called(OWN_NAME[stored])
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise bad_tensors(f"the size of tensor {name[:80]!r} in bytes does not match its shape")
    if begin % dtype.itemsize:
        raise bad_tensors(f"the tensor {name[:80]!r} is not aligned to its elements")
    return dtype, tuple(shape), begin, end


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _check_tiling(spans: list[tuple[int, int]], size: int, what: str) -> None:
    """Rejects tensors that overlap, leave a gap, or exceed the data."""
    position = 0
    for begin, end in sorted(spans):
        if begin != position:
            raise bad_tensors(f"the tensors of {what} overlap, or leave a gap at byte {position} of the data")
        position = end
    if position != size:
        raise bad_tensors(f"the tensors of {what} have {position} bytes, the file has {size}")


def _array(body: memoryview, name: str, dtype: np.dtype, shape: tuple[int, ...], begin: int) -> np.ndarray:
    size = math.prod(shape)
    stored = dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype
    flat = np.frombuffer(body, stored, size, begin) if size else np.empty(0, stored)
    if dtype.kind == "b" and size and flat.view(np.uint8).max() > 1:
        raise bad_tensors(f"the tensor {name[:80]!r} has values that are neither false nor true")
    array = flat.reshape(shape) if flat.dtype.isnative else flat.reshape(shape).astype(dtype)
    array.flags.writeable = False
    return array


def retyped(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Reinterprets the array as an element type that safetensors does not name. Raises LoadError TM1014."""
    stored, count = STORED_AS[dtype.name]
    fits = array.dtype.name == OWN_NAME[stored] and (count == 1 or array.shape[-1:] == (count,))
    if not fits:
        raise bad_tensors(f"a tensor of {array.dtype.name} cannot hold {dtype.name}")
    made = array.view(dtype) if count == 1 else array.view(dtype).reshape(array.shape[:-1])
    made.flags.writeable = False
    return made


def dtype_called(name: str) -> np.dtype:
    """Returns the NumPy dtype of a name in ``STORED_AS``."""
    if name in ML_DTYPES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


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
