"""Checks a prototxt against a dialect: the text against its messages, then the net against its rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.caffe.dialects import DIALECTS
from tmconvert.formats.caffe.reader import net_of, parse_net
from tmconvert.formats.caffe.schema import schema
from tmconvert.formats.mapped_file import read_regular
from tmconvert.formats.protobuf_text import Entry, ProtobufTextError, parse_protobuf_text
from tmconvert.targets.caffe.structure import violations
from tmconvert.targets.violation import Violation

# rule: what to do
RULES = {
    "syntax": "correct the text: it must be a message in protobuf's text form",
    "unknown-field": "remove the field, or choose the dialect that has it",
    "wrong-value": "give a value of the field's type",
    "foreign-parameter": "remove it: this type of layer does not read it",
    "old-layers": "upgrade the net with Caffe's upgrade_net_proto_text: `layers` is the form of before 2015",
}
# of LayerParameter, beside the one of its type
_SHARED = ("transform_param", "loss_param")


def lint(path: Path, dialect: str) -> list[Violation]:
    """Returns all violations of the net at ``path`` against ``dialect``, in the order of the lines.

    Raises: LoadError TM1001 when the file cannot be read.
    """
    try:
        text = read_regular(path).decode("utf-8", "replace")
    except OSError as error:
        source = Source(str(path))
        raise LoadError("TM1001", f"cannot read the file: {error.strerror}", source=source) from error
    return lint_text(text, dialect)


def lint_text(text: str, dialect: str) -> list[Violation]:
    try:
        tree = _parsed(text)
    except ProtobufTextError as error:
        return [_found("syntax", error.message, "", error.line)]
    found = list(_fields(tree, schema(dialect).NetParameter.DESCRIPTOR, ""))
    found += _parameters(tree, dialect)
    try:
        net = parse_net(text, dialect, allows_unknown_fields=True)
    except text_format.ParseError as error:
        if not found:  # what our own reading of it lets pass
            found.append(_found("syntax", str(error), "", error.GetLine() or 0))
        return sorted(found, key=lambda each: each.line)
    lines = [entry.line for entry in tree.called("layer")]
    found += violations(net_of(net, {}, dialect, lines), DIALECTS[dialect])
    return sorted(found, key=lambda each: each.line)


@lru_cache(maxsize=1)
def _parsed(text: str) -> Entry:
    """A written net is checked against its dialect, then against that of a runtime."""
    return parse_protobuf_text(text)


def _found(rule: str, message: str, layer: str, line: int) -> Violation:
    return Violation(rule, message, RULES[rule], layer, line)


def _fields(entry: Entry, message: Any, layer: str) -> Iterator[Violation]:
    """Fields that the message does not have, and values that are not of their type."""
    for inner in entry.entries:
        name = inner.string("name") if not entry.name and inner.name == "layer" else layer
        field = message.fields_by_name.get(inner.name)
        if not entry.name and inner.name == "layers":
            yield _found("old-layers", "the net has `layers`, of the format V1", "", inner.line)
        elif field is None:
            yield _found("unknown-field", f"{message.name} has no field {inner.name}", name, inner.line)
        elif field.message_type is not None and inner.text is None:
            yield from _fields(inner, field.message_type, name)
        elif not _fits(inner, field):
            shown = "a message" if inner.text is None else inner.text
            yield _found("wrong-value", f"{inner.name} is {shown}, not {_kind(field)}", name, inner.line)


def _fits(entry: Entry, field: FieldDescriptor) -> bool:
    if entry.text is None or field.message_type is not None:
        return False
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return entry.text[0] in "\"'"
    if field.enum_type is not None:
        return entry.text in field.enum_type.values_by_name or entry.text.isdigit()
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return entry.text in ("true", "false", "True", "False", "t", "f", "0", "1")
    try:
        if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
            float(
                entry.text.rstrip("fF")
                if not entry.text.lower().lstrip("-").startswith("inf")
                else entry.text
            )
            return True
        number = int(entry.text, 0)
    except ValueError:
        return False
    return number >= 0 or field.cpp_type != FieldDescriptor.CPPTYPE_UINT32


def _kind(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return "a message"
    if field.enum_type is not None:
        return f"one of {', '.join(field.enum_type.values_by_name)}"
    return {
        FieldDescriptor.CPPTYPE_STRING: "a text in quotes",
        FieldDescriptor.CPPTYPE_BOOL: "true or false",
        FieldDescriptor.CPPTYPE_FLOAT: "a number",
        FieldDescriptor.CPPTYPE_UINT32: "a non-negative integer",
    }.get(field.cpp_type, "an integer")


def _parameters(tree: Entry, dialect: str) -> Iterator[Violation]:
    """Parameters of another type of layer, which readers pass over in silence."""
    made = schema(dialect)
    for layer in tree.called("layer"):
        kind = layer.string("type")
        if kind not in made.parameter_fields:
            continue
        for entry in layer.entries:
            is_known = entry.name in made.LayerParameter.DESCRIPTOR.fields_by_name
            own = (made.parameter_fields[kind], *_SHARED)
            if is_known and entry.name.endswith("_param") and entry.name not in own:
                message = f"{kind} does not read {entry.name}"
                yield _found("foreign-parameter", message, layer.string("name"), entry.line)
