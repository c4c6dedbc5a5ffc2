"""Writes records as a pickle of protocol 4, opcode by opcode.

Python's ``pickle`` would need MegEngine's classes, and its bytes depend on the identity of equal texts. This
writer knows only the few types of ``_STEPS``. It uses an explicit stack instead of recursion, since a graph
is nested as deeply as it has expressions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from tmconvert.errors import WriteError
from tmconvert.frontends.megengine.writing.records import ELLIPSIS_TYPE, NONE_TYPE, Record
from tmconvert.ir.inert import GlobalRef

PROTOCOL = 4
CANNOT_SAVE = "TM5005"
BATCH = 1000  # items between MARK and APPENDS: the reader's stack stays small

_TUPLES = {1: b"\x85", 2: b"\x86", 3: b"\x87"}
_ARRAY = GlobalRef("numpy.core.multiarray", "_reconstruct")
_SCALAR = GlobalRef("numpy.core.multiarray", "scalar")
_ND_ARRAY = GlobalRef("numpy", "ndarray")
_DTYPE = GlobalRef("numpy", "dtype")
# None and Ellipsis have classes without a name of their own in ``builtins``: type(None) is written.
_TYPES_OF = {NONE_TYPE: None, ELLIPSIS_TYPE: Ellipsis}

Steps = Iterator[Any]


class PickleWriter:
    """Writes one value to ``file``; equal values give equal bytes.

    Texts, names and dtypes are remembered by value, all other objects by identity, as they may be cyclic.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._memo: dict[Any, int] = {}
        self._kept: list[Any] = []  # what is remembered by its id must live on

    def write(self, value: object) -> None:
        """Writes the pickle of ``value``. Raises WriteError TM5005 for a type that has no opcode here."""
        self._put(b"\x80", bytes([PROTOCOL]))
        stack: list[Steps] = [iter((value,))]
        while stack:
            for item in stack[-1]:
                steps = self._begin(item)
                if steps is not None:
                    stack.append(steps)
                    break
            else:
                stack.pop()
        self._put(b".")

    def _begin(self, value: object) -> Steps | None:
        """Writes a value without parts; returns the steps of one with parts, which yield the parts."""
        key = value if isinstance(value, (str, GlobalRef)) else id(value)
        known = self._memo.get(key)
        if known is not None:
            self._put(b"h" + bytes([known]) if known < 256 else b"j" + struct.pack("<I", known))
            return None
        plain = _PLAIN.get(type(value))
        if plain is not None:
            self._put(*plain(value))
            if type(value) is str:
                self._remember(value)
            return None
        steps = _STEPS.get(type(value))
        if steps is None:
            steps = next((found for kind, found in _STEPS_OF_FAMILIES if isinstance(value, kind)), None)
        if steps is None:
            raise WriteError(CANNOT_SAVE, f"a {type(value).__name__} cannot be stored in a file of MegEngine")
        return steps(self, value)

    def _put(self, *pieces: Any) -> None:
        for piece in pieces:
            self._file.write(piece)

    def _remember(self, value: Any) -> None:
        by_value = isinstance(value, (str, GlobalRef))
        self._memo[value if by_value else id(value)] = len(self._memo)
        if not by_value:
            self._kept.append(value)
        self._put(b"\x94")

    # ---- values with parts

    def _global(self, value: GlobalRef) -> Steps:
        if value in _TYPES_OF:
            yield GlobalRef("builtins", "type")
            yield _TYPES_OF[value]
            self._put(b"\x85R")
        else:
            yield value.module
            yield value.name
            self._put(b"\x93")
        self._remember(value)

    def _tuple(self, value: tuple[object, ...]) -> Steps:
        if not value:
            self._put(b")")
            return
        end = _TUPLES.get(len(value))
        if end is None:
            self._put(b"(")
        yield from value
        self._put(end or b"t")
        self._remember(value)

    def _list(self, value: list[Any]) -> Steps:
        self._put(b"]")
        self._remember(value)
        for start in range(0, len(value), BATCH):
            self._put(b"(")
            yield from value[start : start + BATCH]
            self._put(b"e")

    def _dict(self, value: dict[Any, Any]) -> Steps:
        self._put(b"}")
        self._remember(value)
        items = list(value.items())
        for start in range(0, len(items), BATCH):
            self._put(b"(")
            for key, item in items[start : start + BATCH]:
                yield key
                yield item
            self._put(b"u")

    def _record(self, value: Record) -> Steps:
        yield value.cls
        yield value.arguments
        self._put(b"R" if value.called else b"\x81")
        self._remember(value)
        if value.state is not None:
            yield value.state
            self._put(b"b")

    def _slice(self, value: slice) -> Steps:
        yield Record(GlobalRef("builtins", "slice"), (value.start, value.stop, value.step), called=True)

    def _complex(self, value: complex) -> Steps:
        yield Record(GlobalRef("builtins", "complex"), (value.real, value.imag), called=True)

    def _dtype(self, value: np.dtype) -> Steps:
        """The dtype by its name and byte order; of a quantized one also MegEngine's metadata."""
        key = ("dtype", value.str, repr(value.metadata))
        known = self._memo.get(key)
        if known is not None:
            self._put(b"j" + struct.pack("<I", known))
            return
        order = "|" if value.itemsize == 1 else "<"
        state: tuple[Any, ...] = (3, order, None, None, None, -1, -1, 0)
        if value.metadata:
            state = (4, *state[1:], dict(value.metadata))
        yield _DTYPE
        yield (value.str[1:], False, True)
        self._put(b"R")
        self._memo[key] = len(self._memo)
        self._put(b"\x94")
        yield state
        self._put(b"b")

    def _array(self, value: np.ndarray) -> Steps:
        content = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        yield Record(_ARRAY, (_ND_ARRAY, (0,), b"b"), called=True)
        self._put(b"(")
        yield 1
        yield value.shape
        yield value.dtype
        yield False
        self._content(content)
        self._put(b"tb")
        self._remember(value)

    def _content(self, array: np.ndarray) -> None:
        self._put(*_bytes_header(array.nbytes))
        if array.nbytes:
            self._put(array.reshape(-1).view(np.uint8).data)

    def _scalar(self, value: np.generic) -> Steps:
        yield Record(_SCALAR, (value.dtype, value.tobytes()), called=True)


def _integer(value: int) -> tuple[bytes, ...]:
    if 0 <= value < 256:
        return b"K", bytes([value])
    if -(2**31) <= value < 2**31:
        return b"J", struct.pack("<i", value)
    size = value.bit_length() // 8 + 1
    if size > 255:
        raise WriteError(CANNOT_SAVE, "an integer has more than 2,000 bits")
    return b"\x8a", bytes([size]), value.to_bytes(size, "little", signed=True)


def _text(value: str) -> tuple[bytes, ...]:
    content = value.encode("utf-8", "surrogatepass")
    if len(content) < 256:
        return b"\x8c", bytes([len(content)]), content
    return b"X", struct.pack("<I", len(content)), content


def _bytes_header(size: int) -> tuple[bytes, ...]:
    if size < 256:
        return b"C", bytes([size])
    return (b"B", struct.pack("<I", size)) if size < 2**32 else (b"\x8e", struct.pack("<Q", size))


_PLAIN: dict[type, Callable[[Any], tuple[bytes, ...]]] = {
    type(None): lambda value: (b"N",),
    bool: lambda value: (b"\x88" if value else b"\x89",),
    int: _integer,
    float: lambda value: (b"G", struct.pack(">d", value)),
    str: _text,
    bytes: lambda value: (*_bytes_header(len(value)), value),
    type(Ellipsis): lambda value: (b"cbuiltins\nEllipsis\n",),
}
_STEPS: dict[type, Callable[[PickleWriter, Any], Steps]] = {
    GlobalRef: PickleWriter._global,
    Record: PickleWriter._record,
    tuple: PickleWriter._tuple,
    list: PickleWriter._list,
    dict: PickleWriter._dict,
    slice: PickleWriter._slice,
    complex: PickleWriter._complex,
}
_STEPS_OF_FAMILIES: tuple[tuple[type, Callable[[PickleWriter, Any], Steps]], ...] = (
    (np.ndarray, PickleWriter._array),
    (np.dtype, PickleWriter._dtype),
    (np.generic, PickleWriter._scalar),
)
