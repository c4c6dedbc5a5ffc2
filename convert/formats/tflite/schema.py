"""The part of TFLite's schema that readers and writer need: element types, enums, operators, options tables.

The options tables and the names of operators are in a generated file, ``data/option_tables.txt``. Source:
LiteRT's schema.fbs, which only ever appends, so numbers and slots are stable.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

# The first line has the names of operators in the order of their codes. Then come the name of each table with
# its number in the union BuiltinOptions, and below it its fields: "slot name:kind", with "!" if required, or
# "=" and a default other than 0. Made by tools/make_tflite_schema.py.
_DATA = Path(__file__).parent / "data/option_tables.txt"

# By name, since ml_dtypes' bfloat16 has no other handle that every NumPy understands.
TENSOR_TYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "complex64": 8,
    "int8": 9,
    "float64": 10,
    "complex128": 11,
    "uint64": 12,
    "uint32": 15,
    "uint16": 16,
    "bfloat16": 18,
}
# those whose elements NumPy does not have, or not in their own bytes
OTHER_TYPES = {"str": 5, "int4": 17, "int2": 19}
TYPE_NAMES = {number: name for name, number in (TENSOR_TYPES | OTHER_TYPES).items()}

# those of few bits; a byte has several of them
NARROW_BITS = {"int4": 4, "int2": 2}
CUSTOM_QUANTIZATION, BLOCKWISE = 1, 2  # of the union QuantizationDetails

ENUMS: dict[str, dict[str, int]] = {
    "type": {name.upper(): code for name, code in TENSOR_TYPES.items()},
    "padding": {"SAME": 0, "VALID": 1},
    "activation": {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "TANH": 4, "SIGN_BIT": 5},
    "mirror": {"REFLECT": 0, "SYMMETRIC": 1},
    "weights_format": {"DEFAULT": 0, "SHUFFLED4x16INT8": 1},
    "lstm_kernel": {"FULL": 0, "BASIC": 1},
}


class OptionField(NamedTuple):
    """A field of an options table.

    ``kind`` is a number's type, "int32s", "float32s", "text", "graph" or a key of ENUMS.

    ``required`` marks a field whose default in the schema would be wrong: a stride of 0, a softmax's beta of
    0. ``default`` is the stored number; such a value is not written.
    """

    slot: int
    name: str
    kind: str
    default: float
    required: bool


def operator_name(code: int) -> str | None:
    """Returns the name of a builtin operator; None for a code of a later schema."""
    return _operators()[code] if 0 <= code < len(_operators()) else None


@cache
def operator_code(name: str) -> int | None:
    """Returns the code of a builtin operator; None for other names."""
    return _operators().index(name) if name in _operators() else None


@cache
def options_of(name: str) -> str | None:
    """Returns the options table that is called after an operator, if there is one.

    >>> options_of("LESS_EQUAL")
    'LessEqualOptions'
    """
    named = f"{name.replace('_', '')}options".lower()
    return next((table for table in _tables() if table.lower() == named), None)


@cache
def _lines() -> list[str]:
    return _DATA.read_text(encoding="utf-8").splitlines()


@cache
def _operators() -> list[str]:
    return _lines()[0].split()


@cache
def option_fields_by_code() -> dict[int, dict[str, OptionField]]:
    """Returns the fields of all tables by their numbers in the union BuiltinOptions."""
    return dict(_tables().values())


def options_code(table: str) -> int:
    """Returns the table's number in the union BuiltinOptions."""
    return _tables()[table][0]


def options_fields(table: str) -> dict[str, OptionField]:
    """Returns the table's fields by name."""
    return _tables()[table][1]


@cache
def _tables() -> dict[str, tuple[int, dict[str, OptionField]]]:
    tables: dict[str, tuple[int, dict[str, OptionField]]] = {}
    fields: dict[str, OptionField] = {}
    for line in _lines()[1:]:
        first, second = line.split()
        if line.startswith(" "):
            field = _field(int(first), second)
            fields[field.name] = field
        else:
            fields = {}
            tables[first] = int(second), fields
    return tables


def _field(slot: int, word: str) -> OptionField:
    name, kind = word.split(":")
    kind, _, default = kind.partition("=")
    return OptionField(slot, name, kind.rstrip("!"), int(default or 0), kind.endswith("!"))
