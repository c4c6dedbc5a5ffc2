"""ONNX Runtime's TensorQuantOverrides, as a file for ``onnxruntime.quantization.static_quantize_runner``.

The file has scales and zero points; the integers are options of the tool. The file is for its defaults:
activations in uint8, to which int8 is shifted by 128, and weights in int8. The tool computes the scale of a
bias as input * weight. The file does not state roles of tensors, so that records of a file that is read have
an unknown role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tmconvert.qparams.formats.format import (
    Format,
    Unreadable,
    eight_bits,
    numbered_axis,
    one_activation_scale,
    symmetric_weight,
)
from tmconvert.qparams.formats.json_text import Fields, parsed, written
from tmconvert.qparams.records import ACTIVATION, UNKNOWN, WEIGHT, Record


def write(records: Sequence[Record]) -> str:
    return written({record.name: _entries(_moved(record)) for record in records})


def _moved(record: Record) -> Record:
    if record.role != ACTIVATION:
        return record if record.is_signed or record.role == UNKNOWN else record.shifted(-128)
    return record.shifted(1 if record.is_narrow else 0)


def _entries(record: Record) -> list[dict[str, Any]]:
    axis = {} if record.axis is None else {"axis": record.axis}
    return [
        {**axis, "scale": scale, "zero_point": zero}
        for scale, zero in zip(record.scales, record.zero_points, strict=True)
    ]


def read(text: str) -> list[Record]:
    found = []
    for name, items in Fields(parsed(text), "the file").given.items():
        if not isinstance(items, list) or not items:
            raise Unreadable(f"{name!r} must be a list of overrides")
        fields = [Fields(item, repr(name)) for item in items]
        axes = {each.integer("axis", -8, 8) if each.has("axis") else None for each in fields}
        if len(axes) > 1 or (None in axes and len(fields) > 1):
            raise Unreadable(f"the overrides of {name!r} do not have the same axis")
        strange = sorted({key for each in fields for key in each.given} - {"axis", "scale", "zero_point"})
        if strange:
            raise Unreadable(
                f"{name!r} has the unsupported field {strange[0]!r}: only scales and zero points are read"
            )
        axis = axes.pop()
        scales = tuple(each.number("scale") for each in fields)
        zeros = tuple(each.integer("zero_point") for each in fields)
        if axis is None:  # the tool knows whether it is an activation, from the model
            found.append(Record(name, UNKNOWN, "", scales, zeros, 0, 0))
        else:
            found.append(Record(name, WEIGHT, "int8", scales, zeros, -128, 127, axis, symmetric=True))
    return found


def role_is_known(record: Record) -> str:
    """A record read from such a file may be written to one; for others the role must be known."""
    return "its file does not state whether it is a weight" if record.role == UNKNOWN and record.dtype else ""


def known_bytes(record: Record) -> str:
    return eight_bits(record) if record.dtype else ""


def recognises(text: str, found: dict[str, object]) -> bool:
    return bool(found) and all(
        isinstance(items, list) and items and isinstance(items[0], dict) and "zero_point" in items[0]
        for items in found.values()
    )


ONNXRUNTIME = Format(
    "onnxruntime",
    "ONNX Runtime TensorQuantOverrides",
    write,
    read,
    recognises,
    (role_is_known, known_bytes, one_activation_scale, symmetric_weight, numbered_axis),
    (ACTIVATION, WEIGHT),
    targets=("onnx",),
)
