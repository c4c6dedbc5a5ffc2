"""Messages between processes: a JSON line that describes the arrays whose bytes follow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

_ARRAYS = "arrays"


class Message(NamedTuple):
    header: dict[str, Any]
    arrays: list[np.ndarray]


def send_message(stream: BinaryIO, header: dict[str, object], arrays: Sequence[np.ndarray]) -> None:
    contents = [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays]
    described = [[array.dtype.name, list(array.shape)] for array in arrays]
    stream.write(json.dumps({**header, _ARRAYS: described}).encode() + b"\n")
    for content in contents:
        stream.write(content)
    stream.flush()


def read_message(stream: BinaryIO) -> Message | None:
    """Returns the next message; None at the end of the stream, and for an incomplete one."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    header = json.loads(line)
    arrays = []
    for name, shape in header.pop(_ARRAYS):
        dtype = _dtype(name)
        array = np.empty(shape, dtype)
        if array.size and not _filled(stream, array.reshape(-1).view(np.uint8).data):
            return None
        arrays.append(array)
    return Message(header, arrays)


def _filled(stream: BinaryIO, content: memoryview) -> bool:
    place = 0
    while place < len(content):
        count = stream.readinto(content[place:])  # type: ignore[attr-defined]
        if not count:
            return False
        place += count
    return True


def _dtype(name: str) -> np.dtype:
    try:
        return np.dtype(name)
    except TypeError:  # bfloat16 and the like
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
