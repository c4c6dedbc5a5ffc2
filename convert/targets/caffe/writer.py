"""Writes Caffe files: a .prototxt (the net, as text) and a .caffemodel (the net with its weights).

Both are one NetParameter; runtimes match their layers by name. The weights are streamed: memory in
use does not grow with them. The same graph gives the same bytes.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor

from tmconvert.errors import InternalError, WriteError
from tmconvert.formats.caffe.schema import Schema, schema
from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value
from tmconvert.output.metadata import OPTIONS
from tmconvert.output.protobuf_stream import LARGEST_MESSAGE, StreamedMessage
from tmconvert.symbolics.dialects import DIALECTS

# the same in every dialect
_NET_LAYER = schema().NetParameter.DESCRIPTOR.fields_by_name["layer"].number
_LAYER_BLOBS = schema().LayerParameter.DESCRIPTOR.fields_by_name["blobs"].number
_BLOB_DATA = schema().BlobProto.DESCRIPTOR.fields_by_name["data"].number

_FLOAT32 = np.dtype(np.float32)

# By a field's type: the classes that it takes. A bool is an int to isinstance, but no number here.
_CLASSES: dict[int, tuple[type, ...]] = {
    FieldDescriptor.CPPTYPE_BOOL: (bool, np.bool_),
    FieldDescriptor.CPPTYPE_FLOAT: (float, int, np.floating, np.integer),
    FieldDescriptor.CPPTYPE_INT32: (int, np.integer),
    FieldDescriptor.CPPTYPE_INT64: (int, np.integer),
    FieldDescriptor.CPPTYPE_UINT32: (int, np.integer),
}


def write_caffe(graph: TargetGraph, prototxt: BinaryIO, caffemodel: BinaryIO) -> None:
    """Write ``graph`` as a net and its weights, both in Caffe's own format, in the dialect ``graph.version``.

    Layers: one "Input" for each graph input, then the operators, then layers that give outputs their names: a
    "Split" for an output that is also an input or another output, a "Parameter" for a constant. Blobs:
    float32 whatever the constant's dtype, only in the caffemodel. Numbers and booleans equal to the schema's
    default are left out. The options of the conversion (``graph.metadata``) are a comment. Raises:
    InternalError TM9001 when the graph does not fit Caffe; WriteError TM5002 when the weights are above the 2
    GiB that protobuf can hold. Either comes before the first byte is written.
    """
    operators = [*graph.operators, *_output_layers(graph)]
    _check_names(graph, operators)
    assert isinstance(graph.version, int)
    dialect = schema(DIALECTS[graph.version])
    net = dialect.NetParameter(name=graph.name)
    net.layer.extend(_input_layers(graph, dialect))
    net.layer.extend(_layer(operator, dialect) for operator in operators)

    without_blobs: list[list[Value]] = [[] for _ in graph.inputs]
    weights = _weights(net, without_blobs + [_blobs(operator) for operator in operators], dialect)
    if weights.length > LARGEST_MESSAGE:
        raise WriteError(
            "TM5002",
            f"the weights take {weights.length / 2**30:.1f} GiB, and a caffemodel can hold 2 GiB",
            notes=[("help", "split the model, or convert it to another format")],
        )
    if OPTIONS in graph.metadata:
        prototxt.write(f"# {OPTIONS}: {graph.metadata[OPTIONS]}\n".encode())
    prototxt.write(text_format.MessageToString(net, as_utf8=True).encode())
    weights.write(caffemodel)


def _input_layers(graph: TargetGraph, dialect: Schema) -> list[Any]:
    layers = []
    taken = {operator.name for operator in graph.operators}
    for value in graph.inputs:
        name = value.name
        while name in taken:
            name += "_input"
        taken.add(name)
        layer = dialect.LayerParameter(name=name, type="Input", top=[value.name])
        layer.input_param.shape.add(dim=value.shape)
        layers.append(layer)
    return layers


def _output_layers(graph: TargetGraph) -> list[Operator]:
    """Returns layers that rename outputs to the user's names; a Power without numbers copies, too."""
    assert isinstance(graph.version, int)
    has_split = "Split" in schema(DIALECTS[graph.version]).parameter_fields
    operators, copy = [], "Split" if has_split else "Power"
    for value, name in zip(graph.outputs, graph.output_names, strict=True):
        renamed = Value(name, value.dtype, value.shape)
        if value.is_constant:
            attributes: dict[str, Attribute] = {"shape": list(value.shape)}
            operators.append(Operator("Parameter", [value], [renamed], attributes, name))
        elif value.name != name:
            operators.append(Operator(copy, [value], [renamed], {}, name))
    return operators


def _check_names(graph: TargetGraph, operators: list[Operator]) -> None:
    """Two tops of one name would mean a layer in place; two layers of one name share weights."""
    tops = [value.name for operator in operators for value in operator.outputs]
    for names in ([value.name for value in graph.inputs] + tops, [operator.name for operator in operators]):
        seen: set[str] = set()
        for name in names:
            if name in seen or not name:
                raise InternalError("TM9001", f"the name {name!r} is empty, or used twice")
            seen.add(name)


def _layer(operator: Operator, dialect: Schema) -> Any:
    """The layer without its blobs."""
    if operator.type not in dialect.parameter_fields:
        raise _misfit(operator, f"this dialect of Caffe has no layer {operator.type}")
    layer = dialect.LayerParameter(
        name=operator.name,
        type=operator.type,
        bottom=[value.name for value in operator.inputs if value is not None and not value.is_constant],
        top=[value.name for value in operator.outputs],
    )
    parameter_field = dialect.parameter_fields[operator.type]
    for path, attribute in operator.attributes.items():
        name = path.removesuffix(".dim")  # "shape" and "shape.dim" are the same list
        parameters = getattr(layer, parameter_field) if parameter_field else None
        if parameters is None or name not in parameters.DESCRIPTOR.fields_by_name:
            raise _misfit(operator, f"{operator.type} has no parameter {name!r}")
        try:
            _set(parameters, parameters.DESCRIPTOR.fields_by_name[name], attribute)
        except (TypeError, ValueError) as error:
            raise _misfit(operator, f"parameter {name!r} of {operator.type}: {error}") from error
    return layer


def _set(parameters: Any, field: FieldDescriptor, value: Attribute) -> None:
    """Set one field; raises ValueError or TypeError for a value that it does not take."""
    if field.message_type is not None:  # a BlobShape, the only message inside parameters
        getattr(parameters, field.name).dim.extend(_scalars(field, value, FieldDescriptor.CPPTYPE_INT64))
    elif field.enum_type is not None:
        if not isinstance(value, str) or value not in field.enum_type.values_by_name:
            raise ValueError(f"{value!r} is not one of {', '.join(field.enum_type.values_by_name)}")
        setattr(parameters, field.name, field.enum_type.values_by_name[value].number)
    elif hasattr(getattr(parameters, field.name), "extend"):
        getattr(parameters, field.name).extend(_scalars(field, value, field.cpp_type))
    else:
        (scalar,) = _scalars(field, [value], field.cpp_type)
        setattr(parameters, field.name, scalar)
        # OpenCV ignores one of pad_h and pad_w without the other, so those stay.
        is_default = field.has_default_value and getattr(parameters, field.name) == field.default_value
        if is_default and not field.name.endswith(("_h", "_w")):
            parameters.ClearField(field.name)


def _scalars(field: FieldDescriptor, value: object, cpp_type: int) -> list[Any]:
    scalars = list(value) if isinstance(value, (list, tuple)) else [value]
    for scalar in scalars:
        is_bool = isinstance(scalar, (bool, np.bool_))
        if not isinstance(scalar, _CLASSES[cpp_type]) or is_bool != (
            cpp_type == FieldDescriptor.CPPTYPE_BOOL
        ):
            raise TypeError(f"{scalar!r:.80} does not fit {field.full_name}")
    return scalars


def _blobs(operator: Operator) -> list[Value]:
    return [value for value in operator.inputs if value is not None and value.is_constant]


def _weights(net: Any, blobs: list[list[Value]], dialect: Schema) -> StreamedMessage:
    """The whole net with ``blobs``, one list for each layer."""
    message = StreamedMessage()
    message.append(_encoded(dialect.NetParameter(name=net.name)))
    for layer, values in zip(net.layer, blobs, strict=True):
        message.append_message(_NET_LAYER, _layer_with_blobs(layer, values, dialect))
    return message


def _layer_with_blobs(layer: Any, values: list[Value], dialect: Schema) -> StreamedMessage:
    # Fields are written in the order of their numbers, as protobuf does: the blobs lie in the middle.
    head = dialect.LayerParameter(name=layer.name, type=layer.type, bottom=layer.bottom, top=layer.top)
    tail = dialect.LayerParameter()
    tail.CopyFrom(layer)
    for name in ("name", "type", "bottom", "top", *dialect.unconfirmed):
        tail.ClearField(name)

    message = StreamedMessage()
    message.append(_encoded(head))
    for value in values:
        blob = StreamedMessage()
        blob.append_array(_BLOB_DATA, value.elements(), _FLOAT32)
        blob.append(_encoded(dialect.BlobProto(shape={"dim": value.shape})))
        message.append_message(_LAYER_BLOBS, blob)
    message.append(_encoded(tail))
    return message


def _encoded(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def _misfit(operator: Operator, message: str) -> InternalError:
    return InternalError("TM9001", f"layer {operator.name!r}: {message}", source=operator.source)
