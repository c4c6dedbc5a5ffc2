"""PPQ's JSON for PPL: ``quant_info`` of each tensor of up to 8 bits.

``hash`` and ``dominator`` are identifiers of PPQ's objects: here, the position in the file. The file does not
say which tensors are weights, but for those with a scale for each channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tmconvert.qparams.formats.format import Format, Unreadable, eight_bits_at_most, one_activation_scale
from tmconvert.qparams.formats.json_text import Fields, parsed, scalar_or_list, written
from tmconvert.qparams.records import ACTIVATION, UNKNOWN, WEIGHT, Record, integer_name


def write(records: Sequence[Record]) -> str:
    entries = {record.name: _entry(record, number) for number, record in enumerate(records, start=1)}
    return written({"quant_info": entries, "op_info": {}})


def _entry(record: Record, number: int) -> dict[str, Any]:
    return {
        "bit_width": record.bits,
        "per_channel": len(record.scales) > 1,
        "quant_flag": True,
        "sym": record.symmetric,
        "scale": scalar_or_list(record.scales),
        "zero_point": scalar_or_list(record.zero_points),
        "tensor_min": scalar_or_list(record.minima),
        "tensor_max": scalar_or_list(record.maxima),
        "q_min": record.quant_min,
        "q_max": record.quant_max,
        "hash": number,
        "dominator": number,
    }


def read(text: str) -> list[Record]:
    tensors = Fields(parsed(text), "the file").inner("quant_info")
    return [_record(name, Fields(given, repr(name))) for name, given in tensors.given.items()]


def _record(name: str, fields: Fields) -> Record:
    if not fields.flag("quant_flag"):
        raise Unreadable(f"{name!r} is not quantized according to its quant_flag")
    scales, zeros = fields.numbers("scale"), fields.integers("zero_point")
    low, high = fields.integer("q_min"), fields.integer("q_max")
    role = WEIGHT if fields.flag("per_channel") else UNKNOWN
    return Record(name, role, integer_name(low, high), scales, zeros, low, high, symmetric=fields.flag("sym"))


def known_range(record: Record) -> str:
    return "" if record.dtype else "its file does not state its integer type"


PPQ = Format(
    "ppq",
    "PPQ JSON",
    write,
    read,
    lambda text, found: "quant_info" in found,
    (known_range, eight_bits_at_most, one_activation_scale),
    (ACTIVATION, WEIGHT),
)
