"""Lists the exceptions of NumPy and ``zipfile`` for damaged or malicious .npy and .npz files."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib

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
