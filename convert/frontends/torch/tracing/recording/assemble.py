"""Builds a TracedModule from the tape of a run: one graph per distinct call of a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.recording.arrays import Arrays, numpy_dtype
from tmconvert.frontends.torch.tracing.recording.liveness import Edges, edges_of
from tmconvert.frontends.torch.tracing.recording.tape import CalledModule, Record, Scope, Tape, Value
from tmconvert.frontends.torch.vocabulary import VOCABULARY
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    Expr,
    GetAttr,
    InternalGraph,
    ModuleNode,
    Node,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.call_structure import call_structure
from tmconvert.ir.tree import Tree, map_leaves


def assemble(
    tape: Tape, modules: Mapping[str, TracedModule], names: Mapping[int, list[str]], arrays: Arrays
) -> TracedModule:
    """Builds the model of ``modules`` by dotted path; ``names`` are paths of captured tensors by id."""
    assembler = _Assembler(tape, modules, names, arrays)
    assembler.module(tape.top)
    return modules[""]


class _Assembler:
    def __init__(
        self, tape: Tape, modules: Mapping[str, TracedModule], names: Mapping[int, list[str]], arrays: Arrays
    ) -> None:
        self.edges = edges_of(tape.top)
        self.modules = dict(modules)
        self.names = names
        self.arrays = arrays
        self.variants: dict[str, list[tuple[Any, TracedModule, str]]] = {}
        self.numbers = 0

    def module(self, scope: Scope) -> tuple[TracedModule, str]:
        """Returns the module with the graph of this call, and its path: a copy if the calls differed."""
        edges = self.edges[scope]
        if scope.path not in self.modules:
            self._add_body(scope)
        graph, signature = _Graph(self, scope, edges).build()
        known = self.variants.setdefault(scope.path, [])
        for other, module, path in known:
            if other == signature:
                return module, path
        module, path = self.modules[scope.path], scope.path
        if known:
            path = f"{scope.path}@{len(known)}"
            module = self._copy_of(module, path)
        known.append((signature, module, path))
        graph.inputs[0].owner = module  # type: ignore[attr-defined]
        args, kwargs = map_leaves(
            lambda leaf: TensorNode() if isinstance(leaf, Value) else leaf,
            (scope.args, _extended(scope, edges)),
        )
        module.graphs[call_structure((module, *args), kwargs)] = graph
        return module, path

    def _add_body(self, scope: Scope) -> None:
        """Adds a module for a function that is an argument of a call, such as a branch of torch.cond."""
        if self.edges[scope].outputs:
            raise UnsupportedError(
                "TM2018",
                (f"{scope.class_name} changes tensors that it captures from outside"),
                source=scope.source,
            )
        holder, _, name = scope.path.rpartition(".")
        module = TracedModule(scope.path, scope.class_name, vocabulary=VOCABULARY)
        self.modules[scope.path] = self.modules[holder].children[name] = module

    def _copy_of(self, module: TracedModule, path: str) -> TracedModule:
        """Returns a copy of the module with the same children, for a call that ran differently."""
        duplicate = TracedModule(path, module.class_name, vocabulary=VOCABULARY)
        duplicate.children, duplicate.tensors, duplicate.attributes = (
            dict(module.children),
            module.tensors,
            module.attributes,
        )
        holder, _, name = path.rpartition(".")
        self.modules[holder].children[name] = duplicate
        return duplicate

    def number(self) -> int:
        self.numbers += 1
        return self.numbers - 1


def _extended(scope: Scope, edges: Edges) -> dict[str, Tree]:
    return {**scope.kwargs, **{f"captured_{i}": value for i, value in enumerate(edges.inputs)}}


class _Graph:
    """Builds the graph of one module call."""

    def __init__(self, assembler: _Assembler, scope: Scope, edges: Edges) -> None:
        self.assembler = assembler
        self.scope = scope
        self.edges = edges
        self.graph = InternalGraph(scope.class_name.rpartition(".")[2])
        self.nodes: dict[Value, Node] = {}
        self.attributes: dict[str, Node] = {}
        self.order: dict[Value, int] = {}
        self.steps: list[Any] = []

    def build(self) -> tuple[InternalGraph, Any]:
        """Builds the graph, and a key that is equal for calls with equal graphs."""
        own = ModuleNode("self", self.scope.class_name)
        self.self_node = self.graph.add_input(own, "self", id=self.assembler.number())
        for name, value in self._formal_inputs():
            node = self._node(value, self.graph.free_name(_identifier(name)))
            self.graph.add_input(node, name, id=self.assembler.number())
            self.nodes.setdefault(value, node)
            self.order.setdefault(value, len(self.order))
        for item in self.scope.items:
            if isinstance(item, Record):
                self._record(item)
            else:
                self._call(item)
        self.graph.set_result(self._with_extra(self.scope.result, self.edges.outputs, self._use))
        edges = (self.edges.inputs, self.edges.outputs)
        key = map_leaves(self._keyed, (self.scope.args, self.scope.kwargs, self.scope.result, edges))
        return self.graph, repr((key, self.steps))

    def _formal_inputs(self) -> list[tuple[str, Value]]:
        extra = [(f"captured_{i}", value) for i, value in enumerate(self.edges.inputs)]
        return [*self.scope.formal_inputs(), *extra]

    def _with_extra(self, result: Tree, extra: list[Value], leaf: Any) -> Tree:
        trees = (result, *extra) if extra else result
        return map_leaves(leaf, trees)

    # ---- expressions

    def _record(self, record: Record) -> None:
        captured = [self.assembler.edges[body].inputs for body in record.subgraphs]
        used = {**record.kwargs, "captured": captured} if captured else record.kwargs
        paths = {body: self.assembler.module(body) for body in record.subgraphs}
        owners = {body: self._module_node(*place) for body, place in paths.items()}

        def use(leaf: Any) -> Any:
            if isinstance(leaf, CalledModule):
                return self._module_node(leaf.module or self.assembler.modules[leaf.path], leaf.path)
            return owners[leaf] if isinstance(leaf, Scope) else self._use(leaf)

        args, kwargs = map_leaves(use, record.args), map_leaves(use, used)
        result = map_leaves(self._result, record.result)
        common = {"result": result, "id": self.assembler.number(), "source": record.source}
        expr: Expr
        if record.is_method:
            expr = CallMethod(record.name, args, kwargs, **common)
        else:
            label = ".".join(record.name.split(".")[-2:])
            expr = CallFunction(record.name, args, kwargs, label=label, **common)
        step: Any = (record.name, record.args, used, record.result)
        if paths:
            step = map_leaves(lambda leaf: paths[leaf][1] if isinstance(leaf, Scope) else leaf, step)
        self._insert(expr, step)

    def _call(self, scope: Scope) -> None:
        """Emits the call of a submodule."""
        edges = self.assembler.edges[scope]
        module, path = self.assembler.module(scope)
        kwargs = _extended(scope, edges)
        owner = self._module_node(module, path)
        args = (owner, *self._arguments(scope.args))
        used = self._arguments(kwargs)
        result = self._with_extra(scope.result, edges.outputs, self._result)
        expr = CallMethod(
            "__call__", args, used, result=result, id=self.assembler.number(), source=scope.source
        )
        self._insert(expr, (path, scope.args, kwargs, (scope.result, *edges.outputs)))

    def _insert(self, expr: Expr, step: Any) -> None:
        self.graph.insert(expr)
        self.steps.append(map_leaves(self._keyed, step))

    def _module_node(self, module: TracedModule, path: str) -> Node:
        own = self.scope.path
        relative = path[len(own) + 1 :] if own and path.startswith(f"{own}.") else path if not own else ""
        number = self.assembler.number()
        name = self.graph.free_name(_identifier(path.rpartition(".")[2]))
        node = ModuleNode(name, module.class_name, owner=module, id=number)
        if relative:
            self.graph.insert(GetAttr(self.self_node, relative, result=node, id=number))
        else:  # it is called from a module that does not contain it
            self.graph.insert(Constant(module, result=node, id=number))
        return node

    # ---- nodes

    def _arguments(self, tree: Tree) -> Any:
        return map_leaves(self._use, tree)

    def _use(self, leaf: Any) -> Any:
        if not isinstance(leaf, Value):
            return leaf
        node = self.nodes.get(leaf)
        if node is None:
            assert leaf.captured is not None, leaf
            node = self.nodes[leaf] = self._captured(leaf)
        return node

    def _captured(self, value: Value) -> Node:
        tensor, own = value.captured, self.scope.path
        paths = self.assembler.names.get(id(tensor), [])
        inside = f"{own}." if own else ""
        relative = next((path[len(inside) :] for path in paths if path.startswith(inside)), None)
        name = relative or (paths[0] if paths else "const")
        if name in self.attributes:
            return self.attributes[name]
        node = self._node(value, self.graph.free_name(_identifier(name)))
        number = self.assembler.number()
        if relative is not None:
            self.graph.insert(GetAttr(self.self_node, relative, result=node, id=number))
        else:
            array = self.assembler.arrays.of(tensor)
            self.graph.insert(Constant(array, paths[0] if paths else None, result=node, id=number))
        if paths:
            self.attributes[name] = node
        return node

    def _result(self, leaf: Any) -> Any:
        """Returns a node for a result."""
        if not isinstance(leaf, Value):
            return leaf
        self.order.setdefault(leaf, len(self.order))
        node = self._node(leaf, self.graph.free_name(leaf.hint))
        self.nodes.setdefault(leaf, node)
        return node

    def _node(self, value: Value, name: str) -> TensorNode:
        dtype = numpy_dtype(value.dtype) if value.dtype else None
        shape = value.shape if dtype is not None else None
        return TensorNode(name, shape, dtype, qparams=value.qparams, id=self.assembler.numbers)

    def _keyed(self, leaf: Any) -> Any:
        if not isinstance(leaf, Value):
            return leaf
        if leaf.captured is not None:
            return "captured", id(leaf.captured)
        # the scale of what is fake-quantized before a call is none of the call's matters
        is_float = leaf.dtype is None or leaf.dtype.startswith(("float", "bfloat"))
        return self.order.get(leaf), None if is_float else leaf.qparams


def _identifier(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name)
