"""Writes TFLite files.

A file has a subgraph for each signature and one for each subgraph of their calls, and the weights, which are
streamed: memory in use does not grow with them. Weights that are equal are stored once. The same graphs give
the same bytes. Slots and codes: LiteRT's schema.fbs.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import BinaryIO, TypeGuard

import numpy as np

from tmconvert._version import __version__
from tmconvert.errors import InternalError, UnsupportedError
from tmconvert.formats.tflite.flatbuffer_writer import Field, FlatbufferWriter
from tmconvert.formats.tflite.schema import (
    BLOCKWISE,
    ENUMS,
    NARROW_BITS,
    OTHER_TYPES,
    TENSOR_TYPES,
    OptionField,
    options_code,
)
from tmconvert.ir.lazy_constants import Array, computed, memory_of
from tmconvert.ir.symbolic.dims import Dim, example, is_symbolic
from tmconvert.ir.types import name_of
from tmconvert.lowering.rounded_constants import packed
from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value
from tmconvert.output.copies import Copies
from tmconvert.targets.options import DEFAULT_SIGNATURE
from tmconvert.targets.tflite.operators import SPECS, spec
from tmconvert.targets.tflite.runtimes import minimum_runtime
from tmconvert.targets.tflite.versions import model_versions

RESOURCE = np.dtype(object)  # the type of handles of variables

_FILE_IDENTIFIER = b"TFL3"
_TYPES = TENSOR_TYPES | {name: OTHER_TYPES[name] for name in NARROW_BITS} | {RESOURCE.name: 13}
_SCHEMA_VERSION = 3
_RUNTIME_FIELD_BYTES = 16

# Readers older than the 32-bit code look only at this 8-bit one, where 127 stands for a larger code.
_LARGEST_SHORT_CODE = 127

# Above this size, weights are identified by their offset in the file: 2 GiB minus the size of the tables.
_MOST_WITHIN = (2 << 30) - (64 << 20)
# Smaller constants stay in the flatbuffer all the same: runtimes look at shapes and axes early.
_SMALL = 1 << 10

# Up to this size, equal constants are found by their contents.
_COMPARED = 64 * 1024


def write_tflite(graph: TargetGraph, file: BinaryIO) -> None:
    """Writes ``graph`` to ``file`` as the only signature of a TFLite model; see ``write_signatures``."""
    write_signatures([graph], file)


def write_signatures(graphs: Sequence[TargetGraph], file: BinaryIO) -> None:
    """Writes ``graphs`` to ``file`` as the signatures of one TFLite model.

    ``input_names`` and ``output_names`` are those of the signature; one without a name is "serving_default".
    The metadata and the annotations of the first graph are those of the file: texts of ``metadata`` become
    entries in UTF-8, and "min_runtime_version" is added. A value without a producer at a state input of an
    operator is a variable tensor. Weights above 2 GiB follow the flatbuffer, which stores their offsets.
    Raises: InternalError TM9001 when a graph does not fit TFLite; WriteError TM5002 when the tables and small
    constants alone do not fit a flatbuffer; UnsupportedError TM2003 for numbers above int32. Each comes
    before the first byte is written.
    """
    skeleton = FlatbufferWriter()
    try:
        root = _root(skeleton, graphs)
    except struct.error as error:
        largest = (
            "the largest number of TFLite files is 2,147,483,647, and a size or index of the model is larger"
        )
        raise UnsupportedError("TM2003", largest) from error
    skeleton.write(root, _FILE_IDENTIFIER, file)
    if graphs[0].annotations.metadata:
        from tmconvert.formats.tflite.model_metadata import append_archive

        append_archive(file, graphs[0].annotations)


def _root(skeleton: FlatbufferWriter, graphs: Sequence[TargetGraph]) -> int:
    buffers = _Buffers(has_copies=len(graphs) > 1)
    operators = (operator for graph in graphs for operator in graph.all_operators())
    versions = model_versions(_known(operators))
    codes = {type: code for code, type in enumerate(versions)}
    inner = (inside for graph in graphs for inside in graph.nested())
    numbers = {inside: number for number, inside in enumerate(dict.fromkeys((*graphs, *inner)))}
    made = [_subgraph(skeleton, buffers, inside, codes, numbers) for inside in numbers]
    metadata = _metadata(skeleton, buffers, graphs[0], minimum_runtime(versions))
    signatures = [_signature(skeleton, graph, number, made[number][1]) for number, graph in enumerate(graphs)]
    return skeleton.table(
        (0, "uint32", _SCHEMA_VERSION),
        (1, "offset", _operator_codes(skeleton, versions)),
        (2, "offset", skeleton.offsets([table for table, _ in made])),
        (3, "offset", skeleton.string(f"tmconvert {__version__}")),
        (4, "offset", buffers.tables(skeleton)),
        (6, "offset", metadata),
        (7, "offset", skeleton.offsets(signatures)),
    )


class _Buffers:
    """The file's buffers: number 0 is empty, and equal contents share one.

    With ``has_copies`` large arrays may be equal that are not in the same memory: the weights of several
    signatures, which were computed for each.
    """

    def __init__(self, *, has_copies: bool) -> None:
        self._contents: list[Array] = []
        self._indices: dict[Hashable, int] = {}
        self._copies = Copies() if has_copies else None
        self._uses: Counter[Hashable] = Counter()

    def begin_subgraph(self) -> None:
        self._uses.clear()

    def index(self, data: Array, *, is_alone: bool = False) -> int:
        """Returns the number of the buffer with ``data``; with ``is_alone``, not shared in a subgraph."""
        key = self._key(data)
        if is_alone:
            key = "alone", key, self._uses[key]
            self._uses[key[1]] += 1
        if key not in self._indices:
            self._contents.append(data)
            self._indices[key] = len(self._contents)
        return self._indices[key]

    def tables(self, skeleton: FlatbufferWriter) -> int:
        are_far = sum(data.nbytes for data in self._contents) > _MOST_WITHIN
        return skeleton.offsets(
            [
                skeleton.table(),
                *(
                    skeleton.table_of_place(1, 2, data)
                    if are_far and data.nbytes > _SMALL
                    else skeleton.table_of_bytes(0, data)
                    for data in self._contents
                ),
            ]
        )

    def _key(self, data: Array) -> Hashable:
        if data.nbytes <= _COMPARED:
            return _Contents(computed(data))
        # Two views of the same memory; reading large ones to compare them would cost a pass over the file.
        return memory_of(data) if self._copies is None else self._copies.key(data)


class _Contents:
    """The bytes of an array as a key, which keeps no copy of them."""

    __slots__ = ("_data", "_hash")

    def __init__(self, data: np.ndarray) -> None:
        self._data = data
        self._hash = hash(data.tobytes())

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Contents) or self._hash != other._hash:
            return False
        return self._data is other._data or self._data.tobytes() == other._data.tobytes()


def _known(operators: Iterable[Operator]) -> Iterable[Operator]:
    for operator in operators:
        if spec(operator.type).code is None or (operator.type not in SPECS and not operator.domain):
            raise _misfit(operator, f"TFLite has no operator {operator.type}")
        yield operator


def _operator_codes(skeleton: FlatbufferWriter, versions: dict[str, int]) -> int:
    tables = []
    for type, version in versions.items():
        code = spec(type).code
        assert code is not None
        fields: list[Field] = [(0, "int8", min(code, _LARGEST_SHORT_CODE))]
        if type not in SPECS:
            fields.append((1, "offset", skeleton.string(type.rpartition("::")[2])))
        tables.append(skeleton.table(*fields, (2, "int32", version), (3, "int32", code)))
    return skeleton.offsets(tables)


def _subgraph(
    skeleton: FlatbufferWriter,
    buffers: _Buffers,
    graph: TargetGraph,
    codes: Mapping[str, int],
    numbers: Mapping[TargetGraph, int],
) -> tuple[int, dict[int, int]]:
    """Encodes the subgraph; returns its table, and each value's tensor index by its id()."""
    buffers.begin_subgraph()
    values, states = _values(graph)
    indices = {id(value): index for index, value in enumerate(values)}
    biases = _biases(graph)
    blocks = _block_scales(values)
    places = {key: len(values) + place for place, key in enumerate(blocks)}
    values += blocks.values()
    tensors = [
        _tensor(skeleton, buffers, value, id(value) in states, id(value) in biases, places.get(id(value)))
        for value in values
    ]
    operators = [
        _operator(skeleton, operator, codes[operator.type], indices, numbers) for operator in graph.operators
    ]
    table = skeleton.table(
        (0, "offset", skeleton.offsets(tensors)),
        (1, "offset", skeleton.int32s(indices[id(value)] for value in graph.inputs)),
        (2, "offset", skeleton.int32s(indices[id(value)] for value in graph.outputs)),
        (3, "offset", skeleton.offsets(operators)),
        (4, "offset", skeleton.string(graph.name)),
    )
    return table, indices


def _values(graph: TargetGraph) -> tuple[list[Value], set[int]]:
    """Returns every value once, in the order of first use, and the ids of state variables."""
    values = {id(value): value for value in graph.inputs}
    states: set[int] = set()
    for operator in graph.operators:
        for index, value in enumerate(operator.inputs):
            if value is None or id(value) in values:
                continue
            values[id(value)] = value
            if value.is_constant:
                continue
            if index not in spec(operator.type).states:
                raise _misfit(operator, f"its input {value.name!r} is not computed before it")
            states.add(id(value))
        values.update((id(value), value) for value in operator.outputs)
    for value in graph.outputs:
        if id(value) not in values and not value.is_constant:
            raise InternalError("TM9001", f"nothing computes the output {value.name!r}")
        values[id(value)] = value
    return list(values.values()), states


def _biases(graph: TargetGraph) -> set[int]:
    """Returns the ids of biases, which do not share buffers, since each gets its operator's scale."""
    found = set()
    for operator in graph.operators:
        weights = spec(operator.type).weights
        if weights is not None:
            given = operator.inputs[weights.bias : weights.bias + 1]
            found |= {id(value) for value in given if value is not None}
    return found


def _block_scales(values: Iterable[Value]) -> dict[int, Value]:
    """Returns the tensors with scales of blocks, by the ids of their weights."""
    found = {}
    for value in values:
        known = value.quantization
        if known is not None and known.block_size:
            scale = known.scale.astype(np.float16, copy=False)
            found[id(value)] = Value(f"{value.name}_scales", scale.dtype, scale.shape, scale)
    return found


def _tensor(
    skeleton: FlatbufferWriter,
    buffers: _Buffers,
    value: Value,
    is_state: bool,
    is_bias: bool,
    scales: int | None,
) -> int:
    """Encodes a Tensor; ``scales`` is the index of that with the scales of its blocks.

    Dynamic sizes are those of the example until the tensor is resized.
    """
    if name_of(value.dtype) not in _TYPES:
        raise InternalError("TM9001", f"TFLite has no type for the tensor {value.name!r}: {value.dtype}")
    fields: list[Field] = [
        (0, "offset", skeleton.int32s(map(example, value.shape))),
        (1, "int8", _TYPES[name_of(value.dtype)]),
        (2, "uint32", _buffer(buffers, value, is_bias)),
        (3, "offset", skeleton.string(value.name)),
        (8, "bool", True),  # tells a scalar from a tensor of unknown rank
    ]
    if value.quantization is not None and scales is not None:
        fields.append((4, "offset", _blocks(skeleton, scales, value.quantization.block_size)))
    elif value.quantization is not None:
        scale, zero_point = value.quantization.scale, value.quantization.zero_point
        if zero_point is None:
            zero_point = np.zeros(len(scale), np.int64)
        quantization = skeleton.table(
            (2, "offset", skeleton.float32s(scale)),
            (3, "offset", skeleton.int64s(zero_point)),
            (6, "int32", value.quantization.axis),
        )
        fields.append((4, "offset", quantization))
    if is_state:
        fields.append((5, "bool", True))
    if is_symbolic(value.shape):
        signature = (-1 if isinstance(extent, Dim) else extent for extent in value.shape)
        fields.append((7, "offset", skeleton.int32s(signature)))
    return skeleton.table(*fields)


def _blocks(skeleton: FlatbufferWriter, scales: int, size: int) -> int:
    """Encodes QuantizationParameters with a BlockwiseQuantization without zero points."""
    details = skeleton.table((0, "int32", scales), (1, "int32", -1), (2, "int32", size))
    return skeleton.table((4, "uint8", BLOCKWISE), (5, "offset", details))


def _buffer(buffers: _Buffers, value: Value, is_bias: bool) -> int:
    if not value.is_constant:
        return 0
    elements = value.elements()
    if name_of(value.dtype) in NARROW_BITS:
        elements = packed(elements)
    return buffers.index(elements, is_alone=is_bias)


def _operator(
    skeleton: FlatbufferWriter,
    operator: Operator,
    code_index: int,
    indices: Mapping[int, int],
    numbers: Mapping[TargetGraph, int],
) -> int:
    inputs = [-1 if value is None else indices[id(value)] for value in operator.inputs]
    outputs = [indices[id(value)] for value in operator.outputs]
    fields: list[Field] = [
        (0, "uint32", code_index),
        (1, "offset", skeleton.int32s(inputs)),
        (2, "offset", skeleton.int32s(outputs)),
    ]
    if operator.domain:
        return skeleton.table(*fields, (5, "offset", skeleton.int8s(_flexible(operator))))
    known = spec(operator.type)
    options = _options(skeleton, operator, known.option_fields, numbers)
    if known.options is not None:
        code = options_code(known.options)
        fields += [(3, "uint8", code), (4, "offset", skeleton.table(*options))]
    return skeleton.table(*fields)


def _flexible(operator: Operator) -> bytes:
    """Encodes the attributes of a custom operator as a FlexBuffers map."""
    from flatbuffers import flexbuffers

    plain = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in operator.attributes.items()
    }
    try:
        return bytes(flexbuffers.Dumps(plain))
    except TypeError as error:
        raise _misfit(operator, f"its attributes {plain} are not plain: {error}") from error


def _options(
    skeleton: FlatbufferWriter,
    operator: Operator,
    known: Mapping[str, OptionField],
    numbers: Mapping[TargetGraph, int],
) -> list[Field]:
    for name in operator.attributes:
        if name not in known:
            raise _misfit(operator, f"{operator.type} has no attribute {name!r}")
    fields: list[Field] = []
    for name, field in known.items():
        if name not in operator.attributes:
            if field.required:
                raise _misfit(operator, f"{operator.type} needs the attribute {name!r}")
            continue
        value = operator.attributes[name]
        if field.kind == "int32s":
            fields.append((field.slot, "offset", skeleton.int32s(_int32s(operator, name, value))))
            continue
        if field.kind == "text":
            fields.append((field.slot, "offset", skeleton.string(str(value))))
            continue
        if field.kind == "float32s":
            fields.append((field.slot, "offset", skeleton.float32s(_float32s(operator, name, value))))
            continue
        number = _number(operator, field, numbers[value] if isinstance(value, TargetGraph) else value)
        if number != field.default:
            kind = {"graph": "int32", **dict.fromkeys(ENUMS, "int8")}.get(field.kind, field.kind)
            fields.append((field.slot, kind, number))
    return fields


def _number(operator: Operator, field: OptionField, value: Attribute) -> float:
    """Returns the attribute as the number that the field stores."""
    if field.kind in ENUMS:
        names = ENUMS[field.kind]
        if isinstance(value, str) and value in names:
            return names[value]
        raise _wrong(operator, field.name, f"one of {', '.join(names)}", value)
    if field.kind == "bool":
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise _wrong(operator, field.name, "a bool", value)
    if field.kind == "float32":
        if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
            return float(value)
        raise _wrong(operator, field.name, "a float", value)
    if _is_int32(value) or (field.kind == "int64" and isinstance(value, int) and abs(value) < 1 << 63):
        return int(value)
    raise _wrong(operator, field.name, f"an {field.kind}", value)


def _int32s(operator: Operator, name: str, value: object) -> list[int]:
    items: list[object] = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [None]
    numbers = [int(item) for item in items if _is_int32(item)]
    if len(numbers) != len(items):
        raise _wrong(operator, name, "a list of int32", value)
    return numbers


def _float32s(operator: Operator, name: str, value: object) -> np.ndarray:
    if isinstance(value, (list, tuple, np.ndarray)) and np.asarray(value).dtype.kind in "if":
        return np.asarray(value, np.float32)
    raise _wrong(operator, name, "a list of floats", value)


def _is_int32(item: object) -> TypeGuard[int]:
    if isinstance(item, bool) or not isinstance(item, (int, np.integer)):
        return False
    return bool(-(2**31) <= item < 2**31)


def _signature(skeleton: FlatbufferWriter, graph: TargetGraph, number: int, indices: dict[int, int]) -> int:
    def tensor_maps(names: list[str], values: list[Value]) -> int:
        return skeleton.offsets(
            [
                skeleton.table((0, "offset", skeleton.string(name)), (1, "uint32", indices[id(value)]))
                for name, value in zip(names, values, strict=True)
            ]
        )

    return skeleton.table(
        (0, "offset", tensor_maps(graph.input_names, graph.inputs)),
        (1, "offset", tensor_maps(graph.output_names, graph.outputs)),
        (2, "offset", skeleton.string(graph.signature or DEFAULT_SIGNATURE)),
        (4, "uint32", number),
    )


def _metadata(skeleton: FlatbufferWriter, buffers: _Buffers, graph: TargetGraph, runtime: str) -> int:
    texts = {name: text.encode() for name, text in graph.metadata.items()}
    if graph.annotations.is_given:
        from tmconvert.formats.tflite.model_metadata import ENTRY, Tensor, metadata_buffer

        inputs, outputs = (
            [
                Tensor(name, value.shape, value.dtype.kind in "iu" and value.quantization is None)
                for name, value in zip(names, values, strict=True)
            ]
            for values, names in ((graph.inputs, graph.input_names), (graph.outputs, graph.output_names))
        )
        texts[ENTRY] = metadata_buffer(graph.name, inputs, outputs, graph.annotations)
    texts["min_runtime_version"] = runtime.encode().ljust(_RUNTIME_FIELD_BYTES, b"\0")
    tables = []
    for name, text in texts.items():
        buffer = buffers.index(np.frombuffer(text, np.uint8))
        tables.append(skeleton.table((0, "offset", skeleton.string(name)), (1, "uint32", buffer)))
    return skeleton.offsets(tables)


def _wrong(operator: Operator, name: str, wanted: str, value: object) -> InternalError:
    return _misfit(operator, f"attribute {name!r} of {operator.type} is {wanted}, not {value!r:.80}")


def _misfit(operator: Operator, message: str) -> InternalError:
    return InternalError("TM9001", f"operator {operator.name!r}: {message}", source=operator.source)
