"""Sophgo TPU-MLIR's calibration table: ``name threshold min max`` of each activation.

The tool reads it in two modes: symmetric int8 with the scale threshold / 127, or asymmetric int8 with the
scale (max - min) / 255 and a zero point. Symmetric parameters are equal in both; for others the threshold is
the larger bound, and the scale in symmetric mode is larger.
"""

from __future__ import annotations

from collections.abc import Sequence

from tmconvert.qparams.formats.format import Format, Unreadable, eight_bits, known_role, one_scale, plain_name
from tmconvert.qparams.records import ACTIVATION, Record

_TITLE = "# op_name    threshold    min    max"
_STEPS = 255


def write(records: Sequence[Record]) -> str:
    lines = ["###", _TITLE]
    for record in records:
        (low,), (high,) = record.minima, record.maxima
        scale = record.scales[0]
        threshold = 127 * scale if high == 127 * scale else max(abs(low), abs(high))
        lines.append(f"{record.name} {threshold!r} {low!r} {high!r}")
    return "".join(f"{line}\n" for line in lines)


def read(text: str) -> list[Record]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 4:
            raise Unreadable(f"line {number} must be 'name threshold min max'")
        try:
            _, low, high = map(float, words[1:])
            scale = (high - low) / _STEPS
            zero = -128 - round(low / scale)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise Unreadable(f"line {number}: the range of {words[0]!r} is empty") from None
        found.append(Record(words[0], ACTIVATION, "int8", (scale,), (zero,), -128, 127, symmetric=zero == 0))
    return found


def all_bytes(record: Record) -> str:
    return "" if record.is_full else "its range is -127 to 127, but the format requires -128 to 127"


TPU_MLIR = Format(
    "tpu-mlir",
    "TPU-MLIR calibration table",
    write,
    read,
    lambda text, found: "# op_name" in text[:4096],
    (known_role, one_scale, eight_bits, all_bytes, plain_name),
    (ACTIVATION,),
)
