"""Writes ONNX files.

A file is one ModelProto, which contains the weights as ``raw_data``; optionally those above 1 KiB are in a
second file. The weights are streamed: memory in use does not grow with them. The same graph gives the same
bytes.
"""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Callable, Collection, Iterable
from typing import Any, BinaryIO

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from tmconvert._version import __version__
from tmconvert.errors import InternalError, WriteError
from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value
from tmconvert.output.protobuf_stream import LARGEST_MESSAGE, StreamedMessage, encoded_field
from tmconvert.targets.onnx.external_data import (
    SMALL_CONSTANT,
    ExternalLayout,
    external_bytes,
    external_constants,
    in_bytes,
)

# By name, since ml_dtypes' types have no other handle that every NumPy understands.
_DATA_TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
    "bool": TensorProto.BOOL,
    "complex64": TensorProto.COMPLEX64,
    "complex128": TensorProto.COMPLEX128,
}

_MODEL_GRAPH = ModelProto.GRAPH_FIELD_NUMBER
_GRAPH_INITIALIZER = GraphProto.INITIALIZER_FIELD_NUMBER
_GRAPH_VALUE_INFO = GraphProto.VALUE_INFO_FIELD_NUMBER
_VALUE_INFO_NAME = ValueInfoProto.NAME_FIELD_NUMBER
_VALUE_INFO_TYPE = ValueInfoProto.TYPE_FIELD_NUMBER
_TENSOR_RAW_DATA = TensorProto.RAW_DATA_FIELD_NUMBER

_CHECKED_WHOLE = 2 << 20  # bytes of a file that the checker may read

# Since IR version 4 an initializer need not be listed among the graph's inputs.
_IR_WITH_FREE_INITIALIZERS = 4


def write_onnx(
    graph: TargetGraph,
    file: BinaryIO,
    weights: BinaryIO | None = None,
    weights_name: str = "",
    *,
    value_info: bool = True,
) -> None:
    """Write ``graph`` to ``file`` as one ONNX model of opset ``graph.version``.

    ``weights`` is an empty file for the constants above 1 KiB, which the model refers to as ``weights_name``.
    ``value_info`` stores the type and shape of every intermediate result. ``graph.metadata`` and those of
    ``graph.annotations`` become ``metadata_props``, "doc_string" the model's own. Raises: InternalError
    TM9001 when the graph does not fit the opset; WriteError TM5002 when the model is above the 2 GiB that
    protobuf can hold. Either comes before the first byte is written.
    """
    layout = None if weights is None else ExternalLayout(weights_name, external_constants(graph))
    message = _model(graph, layout, value_info)
    if message.length > LARGEST_MESSAGE:
        raise WriteError(
            "TM5002",
            f"the model takes {message.length / 2**30:.1f} GiB, and an ONNX file can hold 2 GiB",
            notes=[("help", "store the weights in a separate file: --external-data")],
        )
    message.write(file)
    if weights is not None and layout is not None:
        layout.write(weights)


def check_onnx(path: str | os.PathLike[str], graph: TargetGraph | None = None) -> None:
    """Raise InternalError TM9002 unless ONNX's own checker accepts the file, shapes included.

    The checker reads a file into memory, twice. Above 2 MiB ``graph``, if given, is checked in its
    place, with large weights declared as inputs: the same nodes and types without the bytes.
    """
    model: ModelProto | str = os.fspath(path)
    if graph is not None and external_bytes(graph) > _CHECKED_WHOLE:
        model = _without_weights(graph)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise InternalError("TM9002", f"the written ONNX model is not valid: {error}") from error


def _without_weights(graph: TargetGraph) -> ModelProto:
    """Returns the model of ``graph`` with large constants as inputs."""
    slim = {
        id(value): Value(value.name, value.dtype, value.shape)
        for value in graph.constants()
        if value.nbytes > SMALL_CONSTANT
    }
    slimmed = _with_others(graph, slim)
    slimmed.inputs = [*graph.inputs, *slim.values()]
    buffer = io.BytesIO()
    _model(slimmed).write(buffer)
    return ModelProto.FromString(buffer.getvalue())


def _with_others(graph: TargetGraph, others: dict[int, Value]) -> TargetGraph:
    """Returns the graph with some values replaced, by id, also in subgraphs."""
    operators = [
        dataclasses.replace(
            operator,
            inputs=[others.get(id(value), value) for value in operator.inputs],
            attributes={
                name: _with_others(value, others) if isinstance(value, TargetGraph) else value
                for name, value in operator.attributes.items()
            },
        )
        for operator in graph.operators
    ]
    outputs = [others.get(id(value), value) for value in graph.outputs]
    return dataclasses.replace(graph, operators=operators, outputs=outputs)


def newest_opset() -> int:
    """The newest opset that the installed ``onnx`` package knows."""
    return int(onnx.defs.onnx_opset_version())


def ir_version(opset: int) -> int:
    """Returns the IR version of the ONNX release that introduced ``opset``.

    Source: ONNX's docs/Versioning.md, "Released Versions". Opset 7 and 8: 3; 9: 4; 12 to 14: 7.
    """
    try:
        return int(onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)]))
    except ValueError as error:
        raise InternalError("TM9001", f"the installed onnx does not know opset {opset}") from error


def _model(
    graph: TargetGraph, layout: ExternalLayout | None = None, value_info: bool = True
) -> StreamedMessage:
    if not isinstance(graph.version, int):
        raise InternalError("TM9001", f"an ONNX graph's version is its opset, not {graph.version!r}")
    # Fields are written in the order of their numbers, as protobuf does: the graph lies in the middle.
    head = ModelProto(
        ir_version=ir_version(graph.version), producer_name="tmconvert", producer_version=__version__
    )
    metadata = dict(graph.metadata)
    if "doc_string" in metadata:
        head.doc_string = metadata.pop("doc_string")
    domains = sorted({operator.domain for operator in graph.all_operators()} - {""})
    imports = [onnx.helper.make_opsetid("", graph.version)]
    tail = ModelProto(opset_import=[*imports, *(onnx.helper.make_opsetid(name, 1) for name in domains)])
    for key, text in (*metadata.items(), *graph.annotations.metadata.items()):
        tail.metadata_props.add(key=key, value=text)

    message = StreamedMessage()
    message.append(_encoded(head))
    message.append_message(_MODEL_GRAPH, _graph(graph, layout, _ValueInfo(value_info)))
    message.append(_encoded(tail))
    return message


def _graph(graph: TargetGraph, layout: ExternalLayout | None, value_info: _ValueInfo) -> StreamedMessage:
    assert isinstance(graph.version, int)
    opset = graph.version
    constants = graph.constants()
    _check_names(graph, constants)
    nodes = [_node(operator, opset, value_info) for operator in graph.operators]
    identities, outputs = _outputs(graph)
    inputs = list(graph.inputs)
    if ir_version(opset) < _IR_WITH_FREE_INITIALIZERS:
        inputs += constants

    message = StreamedMessage()
    message.append(_encoded(GraphProto(node=nodes + identities, name=graph.name or "model")))
    for value in constants:
        message.append_message(_GRAPH_INITIALIZER, _initializer(value, layout))
    described = [_value_info(value.name, value) for value in inputs]
    message.append(_encoded(GraphProto(input=described, output=outputs)))
    message.append(value_info.encoded(graph, {each.name for each in outputs}))
    return message


class _ValueInfo:
    """Encodes the types of intermediate results, each type once."""

    def __init__(self, is_wanted: bool) -> None:
        self.is_wanted = is_wanted
        self._types: dict[tuple[int, tuple[Any, ...]], bytes] = {}

    def encoded(self, graph: TargetGraph, outputs: Collection[str]) -> bytes:
        """Returns the value_info of ``graph`` except for its ``outputs``."""
        if not self.is_wanted:
            return b""
        computed = (value for operator in graph.operators for value in operator.outputs)
        described = (value for value in computed if value.is_typed and value.name not in outputs)
        return b"".join(map(self._field, described))

    def _field(self, value: Value) -> bytes:
        key = _data_type(value.dtype, value.name), value.shape
        if key not in self._types:
            type_ = onnx.helper.make_tensor_type_proto(key[0], _extents(value))
            self._types[key] = encoded_field(_VALUE_INFO_TYPE, _encoded(type_))
        name = encoded_field(_VALUE_INFO_NAME, value.name.encode())
        return encoded_field(_GRAPH_VALUE_INFO, name + self._types[key])


def _check_names(graph: TargetGraph, constants: Iterable[Value]) -> None:
    """Checks that names are unique: values of one name would silently become one."""
    computed = [value for operator in graph.all_operators() for value in operator.outputs]
    inputs = [value for each in graph.nested() for value in each.inputs]
    seen: set[str] = set()
    for value in [*inputs, *constants, *computed]:
        if value.name in seen or not value.name:
            raise InternalError("TM9001", f"the name {value.name!r} is empty, or used by another value")
        seen.add(value.name)


def _outputs(graph: TargetGraph) -> tuple[list[NodeProto], list[ValueInfoProto]]:
    """Returns the outputs with the user's names, and the Identity nodes that rename them.

    An output whose value has another name (it is an input, a constant, or two outputs) needs one.
    """
    identities = []
    described = []
    computed = {value.name for operator in graph.operators for value in operator.outputs}
    taken = computed | {value.name for value in [*graph.inputs, *graph.constants()]}
    for value, name in zip(graph.outputs, graph.output_names, strict=True):
        described.append(_value_info(name, value))
        if value.name == name:
            continue
        if name in taken:
            raise InternalError("TM9001", f"the output name {name!r} is another value's name")
        taken.add(name)
        identities.append(NodeProto(op_type="Identity", name=name, input=[value.name], output=[name]))
    return identities, described


def _node(operator: Operator, opset: int, value_info: _ValueInfo) -> NodeProto:
    schema = None if operator.domain else _schema(operator, opset)
    inputs = ["" if value is None else value.name for value in operator.inputs]
    while inputs and not inputs[-1]:
        inputs.pop()
    node = NodeProto(
        op_type=operator.type.rpartition("::")[2],
        domain=operator.domain,
        name=operator.name,
        input=inputs,
        output=[value.name for value in operator.outputs],
    )
    for name, attribute in operator.attributes.items():
        if schema is None:
            kind = _kind(operator, name, attribute)
        elif name in schema.attributes:
            kind = schema.attributes[name].type
        else:
            raise _misfit(operator, f"{operator.type} of opset {opset} has no attribute {name!r}")
        node.attribute.append(_attribute(operator, name, attribute, kind, value_info))
    return node


def _schema(operator: Operator, opset: int) -> onnx.defs.OpSchema:
    try:
        schema = onnx.defs.get_schema(operator.type, opset)
    except onnx.defs.SchemaError as error:
        raise _misfit(operator, f"opset {opset} has no operator {operator.type}") from error
    if schema.deprecated:
        raise _misfit(operator, f"opset {opset} has no operator {operator.type} any more")
    return schema


_AttrType = onnx.defs.OpSchema.AttrType

# By the schema's type: AttributeProto's type and field, the classes taken, and their conversion.
_ATTRIBUTE_FORMS: dict[Any, tuple[int, str, tuple[type, ...], Callable[[Any], Any]]] = {
    _AttrType.FLOAT: (AttributeProto.FLOAT, "f", (float, int, np.floating, np.integer), float),
    _AttrType.INT: (AttributeProto.INT, "i", (int, np.integer), int),
    _AttrType.STRING: (AttributeProto.STRING, "s", (str,), str.encode),
}
_LIST_FORMS = {
    _AttrType.FLOATS: (AttributeProto.FLOATS, "floats", _AttrType.FLOAT),
    _AttrType.INTS: (AttributeProto.INTS, "ints", _AttrType.INT),
    _AttrType.STRINGS: (AttributeProto.STRINGS, "strings", _AttrType.STRING),
}


def _kind(operator: Operator, name: str, value: Attribute) -> Any:
    """Returns the type of an attribute without schema, by its value; an empty list counts as ints."""
    if isinstance(value, np.ndarray):
        return _AttrType.TENSOR
    items = value if isinstance(value, (list, tuple)) else [value]
    for kind in (_AttrType.INT, _AttrType.FLOAT, _AttrType.STRING):  # an int is a float, too
        if all(isinstance(item, _ATTRIBUTE_FORMS[kind][2]) for item in items):
            lists = {element: form for form, (_, _, element) in _LIST_FORMS.items()}
            return lists[kind] if items is value else kind
    raise _misfit(operator, f"ONNX has no attribute such as {name}={value!r:.80}")


def _attribute(
    operator: Operator, name: str, value: Attribute, kind: Any, value_info: _ValueInfo
) -> AttributeProto:
    wanted = f"attribute {name!r} of {operator.type} is {kind.name}, not {value!r:.80}"
    if kind == _AttrType.GRAPH:
        if not isinstance(value, TargetGraph):
            raise _misfit(operator, wanted)
        inner = _inner_graph(f"{operator.name}/{name}", value, value_info)
        return AttributeProto(name=name, type=AttributeProto.GRAPH, g=inner)
    if kind == _AttrType.TENSOR:
        if not isinstance(value, np.ndarray):
            raise _misfit(operator, wanted)
        return AttributeProto(name=name, type=AttributeProto.TENSOR, t=_tensor(value))
    if kind in _ATTRIBUTE_FORMS:
        number, field, classes, convert = _ATTRIBUTE_FORMS[kind]
        if not isinstance(value, classes):
            raise _misfit(operator, wanted)
        return _filled(name, number, field, convert(value))
    if kind in _LIST_FORMS and isinstance(value, (list, tuple)):
        number, field, element = _LIST_FORMS[kind]
        _, _, classes, convert = _ATTRIBUTE_FORMS[element]
        if all(isinstance(item, classes) for item in value):
            return _filled(name, number, field, [convert(item) for item in value])
    raise _misfit(operator, wanted)


def _inner_graph(name: str, graph: TargetGraph, value_info: _ValueInfo) -> GraphProto:
    """Encodes a subgraph. Its constants are initializers of the main graph, which it can access."""
    assert isinstance(graph.version, int)
    inner = GraphProto(
        name=name,
        node=[_node(operator, graph.version, value_info) for operator in graph.operators],
        input=[_value_info(value.name, value) for value in graph.inputs],
        output=[_value_info(value.name, value) for value in graph.outputs],
    )
    inner.MergeFromString(value_info.encoded(graph, {value.name for value in graph.outputs}))
    return inner


def _filled(name: str, kind: Any, field: str, value: object) -> AttributeProto:
    fields: dict[str, Any] = {field: value}
    return AttributeProto(name=name, type=kind, **fields)


def _tensor(data: np.ndarray) -> TensorProto:
    little = data.astype(data.dtype.newbyteorder("<")) if data.dtype.byteorder == ">" else data
    return TensorProto(
        dims=data.shape, data_type=_data_type(data.dtype, "a tensor"), raw_data=little.tobytes()
    )


def _initializer(value: Value, layout: ExternalLayout | None) -> StreamedMessage:
    data_type = _data_type(value.dtype, value.name)
    tensor = TensorProto(dims=value.shape, data_type=data_type, name=value.name)
    message = StreamedMessage()
    if layout is not None and layout.has(value):
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in layout.place(value).items():
            tensor.external_data.add(key=key, value=text)
        message.append(_encoded(tensor))
    else:
        message.append(_encoded(tensor))
        packed = in_bytes(value.elements())
        message.append_array(_TENSOR_RAW_DATA, packed, packed.dtype)
    return message


def _value_info(name: str, value: Value) -> ValueInfoProto:
    data_type = _data_type(value.dtype, value.name)
    return onnx.helper.make_tensor_value_info(name, data_type, _extents(value))


def _extents(value: Value) -> list[int | str]:
    return [extent if isinstance(extent, int) else str(extent) for extent in value.shape]


def _data_type(dtype: np.dtype, name: str) -> int:
    number = _DATA_TYPES.get(name_of(np.dtype(dtype)))
    if number is None:
        raise InternalError("TM9001", f"ONNX has no data type for {name!r}: {dtype}")
    return int(number)


def _encoded(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def _misfit(operator: Operator, message: str) -> InternalError:
    return InternalError("TM9001", f"node {operator.name!r}: {message}", source=operator.source)
