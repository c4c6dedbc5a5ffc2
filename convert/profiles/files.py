"""The operators of written files, of any origin, as profiles judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tmconvert.errors import LoadError, UsageError
from tmconvert.profiles.operation import Extent, Operation, Tensor, with_neighbours
from tmconvert.targets.recognize import target_of_file

if TYPE_CHECKING:
    from tmconvert.formats.onnx.tensors import TensorReader
    from tmconvert.formats.tflite.records import SubgraphRecord, TensorRecord


class FileOperations(NamedTuple):
    """The operators of the main graph in execution order, then those of subgraphs in ``inner``."""

    target: str
    main: list[Operation]
    inner: list[Operation]
    outputs: list[str]


def operations_of_file(path: Path, signature: str | None = "") -> FileOperations:
    """Reads a TFLite or an ONNX file; with None also one with several signatures, the first as main graph.

    Raises LoadError TM1001, TM1009, TM1042; UsageError TM6002 for other kinds.
    """
    target = target_of_file(path).name
    if target not in _READERS:
        raise UsageError(
            "TM6002",
            f"{path} is a {target} file, which profiles do not judge",
            notes=[
                ("help", "use --dialect for a prototxt: its dialects are the profiles of Caffe's readers")
            ],
        )
    return _READERS[target](path, signature)


def _tflite(path: Path, signature: str | None) -> FileOperations:
    from tmconvert.formats.mapped_file import map_file
    from tmconvert.formats.tflite.records import read_model

    model = read_model(str(path), map_file(str(path)), signature)
    graphs = [
        with_neighbours(_of_subgraph(each), {each.label(index) for index in each.outputs})
        for each in model.subgraphs
    ]
    main = graphs.pop(model.main)
    outputs = model.subgraphs[model.main]
    names = [outputs.tensors[index].name for index in outputs.outputs]
    return FileOperations("tflite", main, [each for graph in graphs for each in graph], names)


def _of_subgraph(graph: SubgraphRecord) -> Iterator[Operation]:
    tensors = [_record(each, graph.label(index)) for index, each in enumerate(graph.tensors)]
    for operator in graph.operators:
        outputs = [tensors[index] for index in operator.outputs]
        yield Operation(
            operator.name,
            outputs[0].name if outputs else operator.name,
            [tensors[index] if index >= 0 else None for index in operator.inputs],
            outputs,
            operator.options,
        )


def _record(record: TensorRecord, name: str) -> Tensor:
    from tmconvert.formats.tflite.schema import TYPE_NAMES

    dtype, known, content = TYPE_NAMES.get(record.type, "?"), record.quantization, record.content
    shape: tuple[Extent, ...] = tuple(extent if extent >= 0 else None for extent in record.shape)
    scale = () if known is None else known.scale
    zero_point = () if known is None else known.zero_point
    read = None if content is None else partial(_elements, content, dtype, record.shape)
    return Tensor(name, dtype, shape, scale, zero_point, read)


def _elements(content: memoryview, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the elements of a constant; no elements for types of less than a byte and sparse ones."""
    try:
        return np.frombuffer(content, dtype).reshape(shape)
    except (TypeError, ValueError):
        return np.empty(0)


def _onnx(path: Path, signature: str | None) -> FileOperations:
    from tmconvert.formats.onnx.model import infer_shapes, read_whole_model
    from tmconvert.formats.onnx.tensors import TensorReader

    model = infer_shapes(read_whole_model(str(path), keeps_links=True))
    main: list[Operation] = []
    inner: list[Operation] = []
    version = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    _add_graph(model.graph, {}, version, TensorReader(str(path)), main, inner)
    outputs = [each.name for each in model.graph.output]
    return FileOperations("onnx", with_neighbours(main, outputs), inner, outputs)


def _add_graph(
    graph: Any,
    outer: dict[str, Tensor],
    version: int,
    tensors: TensorReader,
    found: list[Operation],
    inner: list[Operation],
) -> None:
    from tmconvert.formats.onnx.element_types import type_name

    known = dict(outer)
    for each in (*graph.input, *graph.value_info, *graph.output):
        tensor = each.type.tensor_type
        shape = None
        if tensor.HasField("shape"):
            shape = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
        known[each.name] = Tensor(each.name, type_name(tensor.elem_type), shape)
    for each in graph.initializer:
        known[each.name] = _stored(each.name, each, tensors)
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            value = next((each.t for each in node.attribute if each.name == "value"), None)
            known[node.output[0]] = _stored(node.output[0], value, tensors)
            continue
        inputs = [known.get(name) or Tensor(name, "?", None) if name else None for name in node.input]
        outputs = [known.get(name) or Tensor(name, "?", None) for name in node.output if name]
        domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}::"
        attributes = {each.name: _attribute(each) for each in node.attribute}
        place = node.name or (outputs[0].name if outputs else node.op_type)
        kind = f"{domain}{node.op_type}"
        found.append(Operation(kind, place, inputs, outputs, attributes, 0 if domain else version))
        for attribute in node.attribute:
            for each in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                _add_graph(each, known, version, tensors, inner, inner)


def _stored(name: str, stored: Any, tensors: TensorReader) -> Tensor:
    from tmconvert.formats.onnx.element_types import type_name

    if stored is None:
        return Tensor(name, "?", None, read=lambda: np.empty(0))
    shape = tuple(stored.dims)

    def read() -> np.ndarray:
        try:
            return tensors.array(stored)
        except LoadError:  # weights in another file, and types that NumPy lacks
            return np.empty(0)

    return Tensor(name, type_name(stored.data_type), shape, read=read)


def _attribute(attribute: Any) -> object:
    """Returns a number, a text, or a list of these; None for tensors and graphs."""
    fields = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}
    name = fields.get(attribute.type)
    if name is None:
        return None
    value = getattr(attribute, name)
    if name == "s":
        return value.decode("utf-8", "replace")
    return list(value) if name.endswith("s") else value


_READERS: dict[str, Callable[[Path, str | None], FileOperations]] = {"tflite": _tflite, "onnx": _onnx}
