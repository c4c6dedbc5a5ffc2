"""The graph of an ONNX file as it is stored."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.formats.onnx.element_types import ELEMENT_TYPES
from tmconvert.formats.onnx.model import read_model, store_types
from tmconvert.formats.onnx.tensors import TensorReader
from tmconvert.frontends.onnx.standard_functions import StandardFunctions
from tmconvert.frontends.shared.view_graph import Path as ModulePath
from tmconvert.frontends.shared.view_graph import (
    ViewGraph,
    ViewNode,
    ViewTensor,
    qparams_record,
    type_text,
    value_text,
)
from tmconvert.ir.types import Ints

_TENSOR, _GRAPH, _GRAPHS = 4, 5, 10  # AttributeProto.AttributeType
_NEUTRAL = {"strides": set("[1, ]"), "dilations": set("[1, ]"), "pads": set("[0, ]")}
_SCALED = {"QuantizeLinear": 0, "DequantizeLinear": 0}  # whose scale and zero point are operands 1 and 2


def onnx_graph(path: Path) -> ViewGraph:
    """Returns the graph of an ONNX file, with the subgraphs of its operators as modules. Raises LoadError.

    Types that the file does not store are inferred.
    """
    model = read_model(str(path))
    view = ViewGraph(path.name, "ONNX")
    opsets = ", ".join(f"{each.domain or 'ai.onnx'} {each.version}" for each in model.opset_import)
    producer = f"{model.producer_name} {model.producer_version}".strip()
    view.summary = [("producer", producer)] if producer else []
    view.summary += [("opset", opsets), ("IR version", str(model.ir_version))]
    reader = _Reader(view, TensorReader(str(path)), model.producer_name)
    functions = StandardFunctions(str(path), model)
    view.is_default = partial(_is_default, functions)
    types = {each.name for each in (*model.graph.value_info, *model.graph.output)}
    if not all(name in types for node in model.graph.node for name in node.output):
        store_types(model, functions.types)
    reader.add(model.graph, (), {})
    return view


def _is_default(functions: StandardFunctions, operator: str, attribute: str, text: str) -> bool:
    """Lists by axis have no default in the schemas of operators, but in their texts."""
    known = functions.default(operator, attribute)
    if known is None:
        return set(text) <= _NEUTRAL.get(attribute, set())
    return text == _attribute(known)


class _Reader:
    def __init__(self, view: ViewGraph, arrays: TensorReader, producer: str) -> None:
        self.view = view
        self.arrays = arrays
        self.producer = producer
        self.constants: dict[int, np.ndarray] = {}

    def add(self, graph: Any, path: ModulePath, around: dict[str, int]) -> None:
        """Adds a graph; ``around`` are the tensors that it can read from outside."""
        known = dict(around)
        types = {each.name: _type(each) for each in (*graph.input, *graph.value_info, *graph.output)}
        for proto in graph.initializer:
            known[proto.name] = self._constant(proto.name, proto)
        inputs = []
        for each in graph.input:
            if each.name not in known or path:
                known[each.name] = self.view.add_tensor(ViewTensor(each.name, types[each.name]))
                inputs.append(known[each.name])
        for node in graph.node:
            self._node(node, path, known, types)
        if not path:
            self.view.inputs = inputs
            self.view.outputs = [known[each.name] for each in graph.output if each.name in known]

    def _node(self, node: Any, path: ModulePath, known: dict[str, int], types: dict[str, str]) -> None:
        if node.op_type == "Constant" and any(each.type == _TENSOR for each in node.attribute):
            known[node.output[0]] = self._constant(node.output[0], node.attribute[0].t)
            return
        inputs = [known.get(name, -1) for name in node.input]
        if node.op_type == "DequantizeLinear" and inputs[0] in self.constants:
            self._dequantized(node, inputs, known, types)
            return
        outputs = []
        for name in filter(None, node.output):
            known[name] = self.view.add_tensor(ViewTensor(name, types.get(name, "?")))
            outputs.append(known[name])
        parts = [part for part in node.name.split("/") if part]
        where = (*path, *_module_path(node.name, self.producer))
        producer = self.view.tensors[inputs[0]].producer if inputs and inputs[0] >= 0 else -1
        if node.op_type in _SCALED and producer >= 0:
            where = self.view.nodes[producer].module  # pairs are drawn where their tensor is computed
        shown = {each.name: _attribute(each) for each in node.attribute if each.type not in (_GRAPH, _GRAPHS)}
        name = node.name or (node.output[0] if node.output else node.op_type)
        self.view.add_node(
            ViewNode(
                name,
                f"{node.domain}::{node.op_type}" if node.domain else node.op_type,
                where,
                inputs,
                outputs,
                shown,
            )
        )
        self._parameters(node.op_type, inputs, outputs, _axis(node))
        for attribute in node.attribute:
            subgraphs = [attribute.g] if attribute.type == _GRAPH else list(attribute.graphs)
            for subgraph in subgraphs:
                self.add(subgraph, (*where, parts[-1] if parts else name, attribute.name), known)

    def _constant(self, name: str, proto: Any) -> int:
        shown = ViewTensor(name)
        index = self.view.add_tensor(shown)
        try:
            array = self.arrays.array(proto)
        except LoadError as error:  # weights in a file that is not there: the graph is shown without them
            shown.type = type_text("", None)
            shown.notes["missing"] = error.message
            return index
        shown.type = type_text(_element(proto.data_type), array.shape)
        shown.values = array
        self.constants[index] = array
        return index

    def _dequantized(self, node: Any, inputs: Ints, known: dict[str, int], types: dict[str, str]) -> None:
        """Adds a constant in place of the operator that dequantizes it, as readers of the result see it."""
        (name,) = node.output
        stored = self.view.tensors[inputs[0]]
        self._parameters(node.op_type, inputs, [inputs[0]], _axis(node))
        notes = {"stored": f"{stored.name}, dequantized"}
        known[name] = self.view.add_tensor(
            ViewTensor(name, stored.type, stored.values, stored.qparams, stored.channel_axis, notes)
        )

    def _parameters(self, operator: str, inputs: Ints, outputs: Ints, axis: int) -> None:
        """Sets the quantization parameters of a tensor that is quantized or dequantized."""
        if operator not in _SCALED or len(inputs) < 2 or inputs[1] not in self.constants:
            return
        integers = outputs[0] if operator == "QuantizeLinear" else inputs[0]
        scale = self.constants[inputs[1]].reshape(-1)
        zero = self.constants.get(inputs[2]) if len(inputs) > 2 else None
        points = np.zeros(len(scale), np.int64) if zero is None else zero.reshape(-1)
        dtype = "uint8" if zero is None else zero.dtype.name
        if integers in self.constants:
            is_axis = len(scale) > 1 and axis < self.constants[integers].ndim
            self.view.tensors[integers].channel_axis = axis if is_axis else 0
        for index in (integers, inputs[0], outputs[0]):
            tensor = self.view.tensors[index] if index >= 0 else None
            if tensor is not None and tensor.qparams is None:
                tensor.qparams = qparams_record(dtype, scale.tolist(), points.tolist(), axis)


def _module_path(name: str, producer: str) -> ModulePath:
    """Returns the module path in the name of a node.

    In files of tmconvert the name of the result is between the module and the operator, and where the source
    was ONNX, the name of its node before. PyTorch repeats the name of a container before those of its
    elements.

    >>> _module_path("/layer1/layer1.0/conv1/Conv", "pytorch")
    ('layer1', '0', 'conv1')
    >>> _module_path("/layer1/0/conv1/layer1_0_batch_norm_out/Conv", "tmconvert")
    ('layer1', '0', 'conv1')
    """
    if not name.startswith("/"):
        return ()
    parts = [part for part in name.split("/") if part][:-1]
    if producer == "tmconvert":
        parts = parts[: -2 if name.startswith("//") else -1]
    return tuple(part.removeprefix(f"{around}.") for around, part in pairwise(["", *parts]))


def _axis(node: Any) -> int:
    return next((each.i for each in node.attribute if each.name == "axis"), 1)


def _type(info: Any) -> str:
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type"):
        return info.type.WhichOneof("value") or "?"
    shape = [dim.dim_param or dim.dim_value for dim in tensor.shape.dim] if tensor.HasField("shape") else None
    return type_text(_element(tensor.elem_type), shape)


def _element(number: int) -> str:
    """Returns the name of an element type; empty for an unknown one."""
    element = ELEMENT_TYPES.get(number)
    if element is None:
        return ""
    return {"float": "float32", "double": "float64"}.get(element.name, element.name)


# the field of AttributeProto with the value, by the number of its type
_FIELDS = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}


def _attribute(attribute: Any) -> str:
    if attribute.type == _TENSOR:
        return type_text(_element(attribute.t.data_type), list(attribute.t.dims))
    field = _FIELDS.get(attribute.type)
    value = None if field is None else getattr(attribute, field)
    if isinstance(value, bytes):
        return value_text(value.decode("utf-8", "replace"))
    if isinstance(value, float):
        return f"{value:.6g}"
    return value_text(value if value is None or isinstance(value, int) else [_plain(each) for each in value])


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return float(f"{value:.6g}") if isinstance(value, float) else value
