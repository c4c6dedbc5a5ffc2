"""mgeconvert's JSON: tensor -> dtype, qmin, qmax, scale, zero_point, is_weight.

It has neither the axis of channels (they are output channels) nor the layers that use a tensor. A zero point
is null where the quantization is symmetric, 0 for a bias. Weights that the model has rounded already are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tmconvert.qparams.formats.format import Format, Unreadable, known_role
from tmconvert.qparams.formats.json_text import Fields, parsed, scalar_or_list, written
from tmconvert.qparams.records import ACTIVATION, BIAS, WEIGHT, Record

_KEYS = {"dtype", "qmin", "qmax", "scale", "zero_point", "is_weight"}


def write(records: Sequence[Record]) -> str:
    return written({record.name: _entry(record) for record in records})


def _entry(record: Record) -> dict[str, Any]:
    zero_point: Any = scalar_or_list(record.zero_points)
    if record.role == BIAS and not any(record.zero_points):
        zero_point = 0
    elif record.symmetric and not any(record.zero_points):
        zero_point = None
    return {
        "dtype": record.dtype,
        "qmin": record.quant_min,
        "qmax": record.quant_max,
        "scale": scalar_or_list(record.scales),
        "zero_point": zero_point,
        "is_weight": record.role != ACTIVATION,
    }


def read(text: str) -> list[Record]:
    return [_record(name, given) for name, given in Fields(parsed(text), "the file").given.items()]


def _record(name: str, given: object) -> Record:
    fields = Fields(given, repr(name))
    strange = sorted(set(fields.given) - _KEYS)
    if strange:
        raise Unreadable(f"{name!r} has the unknown field {strange[0]!r}")
    scales = fields.numbers("scale")
    dtype, is_weight = fields.text("dtype"), fields.flag("is_weight")
    is_null = fields.get("zero_point") is None
    zero_points = (0,) if is_null else fields.integers("zero_point")
    if len(zero_points) == 1:
        zero_points *= len(scales)
    is_bias = is_weight and dtype == "int32"
    return Record(
        name,
        ACTIVATION if not is_weight else BIAS if is_bias else WEIGHT,
        dtype,
        scales,
        zero_points,
        fields.integer("qmin"),
        fields.integer("qmax"),
        symmetric=is_null or (is_bias and not any(zero_points)),
    )


def recognises(text: str, found: dict[str, object]) -> bool:
    return bool(found) and all(isinstance(entry, dict) and "is_weight" in entry for entry in found.values())


MGECONVERT = Format(
    "mgeconvert", "mgeconvert JSON", write, read, recognises, (known_role,), leaves_out_baked=True
)
