"""AIMET encodings, which Qualcomm's QNN and SNPE converters read: versions 0.6.1 and 1.0.0.

real = (q + offset) * scale on 0 to 2^bits - 1. The offset of integers that start at -128 is larger by 128; a
range of -127 to 127 around 0 is written as -128 to 127. Several encodings of a tensor are those of its output
channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tmconvert.qparams.formats.format import Format, Unreadable, known_role, one_activation_scale, whole_bits
from tmconvert.qparams.formats.json_text import Fields, parsed, written
from tmconvert.qparams.records import ACTIVATION, BIAS, WEIGHT, Record, integer_name

_GROUPS = {"activation_encodings": (ACTIVATION,), "param_encodings": (WEIGHT, BIAS)}


def bits_that_fit(record: Record) -> str:
    return "" if 2 <= record.bits <= 32 else f"it has {record.bits} bits"


def _offsets(record: Record) -> list[int]:
    lowest = record.quant_min - (1 if record.is_narrow else 0)
    return [lowest - zero for zero in record.zero_points]


def write_061(records: Sequence[Record]) -> str:
    groups = {
        group: {record.name: _items(record) for record in records if record.role in roles}
        for group, roles in _GROUPS.items()
    }
    return written({"version": "0.6.1", **groups})


def _items(record: Record) -> list[dict[str, Any]]:
    steps = 2**record.bits - 1
    return [
        {
            "bitwidth": record.bits,
            "dtype": "int",
            "is_symmetric": str(record.symmetric),
            "max": (offset + steps) * scale,
            "min": offset * scale,
            "offset": offset,
            "scale": scale,
        }
        for scale, offset in zip(record.scales, _offsets(record), strict=True)
    ]


def write_100(records: Sequence[Record]) -> str:
    groups = {
        group: [_item(record) for record in records if record.role in roles]
        for group, roles in _GROUPS.items()
    }
    return written({"version": "1.0.0", **groups})


def _item(record: Record) -> dict[str, Any]:
    return {
        "name": record.name,
        "enc_type": "PER_TENSOR" if len(record.scales) == 1 else "PER_CHANNEL",
        "dtype": "INT",
        "bw": record.bits,
        "is_sym": record.symmetric,
        "scale": list(record.scales),
        "offset": _offsets(record),
    }


def read_061(text: str) -> list[Record]:
    file = Fields(parsed(text), "the file")
    found = []
    for group in _GROUPS:
        for name, items in file.inner(group).given.items():
            if not isinstance(items, list) or not items:
                raise Unreadable(f"{name!r} of {group!r} is not a list of encodings")
            found.append(_record(group, name, [_encoding(Fields(item, repr(name))) for item in items]))
    return found


def _encoding(fields: Fields) -> tuple[int, bool, float, int]:
    """Returns (bits, whether symmetric, scale, offset); the last two may have to be computed."""
    if fields.has("dtype") and fields.text("dtype") != "int":
        raise Unreadable(
            f"{fields.place} has the type {fields.text('dtype')}: it is not quantized to integers"
        )
    bits = fields.integer("bitwidth", 2, 32)
    symmetric = fields.has("is_symmetric") and fields.flag("is_symmetric")
    if fields.has("scale", "offset"):
        return bits, symmetric, fields.number("scale"), fields.integer("offset")
    low, high = fields.number("min"), fields.number("max")
    scale = (high - low) / (2**bits - 1)
    if not scale > 0:
        raise Unreadable(f"the range of {fields.place} is empty")
    return bits, symmetric, scale, round(low / scale)


def read_100(text: str) -> list[Record]:
    file = Fields(parsed(text), "the file")
    found = []
    for group in _GROUPS:
        for item in file.items(group):
            fields = Fields(item, f"an entry of {group!r}")
            name = fields.text("name")
            fields.place = repr(name)
            if fields.text("dtype") != "INT":
                raise Unreadable(
                    f"{name!r} has the type {fields.text('dtype')}: it is not quantized to integers"
                )
            kind = fields.text("enc_type")
            if kind not in ("PER_TENSOR", "PER_CHANNEL"):
                raise Unreadable(f"{name!r} has block quantization ({kind}), which is not supported")
            bits, symmetric = fields.integer("bw", 2, 32), fields.flag("is_sym")
            scales, offsets = fields.numbers("scale"), fields.integers("offset")
            if len(scales) != len(offsets):
                raise Unreadable(f"{name!r} has {len(scales)} scales and {len(offsets)} offsets")
            encodings = [
                (bits, symmetric, scale, offset) for scale, offset in zip(scales, offsets, strict=True)
            ]
            found.append(_record(group, name, encodings))
    return found


def _record(group: str, name: str, encodings: Sequence[tuple[int, bool, float, int]]) -> Record:
    if len({encoding[:2] for encoding in encodings}) != 1:
        raise Unreadable(f"the encodings of {name!r} have different bits")
    bits, symmetric = encodings[0][:2]
    middle = 2 ** (bits - 1)
    offsets = [offset for *_, offset in encodings]
    is_signed = symmetric and all(offset == -middle for offset in offsets)
    low, high = (-middle, middle - 1) if is_signed else (0, 2 * middle - 1)
    role = ACTIVATION if group == "activation_encodings" else BIAS if bits == 32 else WEIGHT
    return Record(
        name,
        role,
        integer_name(low, high),
        tuple(scale for _, _, scale, _ in encodings),
        tuple(low - offset for offset in offsets),
        low,
        high,
        symmetric=symmetric,
    )


def _is_version(text: str, found: dict[str, object], kind: type) -> bool:
    return isinstance(found.get("activation_encodings"), kind)


_RULES = (known_role, one_activation_scale, whole_bits, bits_that_fit)
AIMET_061 = Format(
    "aimet", "AIMET / QNN encodings 0.6.1", write_061, read_061, partial(_is_version, kind=dict), _RULES
)
AIMET_100 = Format(
    "aimet-1.0", "AIMET encodings 1.0.0", write_100, read_100, partial(_is_version, kind=list), _RULES
)
