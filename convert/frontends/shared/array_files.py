"""What NumPy and ``zipfile`` raise for .npy and .npz files that are damaged, or made to do harm."""

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
