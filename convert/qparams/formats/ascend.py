"""Ascend's AMCT record: protobuf text, with a record per layer that has a quantized weight.

``scale_d`` and ``offset_d`` are the int8 parameters of the layer's input, ``scale_w`` those of its weight's
channels, with zero points of 0. The files for Caffe also have the extents of the input. Numbers are float32.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tmconvert.formats.caffe.net import blob_name
from tmconvert.formats.protobuf_text import Entry, ProtobufTextError, parse_protobuf_text
from tmconvert.qparams.formats.format import (
    CannotCarry,
    Format,
    Layer,
    Unreadable,
    eight_bits,
    in_a_layer,
    known_role,
    layers,
    of_layers,
    one_activation_scale,
    symmetric_weight,
)
from tmconvert.qparams.formats.json_text import as_integer, as_number
from tmconvert.qparams.records import ACTIVATION, WEIGHT, Record

# the layers with weights that AMCT quantizes, as ONNX and Caffe call them
_TYPES = ("Conv", "Convolution", "ConvTranspose", "Deconvolution", "Gemm", "InnerProduct")
_SMALLEST = 2.0**-23


def write(records: Sequence[Record], *, with_extents: bool) -> str:
    return "".join(_text(layer, with_extents) for layer in layers(records, _TYPES))


def places(records: Sequence[Record]) -> list[Record]:
    """Returns the records of layers; layers with unquantized inputs stay in float and are omitted."""
    bare = {id(layer.weight) for layer in layers(records, _TYPES) if layer.given is None}
    return [record for record in of_layers(records, _TYPES) if id(record) not in bare]


def _text(layer: Layer, with_extents: bool) -> str:
    lines = ["record {", f"  key: {json.dumps(layer.name)}", "  value {"]
    lines += [f"    {name}: {value}" for name, value in _fields(layer, with_extents)]
    return "\n".join([*lines, "  }", "}", ""])


def _fields(layer: Layer, with_extents: bool) -> Iterator[tuple[str, object]]:
    if layer.given is None:
        raise CannotCarry(layer.weight, f"the input of its layer {layer.name} is not quantized")
    given = layer.given.shifted(-128)
    yield "scale_d", str(np.float32(given.scales[0]))
    yield "offset_d", given.zero_points[0]
    yield from (("scale_w", str(np.float32(scale))) for scale in layer.weight.scales)
    yield from (("offset_w", 0) for _ in layer.weight.scales)
    if with_extents:
        shape = layer.given.shape
        if shape is None or len(shape) not in (2, 4):
            raise CannotCarry(layer.given, "its channels, height and width are unknown")
        yield from zip(("channels", "height", "width"), (*shape[1:], 1, 1), strict=False)


class _Message(NamedTuple):
    """A message of the file. Its methods raise Unreadable, which names ``path``."""

    entry: Entry
    path: str

    def text(self, name: str) -> str:
        if not (self._one(name).text or "").startswith('"'):
            raise Unreadable(f"{name!r} of {self.path} must be a string")
        return self.entry.strings(name)[0]

    def inner(self, name: str) -> _Message:
        entry = self._one(name)
        if entry.text is not None:
            raise Unreadable(f"{name!r} of {self.path} must be a message")
        return _Message(entry, f"{name} of {self.path}")

    def numbers(self, name: str) -> tuple[float, ...]:
        """Returns float32 values."""
        path = f"{name!r} of {self.path}"
        with np.errstate(over="ignore", under="ignore"):
            return tuple(
                as_number(float(np.float32(_number(entry.text, path))), path)
                for entry in self.entry.called(name)
            )

    def integers(self, name: str) -> tuple[int, ...]:
        path = f"{name!r} of {self.path}"
        found = []
        for entry in self.entry.called(name):
            if not re.fullmatch(r"-?\d{1,10}", entry.text or ""):
                raise Unreadable(f"{path} must be an integer")
            found.append(as_integer(int(entry.text or ""), path, -(2**31), 2**31 - 1))
        return tuple(found)

    def _one(self, name: str) -> Entry:
        found = list(self.entry.called(name))
        if len(found) != 1:
            raise Unreadable(f"{self.path} must have {name!r} once, but has it {len(found)} times")
        return found[0]


def _number(text: str | None, path: str) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise Unreadable(f"{path} must be a number") from None


def read(text: str) -> list[Record]:
    try:
        entries = parse_protobuf_text(text).entries
        if any(entry.name != "record" or entry.text is not None for entry in entries):
            raise Unreadable("it contains fields other than 'record'")
        messages = [_Message(entry, f"record {number}") for number, entry in enumerate(entries, 1)]
        return [record for message in messages for record in _records(message)]
    except ProtobufTextError as error:
        raise Unreadable(f"line {error.line}: {error.message}") from error


def _records(message: _Message) -> Iterator[Record]:
    """Yields the input and the weight of a layer."""
    key = message.text("key")
    value = message.inner("value")
    scale, offset = value.numbers("scale_d"), value.integers("offset_d")
    scales, offsets = value.numbers("scale_w"), value.integers("offset_w")
    if len(scale) != 1 or len(offset) != 1 or not scales or len(offsets) != len(scales):
        raise Unreadable(f"{key!r} needs scale_d, offset_d, and as many offset_w as scale_w")
    if any(offsets):
        raise Unreadable(f"{key!r} has an offset_w, but weights must be symmetric")
    shape = _shape(value)
    yield Record(key, ACTIVATION, "int8", scale, offset, -128, 127, None, not any(offset), shape, "", (key,))
    name = blob_name(key, 0)
    yield Record(name, WEIGHT, "int8", scales, offsets, -128, 127, symmetric=True, consumers=(key,))


def _shape(value: _Message) -> tuple[int, ...] | None:
    extents = tuple(extent for name in ("channels", "height", "width") for extent in value.integers(name))
    return (1, *extents) if len(extents) == 3 else None


def channels_of_images(record: Record) -> str:
    if (
        record.role == WEIGHT
        and len(record.scales) > 1
        and record.shape is not None
        and len(record.shape) < 3
    ):
        return f"it has {len(record.scales)} scales, but a fully connected layer must have one"
    return ""


def eight_bit_activation(record: Record) -> str:
    if record.role != ACTIVATION:
        return ""
    return eight_bits(record) or (
        "" if record.is_full else "its range is -127 to 127, but the format requires -128 to 127"
    )


def in_range(record: Record) -> str:
    bad = next((scale for scale in record.scales if not _SMALLEST <= scale <= 1 / _SMALLEST), None)
    return "" if bad is None else f"its scale {bad!r} is not between 2**-23 and 2**23"


def _recognised(text: str, found: dict[str, object], with_extents: bool) -> bool:
    return text.split(maxsplit=1)[:1] == ["record"] and ("channels:" in text) == with_extents


def _format(name: str, title: str, with_extents: bool, target: str) -> Format:
    rules = (
        known_role,
        one_activation_scale,
        eight_bit_activation,
        symmetric_weight,
        in_a_layer,
        channels_of_images,
        in_range,
    )
    return Format(
        name,
        title,
        partial(write, with_extents=with_extents),
        read,
        partial(_recognised, with_extents=with_extents),
        rules,
        (ACTIVATION, WEIGHT),
        places,
        (target,),
        by_layer=True,
    )


ASCEND = _format("ascend", "Ascend AMCT record, for ONNX", False, "onnx")
ASCEND_CAFFE = _format("ascend-caffe", "Ascend AMCT record, for Caffe", True, "caffe")
