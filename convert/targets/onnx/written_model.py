"""Names, shapes and layers of an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.targets.written_model import WrittenLayer, WrittenModel


def written_onnx(path: Path) -> WrittenModel:
    """Raises LoadError TM1009 for a damaged file."""
    model = WrittenModel("onnx")
    try:
        file = onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise LoadError("TM1009", "this is a damaged ONNX file", source=Source(str(path))) from error
    _onnx_graph(file.graph, model)
    model.inputs = [each.name for each in file.graph.input if each.name not in model.constants]
    return model


def _onnx_graph(graph: Any, model: WrittenModel) -> None:
    for initializer in graph.initializer:
        model.add_constant(initializer.name, tuple(initializer.dims))
    for info in (*graph.input, *graph.value_info, *graph.output):
        shape = info.type.tensor_type.shape
        known = all(dim.HasField("dim_value") for dim in shape.dim)
        model.tensors.setdefault(info.name, tuple(dim.dim_value for dim in shape.dim) if known else None)
    for node in graph.node:
        inputs, outputs = ([name for name in names if name] for names in (node.input, node.output))
        model.layers.append(WrittenLayer(node.name, node.op_type, inputs, outputs))
        for name in outputs:
            model.tensors.setdefault(name, None)
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _onnx_graph(inner, model)
