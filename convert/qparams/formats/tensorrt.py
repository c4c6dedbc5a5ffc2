"""TensorRT: calibration cache, and dynamic ranges as text and JSON; int8 activations with zero point 0 only.

The cache has the bits of the float32 scale; ranges are 127 scales. TensorRT computes the scales of weights
itself. The first line of a cache has the version of TensorRT for which it is written; others may require
another line.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from tmconvert.qparams.formats.format import (
    Format,
    Unreadable,
    known_role,
    one_line_name,
    one_scale,
    symmetric_bytes,
)
from tmconvert.qparams.formats.json_text import Fields, parsed, written
from tmconvert.qparams.records import ACTIVATION, Record

HEADER = "TRT-8601-EntropyCalibration2"
_STEPS = 127
_HEADER = re.compile(r"TRT-\d+-\w+")


def _record(name: str, scale: float) -> Record:
    return Record(name, ACTIVATION, "int8", (scale,), (0,), -128, 127, symmetric=True)


def write_cache(records: Sequence[Record]) -> str:
    lines = [HEADER, *(f"{record.name}: {struct.pack('>f', record.scales[0]).hex()}" for record in records)]
    return "".join(f"{line}\n" for line in lines)


def read_cache(text: str) -> list[Record]:
    header, *lines = text.splitlines() or [""]
    if not _HEADER.fullmatch(header):
        raise Unreadable("the first line must be TRT-<version>-<calibrator>")
    found = []
    for number, line in enumerate(lines, start=2):
        if line.strip():
            name, digits = _pair(line, number)
            if not re.fullmatch("[0-9a-fA-F]{1,8}", digits):
                raise Unreadable(f"line {number}: {digits!r} is not a float32 in hexadecimal")
            found.append(_record(name, struct.unpack(">f", bytes.fromhex(digits.zfill(8)))[0]))
    return found


def _pair(line: str, number: int) -> tuple[str, str]:
    """Splits a line at the last colon: names may contain others."""
    name, colon, value = line.rpartition(": ")
    if not colon or not name:
        raise Unreadable(f"line {number} must be 'name: value'")
    return name, value.strip()


def write_ranges(records: Sequence[Record]) -> str:
    return "".join(f"{record.name}: {record.scales[0] * _STEPS!r}\n" for record in records)


def read_ranges(text: str) -> list[Record]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            name, value = _pair(line, number)
            try:
                found.append(_record(name, float(value) / _STEPS))
            except ValueError:
                raise Unreadable(f"line {number}: {value!r} is not a number") from None
    return found


def write_json(records: Sequence[Record]) -> str:
    ranges = {record.name: record.scales[0] * _STEPS for record in records}
    return written({"act_quant_info": ranges})


def read_json(text: str) -> list[Record]:
    ranges = Fields(parsed(text), "the file").inner("act_quant_info")
    return [_record(name, ranges.number(name) / _STEPS) for name in ranges.given]


def _is_ranges(text: str, found: dict[str, object]) -> bool:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return bool(re.fullmatch(r"\S.*: [-+.\deE]+\s*", first))


_RULES = (known_role, one_scale, symmetric_bytes)
TENSORRT_CACHE = Format(
    "tensorrt",
    "TensorRT calibration cache",
    write_cache,
    read_cache,
    lambda text, found: text.startswith("TRT-"),
    (*_RULES, one_line_name),
    (ACTIVATION,),
)
TENSORRT_RANGES = Format(
    "tensorrt-ranges",
    "TensorRT dynamic ranges, text",
    write_ranges,
    read_ranges,
    _is_ranges,
    (*_RULES, one_line_name),
    (ACTIVATION,),
)
TENSORRT_JSON = Format(
    "tensorrt-json",
    "TensorRT dynamic ranges, JSON of PPQ",
    write_json,
    read_json,
    lambda text, found: "act_quant_info" in found,
    _RULES,
    (ACTIVATION,),
)
