"""Base of the file formats of quantization parameters, and rules about what they can store."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tmconvert.qparams.records import ACTIVATION, ROLES, UNKNOWN, WEIGHT, Record

# Why a format cannot carry a record; empty where it can.
Rule = Callable[[Record], str]


class Unreadable(ValueError):
    """The text is not a valid file of this format; the message names location and cause."""


class CannotCarry(Exception):
    """Raised for a record that the format cannot store."""

    def __init__(self, record: Record, reason: str) -> None:
        super().__init__(reason)
        self.record, self.reason = record, reason


@dataclass(frozen=True)
class Format:
    """A format that writes records as text.

    ``roles`` are the kinds of tensors that it can store, ``selects`` returns the records that it stores (all,
    unless the file is ``by_layer``), ``rules`` are restrictions on their parameters. ``recognises`` tests
    whether a text, or its JSON object, is in this format; ``read`` may still raise Unreadable. ``targets``
    are the model formats for which such a file is read.
    """

    name: str
    title: str
    write: Callable[[Sequence[Record]], str]
    read: Callable[[str], list[Record]]
    recognises: Callable[[str, dict[str, Any]], bool]
    rules: tuple[Rule, ...]
    roles: tuple[str, ...] = ROLES
    selects: Callable[[Sequence[Record]], list[Record]] = list
    targets: tuple[str, ...] = ("onnx", "tflite", "caffe")
    leaves_out_baked: bool = False
    by_layer: bool = False

    def placed(self, records: Sequence[Record]) -> list[Record]:
        """Returns the records that the format can store."""
        return self.selects([record for record in records if record.role in (*self.roles, UNKNOWN)])

    def problem(self, record: Record) -> str:
        """Returns why the format cannot store a record; empty where it can."""
        return next(filter(None, (rule(record) for rule in (positive, *self.rules))), "")


def repeated(names: Iterable[str]) -> str | None:
    """Returns the first repeated name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


# ---- rules


def positive(record: Record) -> str:
    bad = next((scale for scale in record.scales if not (math.isfinite(scale) and scale > 0)), None)
    return "" if bad is None else f"its scale is {bad!r}"


def known_role(record: Record) -> str:
    is_unknown = record.role == UNKNOWN or not record.dtype
    return "its file does not state whether it is a weight" if is_unknown else ""


def one_scale(record: Record) -> str:
    return f"it has {len(record.scales)} scales (per-channel)" if len(record.scales) > 1 else ""


def one_activation_scale(record: Record) -> str:
    return one_scale(record) if record.role == ACTIVATION else ""


def numbered_axis(record: Record) -> str:
    is_said = len(record.scales) == 1 or record.axis is not None
    return "" if is_said else "the axis of its channels is unknown"


def symmetric_bytes(record: Record) -> str:
    """The range is -128 (or -127) to 127 around a zero point in the middle, in any integer type."""
    if reason := eight_bits(record):
        return reason
    for zero in record.zero_points:
        if record.quant_max - zero != 127:
            return f"its zero point {zero} is not in the middle of {record.quant_min} to {record.quant_max}"
    return ""


def symmetric_weight(record: Record) -> str:
    return symmetric_bytes(record) if record.role == WEIGHT else ""


def eight_bits(record: Record) -> str:
    if record.bits != 8 or not (record.is_full or record.is_narrow):
        return f"its range is {record.quant_min} to {record.quant_max}, but the format implies 8 bits"
    return ""


def eight_bits_at_most(record: Record) -> str:
    return f"it has {record.bits} bits, but the maximum is 8" if record.bits > 8 else ""


def whole_bits(record: Record) -> str:
    """The range uses all values of its bits; a narrow range implies the full one with the same zero point."""
    if record.is_full or (record.is_narrow and not any(record.zero_points)):
        return ""
    return f"its range {record.quant_min} to {record.quant_max} does not use all of {record.bits} bits"


def plain_name(record: Record) -> str:
    """The name must not contain spaces or line breaks."""
    is_plain = record.name and not any(char.isspace() for char in record.name)
    return "" if is_plain and not record.name.startswith("#") else "its name contains spaces"


def one_line_name(record: Record) -> str:
    lines = record.name.splitlines()
    return "" if lines == [record.name] and record.name.strip() == record.name else "its name breaks lines"


# ---- files by layer


@dataclass(frozen=True)
class Layer:
    """A layer with a quantized weight, and its input tensor, if that is quantized."""

    name: str
    weight: Record
    given: Record | None


def layers(records: Sequence[Record], types: Collection[str]) -> list[Layer]:
    """Returns the layers of ``types``, and of unknown types, in the order of the weights."""
    given: dict[str, Record] = {}
    for record in records:
        if record.role == ACTIVATION:
            for name in record.consumers:
                given.setdefault(name, record)
    weights = [record for record in records if record.role == WEIGHT and record.operator in ("", *types)]
    return [Layer(name, weight, given.get(name)) for weight in weights for name in weight.consumers]


def of_layers(records: Sequence[Record], types: Collection[str]) -> list[Record]:
    """Returns the weights of layers of ``types``, and their inputs."""
    found = layers(records, types)
    wanted = {id(layer.weight) for layer in found} | {id(layer.given) for layer in found}
    return [
        record
        for record in records
        if id(record) in wanted or record.role == UNKNOWN or (record.role == WEIGHT and not record.consumers)
    ]


def in_a_layer(record: Record) -> str:
    return "" if record.consumers else "the layers that use it are unknown"
