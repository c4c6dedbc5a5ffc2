"""Messages of Caffe files, made from the data of a dialect, in a descriptor pool of their own.

A private pool, so that another caffe.proto in the process (there are many forks) does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tmconvert.formats.caffe.dialects import DIALECTS, MERGED
from tmconvert.formats.caffe.dialects.dialect import Dialect
from tmconvert.formats.caffe.layers import LAYERS

_PACKAGE = "caffe"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
    "double": _Field.TYPE_DOUBLE,
    "float": _Field.TYPE_FLOAT,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
}


class Schema(NamedTuple):
    """The message classes of a dialect, and for each layer type the field with its attributes.

    ``unconfirmed`` are fields whose number is not known: they are written to the .prototxt only.
    """

    NetParameter: Any
    LayerParameter: Any
    BlobProto: Any
    parameter_fields: Mapping[str, str | None]
    unconfirmed: frozenset[str]


@cache
def schema(dialect: str = "bvlc") -> Schema:
    """Returns the messages of a dialect, or of all dialects in one ("merged")."""
    described = MERGED if dialect == MERGED.name else DIALECTS[dialect]
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file_descriptor(described).SerializeToString())
    net, layer, blob = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("NetParameter", "LayerParameter", "BlobProto")
    )
    parameter_fields = {name: LAYERS[name].parameters for name in sorted(described.layers)}
    return Schema(net, layer, blob, parameter_fields, described.unconfirmed)


def _file_descriptor(dialect: Dialect) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="tmconvert/caffe.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in dialect.messages.items():
        message = file.message_type.add(name=name)
        for text in fields.split(","):
            message.field.append(_field(name, text.strip(), dialect.enums))
    messages = {message.name: message for message in file.message_type}
    for full_name, values in dialect.enums.items():
        owner, _, name = full_name.rpartition(".")
        enum = (messages[owner] if owner else file).enum_type.add(name=name)
        for value in values.split():
            label, number = value.split("=")
            enum.value.add(name=label, number=int(number))
    return file


def _field(owner: str, text: str, enums: Mapping[str, str]) -> descriptor_pb2.FieldDescriptorProto:
    """The descriptor of a field such as ``18 dilation:*uint32`` of the message ``owner``."""
    number, rest = text.split(" ")
    name, form = rest.split(":")
    kind, _, default = form.partition("=")
    repeated, packed = kind.startswith("*"), kind.endswith("[]")
    kind = kind.removeprefix("*").removesuffix("[]")

    field = _Field(name=name, number=int(number))
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if packed:
        field.options.packed = True
    if default:
        field.default_value = default
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    elif kind in enums:
        field.type, field.type_name = _Field.TYPE_ENUM, f".{_PACKAGE}.{kind}"
    elif f"{owner}.{kind}" in enums:
        field.type, field.type_name = _Field.TYPE_ENUM, f".{_PACKAGE}.{owner}.{kind}"
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    return field
