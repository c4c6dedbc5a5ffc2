"""Names, types, shapes and layers of an ONNX file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.onnx.element_types import type_name
from tmconvert.formats.onnx.model import infer_shapes, metadata_of, read_model, read_whole_model
from tmconvert.output.metadata import SIZE_RANGES
from tmconvert.targets.written_model import TensorInfo, WrittenLayer, WrittenModel

MOST_INFERRED = 1 << 30  # bytes of a file whose missing shapes are inferred, which takes copies of it


def written_onnx(path: Path) -> WrittenModel:
    """Raises LoadError TM1001, TM1033, and TM1009 for a damaged file."""
    model = WrittenModel("onnx")
    try:
        file = read_model(str(path))
        if _lacks_shapes(file.graph) and path.stat().st_size < MOST_INFERRED:
            file = infer_shapes(read_whole_model(str(path), keeps_links=True))
    except LoadError as error:
        if error.code != "TM1031":
            raise
        raise LoadError("TM1009", "this is a damaged ONNX file", source=Source(str(path))) from error
    _onnx_graph(file.graph, model)
    model.inputs = [each.name for each in file.graph.input if each.name not in model.constants]
    model.outputs = [each.name for each in file.graph.output]
    model.input_tensors = [_info(each) for each in file.graph.input if each.name not in model.constants]
    model.output_tensors = [_info(each) for each in file.graph.output]
    model.ranges, model.metadata = _ranges(file), metadata_of(file)
    opset = next((each.version for each in file.opset_import if each.domain in ("", "ai.onnx")), 0)
    model.version = f"opset {opset}"
    model.producer = f"{file.producer_name} {file.producer_version}".strip()
    return model


def _ranges(file: Any) -> list[str]:
    """Returns the ranges of open sizes that the metadata of tmconvert state."""
    text = next((each.value for each in file.metadata_props if each.key == SIZE_RANGES), "[]")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _lacks_shapes(graph: Any) -> bool:
    known = {each.name for each in (*graph.value_info, *graph.output)}
    return any(name not in known for node in graph.node for name in node.output if name)


def _onnx_graph(graph: Any, model: WrittenModel) -> None:
    for initializer in graph.initializer:
        model.add_constant(initializer.name, tuple(initializer.dims), type_name(initializer.data_type))
    for info in (*graph.input, *graph.value_info, *graph.output):
        shape = info.type.tensor_type.shape
        is_ranked = info.type.tensor_type.HasField("shape")
        known = is_ranked and all(dim.HasField("dim_value") for dim in shape.dim)
        model.tensors.setdefault(info.name, tuple(dim.dim_value for dim in shape.dim) if known else None)
        model.types.setdefault(info.name, type_name(info.type.tensor_type.elem_type))
    for node in graph.node:
        inputs, outputs = ([name for name in names if name] for names in (node.input, node.output))
        if node.op_type == "Constant" and outputs:
            _add_constant(node, outputs[0], model)
            continue
        model.layers.append(WrittenLayer(node.name, node.op_type, inputs, outputs))
        for name in outputs:
            model.tensors.setdefault(name, None)
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _onnx_graph(inner, model)


def _add_constant(node: Any, name: str, model: WrittenModel) -> None:
    """Adds the result of a Constant node."""
    for attribute in node.attribute:
        if attribute.name == "value":
            model.add_constant(name, tuple(attribute.t.dims), type_name(attribute.t.data_type))
            return
    model.tensors.setdefault(name, None)
    model.constants.add(name)


def _info(described: Any) -> TensorInfo:
    tensor = described.type.tensor_type
    shape: tuple[int | str, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim
        )
    return TensorInfo(described.name, type_name(tensor.elem_type), shape)
