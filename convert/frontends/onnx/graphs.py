"""Builds TracedModules from the graphs of an ONNX model.

A graph becomes a module; the bodies of If, Loop and Scan become its children, which get what they capture as
further inputs. Calls of the model's own functions are inlined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import Expansion
from tmconvert.formats.onnx.element_types import ELEMENT_TYPES
from tmconvert.formats.onnx.faults import damaged, unknown_part
from tmconvert.formats.onnx.messages import messages
from tmconvert.formats.onnx.tensors import TensorReader
from tmconvert.frontends.onnx.input_sizes import InputSizes
from tmconvert.frontends.onnx.standard_functions import StandardFunctions
from tmconvert.frontends.onnx.vocabulary import vocabulary_of
from tmconvert.ir import CallFunction, Constant, GetAttr, InternalGraph, ModuleNode, TensorNode, TracedModule
from tmconvert.ir.expr import short_label
from tmconvert.ir.traced_module import IN_FLOAT

STANDARD = ("", "ai.onnx")
PREVIEW = "ai.onnx.preview"
MAX_DEPTH = 50  # of functions that call functions, and of graphs in graphs
CONSTANT = "onnx.Constant"  # becomes a Constant of the graph, not a call
OLDEST, NEWEST = 1, 28  # opsets
# operators that give integers of other parameters than those of their operands
QUANTIZING = {
    *("QuantizeLinear", "QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul", "QLinearSigmoid"),
    *(
        "QLinearLeakyRelu",
        "QLinearAveragePool",
        "QLinearGlobalAveragePool",
        "QLinearConcat",
        "QLinearSoftmax",
    ),
    *("QLinearReduceMean", "QLinearWhere", "QGemm"),
}
_GRAPH = 5  # AttributeProto.GRAPH


@dataclass
class Scope:
    """The values of a graph, or of one call of a function, by their names.

    ``outer`` is the scope around a graph; ``attributes`` are those of the call of a function; ``prefix`` is
    for the names of its values.
    """

    graph: GraphBuilder
    opset: int
    outer: Scope | None = None
    values: dict[str, TensorNode | None] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    depth: int = 0
    place: str = ""  # of the node of the file, for nodes of the standard's functions, which have no names


class GraphReader:
    """Reads the graphs of a ModelProto."""

    def __init__(self, path: str, model: Any) -> None:
        self.path = path
        self.model = model
        self.tensors = TensorReader(path)
        self.opset = self._opset(model.opset_import)
        self.standard = StandardFunctions(path, model)
        self.functions = {
            (each.domain, each.name, getattr(each, "overload", "")): each for each in model.functions
        }
        stored = len(model.graph.node) + sum(len(each.node) for each in model.functions)
        self.expansion = Expansion(path, stored)

    def module(self) -> TracedModule:
        """Returns the model. Raises LoadError."""
        builder = GraphBuilder(self, self.model.graph, "", None, self.opset)
        builder.module.name = builder.graph.name
        builder.module.notes += self._quantized()
        return builder.module

    def _quantized(self) -> list[str]:
        """Returns a note on what a float file does not keep."""
        made = [node for node in self.model.graph.node if node.op_type in QUANTIZING]
        if not made:
            return []
        of = "1 tensor" if len(made) == 1 else f"{len(made)} tensors"
        return [f"the model quantizes {of}: {IN_FLOAT}"]

    def _opset(self, imports: Iterable[Any]) -> int:
        versions = {each.domain: each.version for each in imports}
        version = next((versions[name] for name in STANDARD if name in versions), None)
        if version is None:
            return OLDEST
        if not OLDEST <= version <= NEWEST:
            raise unknown_part(
                self.path,
                f"the model has opset {version}; tmconvert reads {OLDEST} to {NEWEST}",
                "export the model for an earlier opset, or use onnx.version_converter",
            )
        return int(version)

    def function(self, node: Any, opset: int) -> Any:
        """Returns the function of the model that a node calls, or that of the standard for an operator
        without an adapter; None for other operators.
        """
        known = self.functions.get(key_of(node))
        if known is not None or node.domain not in (*STANDARD, PREVIEW):
            return known
        name = f"{node.domain if node.domain == PREVIEW else 'onnx'}.{node.op_type}"
        is_known = name == CONSTANT or vocabulary_of(opset).knows(name, is_method=False)
        return None if is_known else self.standard.of(node, opset)

    def function_opset(self, function: Any, caller: int) -> int:
        """Returns the opset of the operators in a function."""
        return self._opset(function.opset_import) if function.opset_import else caller


class GraphBuilder:
    """Builds the module of one GraphProto. ``captured`` are the values that it takes from around it."""

    def __init__(self, reader: GraphReader, proto: Any, name: str, outer: Scope | None, opset: int) -> None:
        self.reader = reader
        self.path = reader.path
        self.proto = proto
        self.module = TracedModule(name, f"onnx.{_class_name(proto)}", vocabulary=vocabulary_of(opset))
        self.module.source_file = reader.path
        self.graph = InternalGraph(_class_name(proto))
        self.captured: dict[str, TensorNode] = {}
        self.stored = {each.name: each for each in proto.initializer}
        self.sparse = {each.values.name: each for each in proto.sparse_initializer}
        self.element_types = {each.name: each.type.tensor_type.elem_type for each in proto.input}
        depth = 0 if outer is None else outer.depth + 1
        if depth > MAX_DEPTH:
            raise damaged(self.path, f"graphs are nested more than {MAX_DEPTH} deep")
        self.scope = Scope(self, opset, outer, depth=depth)
        self.top = ModuleNode(self.graph.free_name("self"), self.module.class_name, owner=self.module)
        self.graph.add_input(self.top, "self")
        self._build()

    def _build(self) -> None:
        sizes = InputSizes(self.path, self.proto)
        for value in self.proto.input:
            if value.name not in self.stored and value.name not in self.sparse:
                self._input(value, sizes)
        if self.scope.outer is None:
            sizes.name_unknown()
            self.module.dynamic_shapes = sizes.open_sizes
            self.module.notes += sizes.notes
        self.nodes(self.proto.node, self.scope)
        results = [self.value(each.name, self.scope, "an output of the graph") for each in self.proto.output]
        self.graph.set_result(results[0] if len(results) == 1 else tuple(results))
        self.module.graphs[""] = self.graph

    def _input(self, value: Any, sizes: InputSizes) -> None:
        name, place = value.name, f"input {value.name}"
        if name in self.scope.values:
            raise damaged(self.path, f"two inputs are called {name!r}")
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            is_none = kind is None and self.scope.outer is not None
            if not is_none:
                what = f"the input {name} is not a tensor, but {(kind or 'of no type').replace('_type', '')}"
                raise unknown_part(self.path, what, "make it a tensor", place)
            shape: tuple[int, ...] | None = None
            dtype = None
        else:
            type_ = value.type.tensor_type
            dtype = self.reader.tensors.type(type_.elem_type, place).dtype
            is_top = self.scope.outer is None
            shape = sizes.shape(name, type_) if is_top else None
        node = TensorNode(self.graph.free_name(name), shape, dtype)
        self.scope.values[name] = node
        self.graph.add_input(node, name)

    # ---- values

    def value(self, name: str, scope: Scope, place: str) -> TensorNode:
        """Returns the node of a value. Raises LoadError TM1031 for one that nothing computes before."""
        if name in scope.values:
            node = scope.values[name]
            if node is None:
                raise damaged(
                    self.path, f"{name!r} is an argument that the call of the function omits", place
                )
            return node
        if scope is self.scope:
            if name in self.stored:
                array = self.reader.tensors.array(self.stored[name], f"initializer {name}")
                return self.parameter(name, array)
            if name in self.sparse:
                array = self.reader.tensors.sparse(self.sparse[name], f"initializer {name}")
                return self.parameter(name, array)
            if scope.outer is not None:
                return self._capture(name, place)
        raise damaged(self.path, f"nothing computes {name!r}, which is used there", place)

    def parameter(self, name: str, array: np.ndarray) -> TensorNode:
        """Adds a tensor to the module, and a read of it to the graph."""
        key = self._stored(name, array)
        node = TensorNode(self.graph.free_name(name), array.shape, array.dtype)
        self.graph.insert(GetAttr(self.top, key, result=node))
        self.scope.values[name] = node
        return node

    def _stored(self, name: str, array: np.ndarray) -> str:
        """Stores a tensor, and returns its path: ``layer1.weight`` is a tensor of the module ``layer1``."""
        owner, path = self.module, []
        *parents, key = name.split(".") if all(map(str.isidentifier, name.split("."))) else [name]
        for part in parents:
            if part in owner.tensors or (part in owner.children and owner.children[part].graphs):
                return self._stored(name.replace(".", "_"), array)
            path.append(part)
            if part not in owner.children:
                owner.children[part] = TracedModule(".".join(path), "onnx.Scope")
            owner = owner.children[part]
        key = key.replace(".", "_")
        while key in owner.tensors or key in owner.children:
            key += "_"
        owner.tensors[key] = array
        return ".".join([*path, key])

    def _capture(self, name: str, place: str) -> TensorNode:
        outer = self.scope.outer
        assert outer is not None
        node = outer.graph.value(name, outer, place)
        known = constant_of(node)
        if known is not None:  # a shape, for example, is known in the body, too
            return self.parameter(name, known)
        own = TensorNode(self.graph.free_name(name), node.shape, node.dtype)
        self.graph.add_input(own, name)
        self.scope.values[name] = own
        self.captured[name] = node
        return own

    # ---- nodes

    def nodes(self, protos: Iterable[Any], scope: Scope) -> None:
        """Adds the calls of nodes, which are in the order of their execution."""
        for proto in protos:
            place = scope.place or proto.name or f"of {', '.join(proto.output)}"
            try:
                self._node(proto, scope, place)
            except LoadError as error:
                if error.source is not None and error.source.scope:
                    raise
                source = Source(self.path, scope=place, class_name=proto.op_type)
                raise LoadError(error.code, error.message, source=source, notes=error.notes) from error

    def _node(self, proto: Any, scope: Scope, place: str) -> None:
        self.reader.expansion.add()
        domain = "" if proto.domain in STANDARD else proto.domain
        function = self.reader.function(proto, scope.opset)
        if function is not None:
            is_own = key_of(proto) in self.reader.functions
            self._inline(proto, function, scope, place, "" if is_own else place)
            return
        if f"{domain or 'onnx'}.{proto.op_type}" == CONSTANT:
            self._constant(proto, scope, place)
            return
        args = tuple(self.value(name, scope, place) if name else None for name in proto.input)
        attributes, captured = self._attributes(proto, scope, place)
        attributes |= self._narrow_type(proto, attributes)
        operator = proto.op_type
        if operator == "CastLike" and not domain and len(proto.input) == 2:
            wanted = self._declared(proto.input[1])
            if wanted:  # the graph holds narrow types in wider ones, of which CastLike would take the type
                operator, args, attributes = "Cast", args[:1], {**attributes, "to": wanted}
        results = tuple(self._result(name, scope) for name in proto.output)
        while len(results) > 1 and not proto.output[len(results) - 1]:
            results = results[:-1]
        if not results:
            raise damaged(self.path, "a node has no outputs", place)
        name = f"{domain or 'onnx'}.{operator}"
        call = CallFunction(
            name,
            _without_end(args),
            {**attributes, **({"captured": captured} if captured else {})},
            result=results[0] if len(results) == 1 else results,
            source=Source(self.path, scope=place, class_name=proto.op_type),
            label=short_label(name),
        )
        if scope.opset != self.scope.opset:
            call.vocabulary = vocabulary_of(scope.opset)
        self.graph.insert(call)

    def _narrow_type(self, proto: Any, attributes: Mapping[str, Any]) -> dict[str, int]:
        """Returns the type of the zero point of QuantizeLinear, which a graph may hold in a wider one."""
        if proto.op_type != "QuantizeLinear" or len(proto.input) < 3 or attributes.get("output_dtype"):
            return {}
        name = proto.input[2]
        found = self.stored[name].data_type if name in self.stored else self.element_types.get(name, 0)
        known = ELEMENT_TYPES.get(found)
        is_narrow = known is not None and known.bits < known.dtype.itemsize * 8
        return {"output_dtype": found} if is_narrow else {}

    def _declared(self, name: str) -> int:
        """Returns the element type that the file declares for an input or initializer; 0 without one."""
        return int(self.stored[name].data_type) if name in self.stored else self.element_types.get(name, 0)

    def _result(self, name: str, scope: Scope) -> TensorNode:
        node = TensorNode(self.graph.free_name(scope.prefix + name if name else "unused"))
        if name:
            if name in scope.values:
                raise damaged(self.path, f"two nodes compute {name!r}")
            scope.values[name] = node
        return node

    def _constant(self, proto: Any, scope: Scope, place: str) -> None:
        bound = self._bound(proto, scope)
        if len(bound) != 1 or len(proto.output) != 1:
            raise damaged(self.path, "a Constant needs one value and one output", place)
        ((name, attribute),) = bound.items()
        if name == "value":
            array = self.reader.tensors.array(attribute.t, f"the value of {place}")
        elif name in ("value_float", "value_floats", "value_int", "value_ints"):
            value = self._plain(attribute, scope, place)
            array = np.asarray(value, np.float32 if "float" in name else np.int64)
        elif name == "sparse_value":
            array = self.reader.tensors.sparse(attribute.sparse_tensor, f"the value of {place}")
        elif name in ("value_string", "value_strings"):
            raise unknown_part(self.path, "a Constant of strings", "export the model without it", place)
        else:
            raise damaged(self.path, f"a Constant has the attribute {name!r:.60}", place)
        node = self._result(proto.output[0], scope)
        node.shape, node.dtype = array.shape, array.dtype
        self.graph.insert(Constant(array, node.name, result=node))

    def _inline(self, proto: Any, function: Any, scope: Scope, place: str, place_of_nodes: str) -> None:
        if scope.depth >= MAX_DEPTH:
            raise damaged(self.path, f"functions call each other more than {MAX_DEPTH} deep", place)
        given: list[TensorNode | None] = [
            self.value(name, scope, place) if name else None for name in proto.input
        ]
        given += [None] * (len(function.input) - len(given))
        defaults = {each.name: each for each in getattr(function, "attribute_proto", ())}
        attributes = {**defaults, **self._bound(proto, scope)}
        inner = Scope(
            self,
            self.reader.function_opset(function, scope.opset),
            scope.outer,
            dict(zip(function.input, given, strict=True)),
            attributes,
            f"{scope.prefix}{proto.name or proto.op_type}/",
            scope.depth + 1,
            scope.place or place_of_nodes,
        )
        self.nodes(function.node, inner)
        for own, name in zip(function.output, proto.output, strict=False):
            if name:
                scope.values[name] = self.value(own, inner, place)

    def _bound(self, proto: Any, scope: Scope) -> dict[str, Any]:
        """Returns the attributes of a node; references to those of the function's call are resolved."""
        bound = {}
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                if attribute.ref_attr_name in scope.attributes:
                    bound[attribute.name] = scope.attributes[attribute.ref_attr_name]
            else:
                bound[attribute.name] = attribute
        return bound

    def _attributes(self, proto: Any, scope: Scope, place: str) -> tuple[dict[str, Any], list[Any]]:
        """Returns the attributes as a graph stores them, and what their graphs capture."""
        values: dict[str, Any] = {}
        captured = []
        for name, attribute in sorted(self._bound(proto, scope).items()):
            if not name.isidentifier():
                raise damaged(self.path, f"an attribute is called {name!r:.60}", place)
            if attribute.type == _GRAPH:
                body = self._body(attribute.g, f"{proto.name or proto.op_type}_{name}", scope)
                values[name], around = self._child(body), list(body.captured.values())
                captured.append((name, around))
            else:
                values[name] = self._plain(attribute, scope, place)
        return values, [tuple(around) for _, around in captured]

    def _body(self, proto: object, name: str, scope: Scope) -> GraphBuilder:
        path = re.sub(r"\W", "_", name)
        while path in self.module.children or path in self.module.tensors:
            path += "_"
        full = f"{self.module.name}.{path}" if self.scope.outer is not None else path
        builder = GraphBuilder(self.reader, proto, full, scope, scope.opset)
        self.module.children[path] = builder.module
        return builder

    def _child(self, body: GraphBuilder) -> ModuleNode:
        key = body.module.name.rpartition(".")[2]
        node = ModuleNode(self.graph.free_name(key), body.module.class_name, owner=body.module)
        self.graph.insert(GetAttr(self.top, key, result=node))
        return node

    def _plain(self, attribute: Any, scope: Scope, place: str) -> Any:
        kinds = messages().AttributeProto
        if attribute.type == kinds.TENSOR:
            return self._tensor_attribute(attribute, place)
        if attribute.type in (kinds.INT, kinds.FLOAT):
            return attribute.i if attribute.type == kinds.INT else attribute.f
        if attribute.type == kinds.STRING:
            return attribute.s.decode("utf-8", "replace")
        if attribute.type == kinds.STRINGS:
            return [each.decode("utf-8", "replace") for each in attribute.strings]
        if attribute.type in (kinds.INTS, kinds.FLOATS):
            return list(attribute.ints if attribute.type == kinds.INTS else attribute.floats)
        what = f"the attribute {attribute.name} is of a kind that is not read"
        raise unknown_part(self.path, what, "export the model without it", place)

    def _tensor_attribute(self, attribute: Any, place: str) -> TensorNode:
        array = self.reader.tensors.array(attribute.t, f"attribute {attribute.name} of {place}")
        node = TensorNode(self.graph.free_name(f"{attribute.name}_const"), array.shape, array.dtype)
        self.graph.insert(Constant(array, node.name, result=node))
        return node


def key_of(proto: Any) -> tuple[str, str, str]:
    """Returns what identifies the function that a node may call."""
    return proto.domain, proto.op_type, getattr(proto, "overload", "")


def constant_of(node: TensorNode) -> np.ndarray | None:
    """Returns the array of a node that reads a tensor of its module, or is a constant."""
    expr = node.expr
    if isinstance(expr, Constant):
        return np.asarray(expr.value)
    if isinstance(expr, GetAttr):
        owner: Any = expr.args[0]
        return np.asarray(owner.owner.get(expr.name))
    return None


def _class_name(proto: Any) -> str:
    return re.sub(r"\W+", "_", proto.name).strip("_")[:60] or "model"


def _without_end(args: Sequence[Any]) -> tuple[Any, ...]:
    """Returns inputs without omitted ones at the end."""
    count = len(args)
    while count and args[count - 1] is None:
        count -= 1
    return tuple(args[:count])
