"""Reads the text of a net, in any dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor

from tmconvert.formats.caffe.dialects import MERGED
from tmconvert.formats.caffe.old_layers import new_type, upgrade
from tmconvert.formats.caffe.schema import schema
from tmconvert.formats.protobuf_text import Entry, ProtobufTextError, parse_protobuf_text
from tmconvert.frontends.caffe.faults import unknown_part, unreadable

MOST_BYTES = 1 << 25  # a net of a thousand layers has 0.3 MB
MOST_LAYERS = 100_000
_PLACE = re.compile(r"^\d+:\d+ : (?:'.*': )?", re.DOTALL)  # before the message of a ParseError, with its line


def read_text(path: str, data: memoryview) -> tuple[Any, list[int]]:
    """Returns the NetParameter of a text, with layers of the current format, and the line of each layer.

    Raises LoadError TM1016 and TM1052.
    """
    if len(data) > MOST_BYTES:
        raise unreadable(path, f"the text has {len(data)} bytes: the weights belong into the caffemodel")
    text = bytes(data).decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        tree = parse_protobuf_text(text)
    except ProtobufTextError as error:
        raise unreadable(path, error.message, error.line) from error
    layers = [*tree.called("layer"), *tree.called("layers")]
    if len(layers) > MOST_LAYERS:
        raise unreadable(path, f"it has more than {MOST_LAYERS} layers")
    net = schema(MERGED.name).NetParameter()
    for what, line in _unknown_fields(tree, net.DESCRIPTOR):
        raise unknown_part(path, what, "remove the field, or state its meaning in an issue", line)
    try:
        text_format.Parse(text, net, allow_unknown_field=True)
    except text_format.ParseError as error:
        raise unreadable(path, _PLACE.sub("", str(error)), error.GetLine()) from error
    upgrade(net)
    return net, [entry.line for entry in layers]


def _unknown_fields(entry: Entry, message: Descriptor) -> Iterator[tuple[str, int]]:
    """Yields what is unknown, and its line. Layers of unknown types may have fields of their own."""
    for inner in entry.entries:
        field = message.fields_by_name.get(inner.name)
        if field is None:
            if inner.name == "layer" and message.name == "V1LayerParameter":
                yield "the net has layers of the format V0, of before 2014", inner.line
            yield f"{message.name} has no field {inner.name!r:.80}", inner.line
        elif field.message_type is not None and inner.text is None and _is_known(inner):
            yield from _unknown_fields(inner, field.message_type)


def _is_known(layer: Entry) -> bool:
    """Whether the fields of a layer are known; those of other messages are."""
    if layer.name not in ("layer", "layers"):
        return True
    kind = next((entry.text for entry in layer.called("type") if entry.text), None)
    if kind is None:
        return True
    return MERGED.knows(kind.strip("\"'") if layer.name == "layer" else new_type(kind))
