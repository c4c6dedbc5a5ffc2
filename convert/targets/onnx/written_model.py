"""Names, types, shapes and layers of an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.targets.written_model import TensorInfo, WrittenLayer, WrittenModel

MOST_INFERRED = 1 << 30  # bytes of a file whose missing shapes are inferred, which takes copies of it


def written_onnx(path: Path) -> WrittenModel:
    """Raises LoadError TM1009 for a damaged file."""
    model = WrittenModel("onnx")
    try:
        file = onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise LoadError("TM1009", "this is a damaged ONNX file", source=Source(str(path))) from error
    if _lacks_shapes(file.graph) and path.stat().st_size < MOST_INFERRED:
        file = _with_shapes(file)
    _onnx_graph(file.graph, model)
    model.inputs = [each.name for each in file.graph.input if each.name not in model.constants]
    model.outputs = [each.name for each in file.graph.output]
    model.input_tensors = [_info(each) for each in file.graph.input if each.name not in model.constants]
    model.output_tensors = [_info(each) for each in file.graph.output]
    opset = next((each.version for each in file.opset_import if each.domain in ("", "ai.onnx")), 0)
    model.version = f"opset {opset}"
    model.producer = f"{file.producer_name} {file.producer_version}".strip()
    return model


def _lacks_shapes(graph: Any) -> bool:
    known = {each.name for each in (*graph.value_info, *graph.output)}
    return any(name not in known for node in graph.node for name in node.output if name)


def _with_shapes(file: Any) -> Any:
    """Returns the model with inferred shapes, as far as ``onnx`` can infer them."""
    try:
        return onnx.shape_inference.infer_shapes(file, data_prop=True)
    except Exception:  # of many kinds, for operators and types that it does not know
        return file


def _onnx_graph(graph: Any, model: WrittenModel) -> None:
    for initializer in graph.initializer:
        model.add_constant(initializer.name, tuple(initializer.dims), _dtype(initializer.data_type))
    for info in (*graph.input, *graph.value_info, *graph.output):
        shape = info.type.tensor_type.shape
        is_ranked = info.type.tensor_type.HasField("shape")
        known = is_ranked and all(dim.HasField("dim_value") for dim in shape.dim)
        model.tensors.setdefault(info.name, tuple(dim.dim_value for dim in shape.dim) if known else None)
        model.types.setdefault(info.name, _dtype(info.type.tensor_type.elem_type))
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
            model.add_constant(name, tuple(attribute.t.dims), _dtype(attribute.t.data_type))
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
    return TensorInfo(described.name, _dtype(tensor.elem_type), shape)


def _dtype(number: int) -> str:
    """Returns NumPy's name of an element type; ONNX's own for those that NumPy lacks."""
    if not number:
        return ""
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).name
    except (KeyError, TypeError):
        names = {value: name for name, value in onnx.TensorProto.DataType.items()}
        return names.get(number, "").lower()
