"""Containers that no release of ours would write."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tmconvert
from tmconvert.formats.tm.stored_zip import StoredZip

DATA = Path(__file__).parents[1] / "data"
DESCRIPTION, EXAMPLE, WEIGHTS = "tm.json", "example.safetensors", "weights.safetensors"


def saved(name: str, folder: Path) -> bytes:
    """A model of the corpus as a container."""
    tmconvert.load(DATA / f"{name}.tm").save(folder / "saved.tm")
    return (folder / "saved.tm").read_bytes()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive(parts: dict[str, bytes]) -> bytes:
    """A sound archive of any members in any order."""
    file = io.BytesIO()
    made = StoredZip(file)
    for name, content in parts.items():
        made.add(name, len(content), lambda member, content=content: member.write(content))
    made.finish()
    return file.getvalue()


def with_document(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """The container with another tm.json: what ``change`` returns, or made of the document in place."""
    parts = members(data)
    document = json.loads(parts[DESCRIPTION])
    changed = change(document)
    result = document if changed is None else changed
    text = result if isinstance(result, bytes) else json.dumps(result).encode()
    return archive({**parts, DESCRIPTION: text})


def safetensors(header: Any, body: bytes, aligned: bool = True) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    if aligned:
        text += b" " * (-(8 + len(text)) % 64)
    return struct.pack("<Q", len(text)) + text + body


def with_weights(data: bytes, change: Callable[[dict[str, Any], bytes], tuple[Any, bytes]]) -> bytes:
    """The container with another header or other data of the weights."""
    parts = members(data)
    content = parts[WEIGHTS]
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    return archive({**parts, WEIGHTS: safetensors(*change(header, content[8 + length :]))})


def with_checksums(data: bytes) -> bytes:
    """Bytes that were changed, with the checksum of tm.json put right where the archive still makes sense."""
    start = 30 + struct.unpack_from("<H", data, 26)[0] + struct.unpack_from("<H", data, 28)[0]
    size = struct.unpack_from("<L", data, 22)[0]
    check = struct.pack("<L", zlib.crc32(data[start : start + size]))
    result = bytearray(data)
    result[14:18] = check
    central = data.rfind(b"PK\x01\x02" + data[4:6])
    first = data.find(b"PK\x01\x02", start + size)
    if central >= 0 and first >= 0:
        result[first + 16 : first + 20] = check
    return bytes(result)


def arrays_of(data: bytes) -> dict[str, np.ndarray]:
    """The tensors of a small float32 member, read by a few lines."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    return {
        name: np.frombuffer(data[8 + length :][slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in header.items()
    }
