"""Constants of the container format, shared by writer and reader; ``docs/container.md`` specifies it."""

from __future__ import annotations

import struct

FORMAT = "tmconvert"
VERSION = 3
# A file has the lowest version that describes it: 2 is for models with calls of several vocabularies, 3 for
# those with graphs among the arguments of calls.
ONE_VOCABULARY = 1
SEVERAL_VOCABULARIES = 2
WITH_SUBGRAPHS = 3

DESCRIPTION = "tm.json"
EXAMPLE = "example.safetensors"
WEIGHTS = "weights.safetensors"
MEMBERS = (DESCRIPTION, EXAMPLE, WEIGHTS)  # in the order of the file

# Data of a safetensors member begins at a multiple of this, from the start of the member and of the file.
ALIGNMENT = 64

# Element type -> (its name in safetensors, numbers an element takes there). Types that safetensors has
# no name for are stored as another one of the same size, and tm.json says what they are.
STORED_AS = {
    "bool": ("BOOL", 1),
    "int8": ("I8", 1),
    "uint8": ("U8", 1),
    "int16": ("I16", 1),
    "uint16": ("U16", 1),
    "int32": ("I32", 1),
    "uint32": ("U32", 1),
    "int64": ("I64", 1),
    "uint64": ("U64", 1),
    "float16": ("F16", 1),
    "bfloat16": ("BF16", 1),
    "float32": ("F32", 1),
    "float64": ("F64", 1),
    "complex64": ("F32", 2),
    "complex128": ("F64", 2),
}
ML_DTYPES = frozenset({"bfloat16"})
OWN_NAME = {stored: name for name, (stored, count) in STORED_AS.items() if count == 1}

MAX_PATH = 20_000  # of the path of a module; names of nodes have some more, and a reader takes 65,536
MAX_DEPTH = 100  # of modules below each other
MAX_NESTING = 50  # of values inside each other
MAX_SUBGRAPHS = 20  # of graphs inside each other
MAX_RANK = 32

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
END_64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR_64 = struct.Struct("<4sLQL")

LOCAL_MARK, CENTRAL_MARK, END_MARK = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
END_64_MARK, LOCATOR_64_MARK = b"PK\x06\x06", b"PK\x06\x07"
WIDE = 0xFFFFFFFF  # "the number is in the ZIP64 field"
WIDE_FIELD = 1
PADDING_FIELD = 0xD935  # the alignment field that Android's zipalign writes
