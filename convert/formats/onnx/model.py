"""Reads ONNX files as messages: the one place that parses them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.onnx.external_data import location_of, tensors_of
from tmconvert.formats.onnx.faults import damaged, unknown_part
from tmconvert.formats.onnx.mapped_weights import OWN_FILE, without_weights
from tmconvert.formats.onnx.messages import messages
from tmconvert.formats.onnx.recognize import IR_VERSIONS
from tmconvert.formats.onnx.tensors import TensorReader

LARGEST = 2**31 - 1  # bytes of a protobuf message
_GRAPHS = (5, 10)  # AttributeProto.AttributeType
_parsed: ContextVar[dict[tuple[int, ...], Any] | None] = ContextVar("parsed", default=None)


@contextmanager
def parsed_once() -> Iterator[None]:
    """Parses each file once within the block, whose messages are shared: nobody there may change them.

    >>> with parsed_once():  # doctest: +SKIP
    ...     read_model("net.onnx") is read_model("net.onnx")
    True
    """
    token = _parsed.set({})
    try:
        yield
    finally:
        _parsed.reset(token)


def metadata_of(model: Any) -> dict[str, str]:
    """Returns the ``metadata_props`` of a model that are not tmconvert's own."""
    return {each.key: each.value for each in model.metadata_props if not each.key.startswith("tmconvert.")}


def read_model(path: str) -> Any:
    """Returns the ModelProto of a file; large weights are external data, of other files or of its own.

    Raises LoadError TM1001, TM1031, TM1033.

    >>> read_model("net.onnx").graph.node[0].op_type  # doctest: +SKIP
    'Conv'
    """
    known = _parsed.get()
    if known is None:
        return _parse(path)
    try:
        state = os.stat(path)  # noqa: PTH116  (Path is slower)
    except (OSError, ValueError):  # which name no file: the reader states why
        return _parse(path)
    key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
    if key not in known:
        known[key] = _parse(path)
    return known[key]


def _parse(path: str) -> Any:
    from google.protobuf.message import DecodeError

    data = map_file(path)
    if len(data) > LARGEST:
        raise damaged(path, f"it has {len(data)} bytes; a model of more than 2 GB needs external data")
    model = messages().ModelProto()
    try:
        model.ParseFromString(without_weights(data))
    except DecodeError as error:
        raise damaged(path, str(error)) from error
    if not model.HasField("graph"):
        raise damaged(path, "it has no graph")
    bad = next((text for text in _texts(model) if isinstance(text, bytes)), None)  # as protobuf leaves it
    if bad is not None:
        raise damaged(path, f"the text {bad[:40]!r} is not UTF-8")
    if model.ir_version < IR_VERSIONS.start:
        raise unknown_part(
            path,
            f"the file has the version {model.ir_version} of the format, from before {IR_VERSIONS.start}",
            "export the model again, or convert it with onnx.version_converter",
        )
    if not Path(path).exists():
        raise LoadError("TM1001", "the file was removed while it was read", source=Source(path))
    return model


def _texts(model: Any) -> Iterator[str | bytes]:
    """Yields the names and other texts of a model."""
    yield from (model.producer_name, model.producer_version, model.domain)
    yield from (text for each in model.metadata_props for text in (each.key, each.value))
    yield from (each.domain for each in model.opset_import)
    yield from _texts_of_graph(model.graph)
    for function in model.functions:
        yield from (function.name, function.domain, *function.input, *function.output, *function.attribute)
        yield from _texts_of_nodes(function.node)


def _texts_of_graph(graph: Any) -> Iterator[str | bytes]:
    yield graph.name
    for each in (*graph.input, *graph.output, *graph.value_info):
        yield each.name
        yield from (dim.dim_param for dim in each.type.tensor_type.shape.dim)
    yield from (each.name for each in graph.initializer)
    yield from _texts_of_nodes(graph.node)


def _texts_of_nodes(nodes: Iterable[Any]) -> Iterator[str | bytes]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
            for graph in (attribute.g, *attribute.graphs) if attribute.type in _GRAPHS else ():
                yield from _texts_of_graph(graph)


def read_whole_model(path: str, *, keeps_links: bool = False) -> Any:
    """Returns the ModelProto of a file with all of its weights, as a copy.

    With ``keeps_links``, data of other files stay there. Raises LoadError TM1001, TM1031 to TM1033.
    """
    model, reader, left = _parse(path), TensorReader(path), Path(path).stat().st_size
    for tensor in tensors_of(model.graph):
        location = location_of(tensor)
        if location == OWN_FILE or (location is not None and not keeps_links):
            content = reader.external(tensor)
            left -= len(content) if location == OWN_FILE else 0
            if left < 0:
                raise damaged(path, "its tensors have more bytes than the file")
            tensor.raw_data = bytes(content)
            del tensor.external_data[:]
            tensor.ClearField("data_location")
    return model


class Initializers(Mapping[str, np.ndarray]):
    """The initializers of a file's main graph by name, as stored; each is read when it is looked up.

    Raises LoadError TM1001, TM1031 to TM1033.
    """

    def __init__(self, path: str) -> None:
        self._reader = TensorReader(path)
        self._tensors = {tensor.name: tensor for tensor in read_model(path).graph.initializer}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._reader.stored_array(self._tensors[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def infer_shapes(model: Any) -> Any:
    """Returns a model of less than 2 GB with the shapes that the package onnx can infer."""
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # of many kinds, for operators and types that it does not know
        return model


def without_functions(model: Any) -> Any:
    """Returns a model in which the calls of its own functions are inlined."""
    if not model.functions:
        return model
    from onnx import inliner

    return inliner.inline_local_functions(model)


def set_input_shapes(model: Any, shapes: Mapping[str, Sequence[int]]) -> None:
    """Gives inputs of a model other shapes, by name; without the shapes of values that follow from them."""
    if not shapes:
        return
    graph = model.graph
    for each in graph.input:
        if each.name in shapes:
            dims = each.type.tensor_type.shape.dim
            del dims[:]
            for size in shapes[each.name]:
                dims.add(dim_value=size)
    graph.ClearField("value_info")
    for each in graph.output:
        if each.type.WhichOneof("value") == "tensor_type":
            each.type.tensor_type.ClearField("shape")


def store_types(model: Any, types: Mapping[str, bytes]) -> None:
    """Adds serialized types of values, by name, to the graph of a model that lacks them."""
    known = {each.name for each in (*model.graph.input, *model.graph.value_info, *model.graph.output)}
    for name, type_ in types.items():
        if name not in known:
            model.graph.value_info.add(name=name).type.ParseFromString(type_)
