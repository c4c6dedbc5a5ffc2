"""Edits to plant in ONNX and TFLite files of any model; each returns the changes that a diff has to name.

An expected change is its kind and the name of the node, or of the tensor, in the first file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from ai_edge_litert import schema_py_generated as schema
from onnx import helper, numpy_helper

Expected = set[tuple[str, str]]
Edit = Callable[[Any, np.random.Generator], Expected]

UNARY = {"Relu": "Tanh", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Exp": "Abs", "Sqrt": "Abs", "Erf": "Tanh"}
BINARY = {"Add": "Mul", "Mul": "Add", "Sub": "Add", "Div": "Mul"}
REPLACED = {**UNARY, **BINARY, "MaxPool": "AveragePool", "GlobalAveragePool": "GlobalMaxPool"}


def _nodes(model: onnx.ModelProto, *types: str) -> list[onnx.NodeProto]:
    return [each for each in model.graph.node if each.op_type in types]


class NoPlace(Exception):
    """The model has nothing to which an edit applies."""


def _any(random: np.random.Generator, choices: list[Any]) -> Any:
    """Returns one of the choices. Raises NoPlace without any."""
    if not choices:
        raise NoPlace
    return choices[int(random.integers(len(choices)))]


def _weights(model: onnx.ModelProto, least: int) -> dict[str, onnx.TensorProto]:
    """Returns the float constants that one node reads, by the name of that node's output."""
    held = {each.name: each for each in model.graph.initializer}
    readers: dict[str, list[str]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node.output[0])
    found = {}
    for name, each in held.items():
        is_large = each.data_type == onnx.TensorProto.FLOAT and np.prod(each.dims) >= least
        if is_large and len(readers.get(name, ())) == 1:
            found[readers[name][0]] = each
    return found


def replace_operator(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    node = _any(random, _nodes(model, *REPLACED))
    node.op_type = REPLACED[node.op_type]
    return {("replaced", node.output[0])}


def scale_weights(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    name, held = _any(random, [*_weights(model, 16).items()])
    held.CopyFrom(numpy_helper.from_array(np.float32(1.5) * numpy_helper.to_array(held), held.name))
    return {("weights", name)}


def change_one_weight(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    name, held = _any(random, [*_weights(model, 16).items()])
    values = numpy_helper.to_array(held).copy()
    values.reshape(-1)[3] += 1
    held.CopyFrom(numpy_helper.from_array(values, held.name))
    return {("weights", name)}


def change_attribute(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    choices = [
        (node, held)
        for node in model.graph.node
        for held in node.attribute
        if held.type in (onnx.AttributeProto.INT, onnx.AttributeProto.INTS) and (held.ints or held.i)
    ]
    node, held = _any(random, choices)
    if held.ints:
        held.ints[-1] += 1
    else:
        held.i += 1
    return {("attribute", node.output[0])}


def insert_node(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    made = {name for each in model.graph.node for name in each.output}
    choices = [(n, each) for n, each in enumerate(model.graph.node) if each.input and each.input[0] in made]
    number, reader = _any(random, choices)
    node = helper.make_node("Neg", [reader.input[0]], ["inserted"], "inserted")
    reader.input[0] = "inserted"
    model.graph.node.insert(number, node)
    return {("added", "inserted")}


def remove_node(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    outputs = {each.name for each in model.graph.output}
    gone = _any(random, [each for each in _nodes(model, "Clip", *UNARY) if each.output[0] not in outputs])
    name = gone.output[0]
    for each in model.graph.node:
        each.input[:] = [gone.input[0] if name == old else old for old in each.input]
    model.graph.node.remove(gone)
    return {("removed", name)}


def sort_otherwise(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    """Writes the nodes in another order in which operands come first."""
    left, made, order = list(model.graph.node), set[str](), list[onnx.NodeProto]()
    produced = {name for each in left for name in each.output}
    while left:
        ready = [each for each in left if all(name in made or name not in produced for name in each.input)]
        chosen = _any(random, ready)
        order.append(chosen)
        made |= set(chosen.output)
        left.remove(chosen)
    del model.graph.node[:]
    model.graph.node.extend(order)
    return set()


def state_defaults(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    """States what an operator takes for attributes that are left out, as some exporters do."""
    opset = model.opset_import[0].version
    for node in model.graph.node:
        stated = {each.name for each in node.attribute}
        schema = onnx.defs.get_schema(node.op_type, opset)
        defaults = (each.default_value for each in schema.attributes.values())
        node.attribute.extend(each for each in defaults if each.type and each.name not in stated)
        if node.op_type in ("Conv", "MaxPool") and "dilations" not in stated:
            node.attribute.append(helper.make_attribute("dilations", [1, 1]))
    return set()


def number_names(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    """Gives all tensors but the inputs and outputs numbers, as exporters do."""
    ends = {each.name for each in (*model.graph.input, *model.graph.output)}
    names: dict[str, str] = {"": ""}

    def new(name: str) -> str:
        return name if name in ends else names.setdefault(name, str(len(names)))

    found = {
        ("renamed", name) for each in model.graph.node for name in each.output if name and name not in ends
    }
    for each in model.graph.node:
        each.name = ""
        each.input[:] = map(new, each.input)
        each.output[:] = map(new, each.output)
    for value in (*model.graph.initializer, *model.graph.value_info):
        value.name = new(value.name)
    return found


def swap_operands(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    """Exchanges the operands of a node that are other nodes' results."""
    made = {name for each in model.graph.node for name in each.output}
    two = [
        each for each in _nodes(model, *BINARY) if set(each.input) <= made and each.input[0] != each.input[1]
    ]
    node = _any(random, two)
    node.input[:] = [node.input[1], node.input[0]]
    return {("moved", node.output[0])}


def two_edits(model: onnx.ModelProto, random: np.random.Generator) -> Expected:
    return scale_weights(model, random) | replace_operator(model, random)


ONNX_EDITS: dict[str, Edit] = {
    each.__name__: each
    for each in (
        *(replace_operator, scale_weights, change_one_weight, change_attribute, insert_node, remove_node),
        *(sort_otherwise, state_defaults, number_names, swap_operands, two_edits),
    )
}


# ---- TFLite: of a model as objects of the schema


def _name(model: Any, operator: Any) -> str:
    return str(model.subgraphs[0].tensors[operator.outputs[0]].name.decode())


def _size(buffer: Any) -> int:
    return 0 if buffer.data is None else len(buffer.data)


def tflite_weights(model: Any, random: np.random.Generator) -> Expected:
    graph = model.subgraphs[0]
    choices = [
        (operator, model.buffers[graph.tensors[index].buffer])
        for operator in graph.operators
        for index in operator.inputs
        if index >= 0 and _size(model.buffers[graph.tensors[index].buffer]) > 64
    ]
    operator, buffer = _any(random, choices)
    buffer.data = np.frombuffer(bytes(buffer.data), np.uint8).copy()
    buffer.data[5] ^= 1
    return {("weights", _name(model, operator))}


def tflite_activation(model: Any, random: np.random.Generator) -> Expected:
    chosen = [
        each
        for each in model.subgraphs[0].operators
        if getattr(each.builtinOptions, "fusedActivationFunction", None) is not None
    ]
    operator = _any(random, chosen)
    held = operator.builtinOptions
    held.fusedActivationFunction = 0 if held.fusedActivationFunction else 1
    return {("attribute", _name(model, operator))}


def tflite_names(model: Any, random: np.random.Generator) -> Expected:
    graph = model.subgraphs[0]
    ends = {*graph.inputs, *graph.outputs}
    made = {index for each in graph.operators for index in each.outputs}
    found = {("renamed", graph.tensors[index].name.decode()) for index in made if index not in ends}
    for index, tensor in enumerate(graph.tensors):
        if index not in ends:
            tensor.name = b"t%d" % index
    return found


def tflite_qparams(model: Any, random: np.random.Generator) -> Expected:
    """Changes the scale of one result."""
    graph = model.subgraphs[0]
    made = [graph.tensors[index] for each in graph.operators for index in each.outputs]
    tensor = _any(
        random, [each for each in made if each.quantization and each.quantization.scale is not None]
    )
    tensor.quantization.scale = [2 * tensor.quantization.scale[0]]
    return {("quantization", tensor.name.decode())}


def tflite_operator(model: Any, random: np.random.Generator) -> Expected:
    """Makes ADD of MUL or the other way, with the options of these."""
    codes = {each.builtinCode: number for number, each in enumerate(model.operatorCodes)}
    kinds = {
        schema.BuiltinOperator.ADD: (
            schema.BuiltinOperator.MUL,
            schema.MulOptionsT,
            schema.BuiltinOptions.MulOptions,
        ),
        schema.BuiltinOperator.MUL: (
            schema.BuiltinOperator.ADD,
            schema.AddOptionsT,
            schema.BuiltinOptions.AddOptions,
        ),
    }
    chosen = [
        each
        for each in model.subgraphs[0].operators
        if model.operatorCodes[each.opcodeIndex].builtinCode in kinds
    ]
    operator = _any(random, chosen)
    code, options, kind = kinds[model.operatorCodes[operator.opcodeIndex].builtinCode]
    if code not in codes:
        made = schema.OperatorCodeT()
        made.builtinCode = made.deprecatedBuiltinCode = code
        made.version = 1
        model.operatorCodes.append(made)
        codes[code] = len(model.operatorCodes) - 1
    activation = operator.builtinOptions.fusedActivationFunction
    operator.opcodeIndex, operator.builtinOptionsType, operator.builtinOptions = codes[code], kind, options()
    operator.builtinOptions.fusedActivationFunction = activation
    return {("replaced", _name(model, operator))}


FLOAT_TFLITE_EDITS: dict[str, Edit] = {
    each.__name__: each for each in (tflite_weights, tflite_activation, tflite_names, tflite_operator)
}
INTEGER_TFLITE_EDITS: dict[str, Edit] = {
    each.__name__: each for each in (tflite_weights, tflite_qparams, tflite_names)
}
