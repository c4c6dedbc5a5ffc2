"""Lists the exceptions of NumPy and ``zipfile`` for damaged or malicious .npy and .npz files."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

# SyntaxError, TokenError, TypeError, RecursionError: of the header, which is a Python literal; RuntimeError
# (and NotImplementedError, which is one): of archives that are encrypted or compressed in another way.
UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    SyntaxError,
    tokenize.TokenError,
    RuntimeError,
    OverflowError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def array_of(archive: Mapping[str, Any], name: str) -> Any:
    """Returns an array of a .npz file. Raises ValueError for another member, which NumPy returns as bytes.

    Texts, dates and records are refused likewise.
    """
    array = archive[name]
    if isinstance(array, bytes) or not are_numbers(array.dtype):
        raise ValueError(f"{name} is not an array of numbers")
    return array


def are_numbers(dtype: Any) -> bool:
    """Whether a type of NumPy is one of numbers; bfloat16 and the like are read as bytes without fields."""
    return dtype.kind not in "OSUMm" and dtype.names is None
