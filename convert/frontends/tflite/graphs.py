"""Builds TracedModules from the subgraphs of a TFLite model.

The main subgraph becomes the model; those that IF, WHILE and CALL name become its children.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import Expansion
from tmconvert.formats.tflite.faults import damaged, unknown_part
from tmconvert.formats.tflite.records import ModelRecord, OperatorRecord, SubgraphRecord, TensorRecord
from tmconvert.frontends.shared.example_sizes import BATCH, Window, example_sizes
from tmconvert.frontends.tflite.tensors import TensorReader
from tmconvert.frontends.tflite.variables import OPERATORS, Variable, Variables, start_notes, uses_variables
from tmconvert.frontends.tflite.vocabulary import VOCABULARY
from tmconvert.ir import CallFunction, GetAttr, InternalGraph, ModuleNode, TensorNode, TracedModule
from tmconvert.ir.expr import short_label
from tmconvert.ir.symbolic.text import is_size_name
from tmconvert.ir.types import Shape

MAX_DEPTH = 50
MAX_NAME = 200
# The options that name subgraphs
SUBGRAPHS = (
    "then_subgraph_index", "else_subgraph_index", "cond_subgraph_index", "body_subgraph_index", "subgraph",
    "init_subgraph_index",
)  # fmt: skip


class GraphReader:
    """Reads the subgraphs of a model."""

    def __init__(self, path: str, model: ModelRecord, state: Sequence[str] = ()) -> None:
        self.path = path
        self.model = model
        self.tensors = TensorReader(path)
        _check_quantization(path, model)
        self.examples = example_sizes(_windows(model))
        self.variables = Variables(path, model, state) if state or uses_variables(model) else None
        self.state_inputs: list[Variable] = []
        self.expansion = Expansion(path, sum(len(each.operators) for each in model.subgraphs))

    def module(self) -> TracedModule:
        """Returns the model. Raises LoadError."""
        module = GraphBuilder(self, self.model.subgraphs[self.model.main], "", ()).module
        assert module.graph is not None
        module.name = module.graph.name
        module.notes += start_notes(self.state_inputs)
        return module


class GraphBuilder:
    """Builds the module of a subgraph; ``around`` are the numbers of the subgraphs that it is called in."""

    def __init__(self, reader: GraphReader, record: SubgraphRecord, name: str, around: Shape) -> None:
        self.reader, self.record, self.around = reader, record, around
        self.path = reader.path
        own = re.sub(r"\W+", "_", record.name, flags=re.ASCII).strip("_")[:60] or "main"
        self.module = TracedModule(name, f"tflite.{own}", vocabulary=VOCABULARY)
        self.module.source_file = reader.path
        self.graph = InternalGraph(own)
        self.values: dict[int, TensorNode] = {}
        self.top = ModuleNode(self.graph.free_name("self"), self.module.class_name, owner=self.module)
        self.graph.add_input(self.top, "self")
        self._build()

    @property
    def is_main(self) -> bool:
        return not self.around

    def _build(self) -> None:
        sizes: dict[str, dict[int, str]] = {}
        for index in self.record.inputs:
            self._input(index, sizes)
        if self.is_main:
            self.module.dynamic_shapes = sizes
        current = self._variables()
        for number, operator in enumerate(self.record.operators):
            if self._is_of_variables(operator, current):
                continue
            self.reader.expansion.add()
            self._operator(operator, f"{operator.name} {number}")
        results = [self._value(index, "an output") for index in self.record.outputs]
        results += [
            self._renamed(f"{each.input}_next", current[each.name])
            for each in self.reader.state_inputs
            if current
        ]
        self.graph.set_result(results[0] if len(results) == 1 else tuple(results))
        self.module.graphs[""] = self.graph

    # ---- variables

    def _variables(self) -> dict[str, TensorNode]:
        """Returns the nodes of variables at the start: inputs, or constants where nothing assigns a value."""
        current: dict[str, TensorNode] = {}
        if not self.is_main or self.reader.variables is None:
            return current
        for each in self.reader.variables.found:
            record = self.record.tensors[each.tensor]
            dtype, qparams = self.reader.tensors.type(record).dtype, self.reader.tensors.qparams(record)
            if each.is_assigned:
                node = TensorNode(self.graph.free_name(each.input), record.example, dtype, qparams=qparams)
                self.graph.add_input(node, node.name)
                self.reader.state_inputs.append(each)
            else:
                start = np.zeros(record.example, dtype) if each.start is None else each.start
                node = self._constant(each.input, start)
            current[each.name] = node
        return current

    def _is_of_variables(self, operator: OperatorRecord, current: dict[str, TensorNode]) -> bool:
        """Whether an operator reads or assigns a variable, which then is its value in ``current``."""
        if operator.name not in OPERATORS or self.reader.variables is None:
            return False
        if operator.name == "READ_VARIABLE":
            self.values[operator.outputs[0]] = current[self.reader.variables.handles[operator.inputs[0]]]
        elif operator.name == "ASSIGN_VARIABLE":
            value = self._value(operator.inputs[1], "a variable")
            current[self.reader.variables.handles[operator.inputs[0]]] = value
        return True

    def _renamed(self, name: str, value: TensorNode) -> TensorNode:
        node = TensorNode(self.graph.free_name(name), None, value.dtype, qparams=value.qparams)
        self.graph.insert(CallFunction("tflite.CAST", (value,), {}, result=node))
        return node

    # ---- tensors

    def _name(self, index: int) -> str:
        return self.record.label(index)[:MAX_NAME]

    def _input(self, index: int, sizes: dict[str, dict[int, str]]) -> None:
        record = self.record.tensors[index]
        dtype = self.reader.tensors.type(record).dtype
        qparams = self.reader.tensors.qparams(record)
        name = self.graph.free_name(self._name(index))
        shape = self._open_shape(record, name, sizes) if self.is_main else None
        node = TensorNode(name, shape, dtype, qparams=qparams)
        self.values[index] = node
        self.graph.add_input(node, name)

    def _open_shape(self, record: TensorRecord, name: str, sizes: dict[str, dict[int, str]]) -> Shape:
        """Returns a shape with examples for open sizes, which it names."""
        shape = list(record.example)
        for axis, extent in enumerate(record.shape):
            if extent >= 0:
                continue
            own = re.sub(r"\W", "_", f"{name}_{axis}", flags=re.ASCII)
            size = "batch" if not axis else own if is_size_name(own) else f"size_{own}"
            sizes.setdefault(name, {})[axis] = size
            is_image = len(shape) == 4 and axis in (1, 2)
            image, other = self.reader.examples
            shape[axis] = BATCH if not axis else image if is_image else other
        return tuple(shape)

    def _value(self, index: int, place: str) -> TensorNode:
        """Returns the node of a tensor. Raises LoadError for one that nothing computes before."""
        if index in self.values:
            return self.values[index]
        record = self.record.tensors[index]
        if record.content is None and 0 not in record.example and not record.is_variable:
            raise damaged(self.path, f"nothing computes the tensor {index} ({record.name!r:.100})", place)
        if record.content is None:
            type_ = self.reader.tensors.type(record)
            array = np.broadcast_to(np.zeros((), type_.dtype), record.example)
        else:
            array = self.reader.tensors.array(record)
        self.values[index] = self._constant(self._name(index).replace(".", "_"), array)
        return self.values[index]

    def _constant(self, name: str, array: np.ndarray) -> TensorNode:
        key = self._stored(name, array)
        node = TensorNode(self.graph.free_name(key), array.shape, array.dtype)
        self.graph.insert(GetAttr(self.top, key, result=node))
        return node

    def _stored(self, key: str, array: np.ndarray) -> str:
        """Stores a tensor of the module, and returns its name."""
        while key in self.module.tensors or key in self.module.children:
            key += "_"
        self.module.tensors[key] = array
        return key

    # ---- operators

    def _operator(self, record: OperatorRecord, place: str) -> None:
        args = [self._value(index, place) if index >= 0 else None for index in record.inputs]
        while args and args[-1] is None:
            args.pop()
        if not record.outputs and record.name not in OPERATORS:
            raise damaged(self.path, "an operator has no outputs", place)
        options = {
            name: self._child(value) if name in SUBGRAPHS else value for name, value in record.options.items()
        }
        results = tuple(self._result(index, place) for index in record.outputs)
        name = f"tflite.{record.name}"
        self.graph.insert(
            CallFunction(
                name,
                tuple(args),
                options,
                result=results[0] if len(results) == 1 else results,
                source=Source(self.path, scope=place),
                label=short_label(name),
            )
        )

    def _result(self, index: int, place: str) -> TensorNode:
        record = self.record.tensors[index]
        if index in self.values:
            raise damaged(self.path, f"the tensor {index} is computed twice, or after it is used", place)
        is_inside = not (self.is_main and index in self.record.outputs)
        dtype = self.reader.tensors.type(record, is_inside=is_inside).dtype
        qparams = self.reader.tensors.qparams(record)
        node = TensorNode(self.graph.free_name(self._name(index)), None, dtype, qparams=qparams)
        self.values[index] = node
        return node

    def _child(self, number: Any) -> ModuleNode:
        """Returns the node of the module of a subgraph, which is read once for each caller."""
        main = self.reader.model.main
        if number in (main, *self.around) or len(self.around) >= MAX_DEPTH:
            raise damaged(self.path, f"the subgraph {number} calls itself")
        key = f"subgraph_{number}"
        if key not in self.module.children:
            full = key if self.is_main else f"{self.module.name}.{key}"
            around = (*(self.around or (main,)), number)
            record = self.reader.model.subgraphs[number]
            self.module.children[key] = GraphBuilder(self.reader, record, full, around).module
        owner = self.module.children[key]
        node = ModuleNode(self.graph.free_name(key), owner.class_name, owner=owner)
        self.graph.insert(GetAttr(self.top, key, result=node))
        return node


def _check_quantization(path: str, model: ModelRecord) -> None:
    """Raises LoadError TM1042 for quantization in a form of its own."""
    for number, subgraph in enumerate(model.subgraphs):
        for at, record in enumerate(subgraph.tensors):
            if record.is_custom:
                raise unknown_part(
                    path,
                    "a tensor has custom quantization, which is not supported",
                    "convert the model without it",
                    f"tensor {at} of subgraph {number}",
                )


def _windows(model: ModelRecord) -> Iterator[Window]:
    """Yields the windows of convolutions and pooling; one along one axis is that of a signal."""
    for graph in model.subgraphs:
        for operator in graph.operators:
            found = _window(graph, operator)
            extents = [extent for extent in found if extent > 1] if 1 in found else found
            yield Window(extents, operator.name == "AVERAGE_POOL_2D")


def _window(graph: SubgraphRecord, operator: OperatorRecord) -> list[int]:
    """Returns the height and width of a window; none for other operators."""
    options = operator.options
    if operator.name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        return [options.get("filter_height", 1), options.get("filter_width", 1)]
    if operator.name not in ("CONV_2D", "DEPTHWISE_CONV_2D") or len(operator.inputs) < 2:
        return []
    kernel = graph.tensors[operator.inputs[1]].shape[1:3] if operator.inputs[1] >= 0 else ()
    steps = options.get("dilation_h_factor", 1), options.get("dilation_w_factor", 1)
    return [(extent - 1) * step + 1 for extent, step in zip(kernel, steps, strict=False)]
