"""Reads ONNX files as messages: the one place that parses them."""

from __future__ import annotations

from collections.abc import Mapping
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


def read_model(path: str) -> Any:
    """Returns the ModelProto of a file; large weights are external data, of other files or of its own.

    Raises LoadError TM1001, TM1031, TM1033.

    >>> read_model("net.onnx").graph.node[0].op_type  # doctest: +SKIP
    'Conv'
    """
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
    if model.ir_version < IR_VERSIONS.start:
        raise unknown_part(
            path,
            f"the file has the version {model.ir_version} of the format, from before {IR_VERSIONS.start}",
            "export the model again, or convert it with onnx.version_converter",
        )
    if not Path(path).exists():
        raise LoadError("TM1001", "the file was removed while it was read", source=Source(path))
    return model


def read_whole_model(path: str, *, keeps_links: bool = False) -> Any:
    """Returns the ModelProto of a file with all of its weights, as a copy.

    With ``keeps_links``, data of other files stay there. Raises LoadError TM1001, TM1031 to TM1033.
    """
    model, reader, left = read_model(path), TensorReader(path), Path(path).stat().st_size
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


def read_initializers(path: str) -> dict[str, np.ndarray]:
    """Returns the initializers of the main graph by name, in the types of the file.

    Raises LoadError TM1001, TM1031 to TM1033.
    """
    reader = TensorReader(path)
    return {tensor.name: reader.stored_array(tensor) for tensor in read_model(path).graph.initializer}


def infer_shapes(model: Any) -> Any:
    """Returns a model of less than 2 GB with the shapes that the package onnx can infer."""
    import onnx

    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # of many kinds, for operators and types that it does not know
        return model


def store_types(model: Any, types: Mapping[str, bytes]) -> None:
    """Adds serialized types of values, by name, to the graph of a model that lacks them."""
    known = {each.name for each in (*model.graph.input, *model.graph.value_info, *model.graph.output)}
    for name, type_ in types.items():
        if name not in known:
            model.graph.value_info.add(name=name).type.ParseFromString(type_)
