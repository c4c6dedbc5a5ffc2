"""The graph of a model as it was traced or loaded, for the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.shared.view_graph import (
    Path,
    ViewGraph,
    ViewNode,
    ViewTensor,
    qparams_record,
    type_text,
    value_text,
)
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Expr,
    GetAttr,
    InternalGraph,
    ModuleNode,
    Node,
    TracedModule,
)
from tmconvert.ir.expr import Constant
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.node import TensorNode
from tmconvert.ir.subgraphs import subgraphs_of
from tmconvert.ir.tree import leaves
from tmconvert.viewer.marks import marked


def source_graph(model: TracedModule | InternalGraph, title: str = "") -> ViewGraph:
    """Returns the graph of a model with its submodules inlined, whose paths are the modules of the page."""
    graph, module = _graph_of(model)
    view = ViewGraph(title or graph.name, "graph")
    if module is not None:
        view.kind = module.producer or "model"
        view.classes = {
            tuple(path.split(".")): each.class_name.rpartition(".")[2]
            for path, each in module.modules()
            if path
        }
    view.summary = list(_summary(module))
    _Builder(view, module).add(graph, ())
    return marked(view)


def _graph_of(model: TracedModule | InternalGraph) -> tuple[InternalGraph, TracedModule | None]:
    if isinstance(model, InternalGraph):
        first = model.inputs[0] if model.inputs else None
        return model, first.owner if isinstance(first, ModuleNode) else None
    assert model.graph is not None
    try:
        flat = flatten_module(model).graph
    except UnsupportedError:
        return model.graph, model
    assert flat is not None
    return flat, model


def _summary(module: TracedModule | None) -> Iterator[tuple[str, str]]:
    if module is None:
        return
    if module.producer:
        yield "producer", module.producer
    yield "class", module.class_name
    yield "parameters", f"{module.parameter_count():,}"
    buffers = module.buffer_count()
    if buffers:
        yield "elements in buffers", f"{buffers:,}"


class _Builder:
    """Adds the expressions of a graph, and of its subgraphs, to ``view``."""

    def __init__(self, view: ViewGraph, module: TracedModule | None) -> None:
        self.view = view
        self.module = module
        self.tensors: dict[Node, int] = {}

    def add(self, graph: InternalGraph, path: Path) -> None:
        inputs = [self._tensor(node) for node in graph.inputs if isinstance(node, TensorNode)]
        for expr in graph:
            if isinstance(expr, Constant | GetAttr):
                self._constant(expr)
            else:
                self._call(expr, path)
        if not path:
            self.view.inputs = inputs
            self.view.outputs = [self._tensor(node) for node in graph.outputs]

    def _tensor(self, node: Node) -> int:
        if node not in self.tensors:
            self.tensors[node] = self.view.add_tensor(
                ViewTensor(str(node), _type(node), qparams=_qparams(node))
            )
        return self.tensors[node]

    def _constant(self, expr: Constant | GetAttr) -> None:
        value = self._value(expr)
        if isinstance(value, np.ndarray):
            self.view.tensors[self._tensor(expr.outputs[0])] = ViewTensor(
                str(getattr(expr, "name", None) or expr.outputs[0]),
                type_text(value.dtype.name, value.shape),
                value,
                _qparams(expr.outputs[0]),
            )

    def _value(self, expr: Constant | GetAttr) -> Any:
        if isinstance(expr, Constant):
            return expr.value
        owner = expr.args[0].owner if isinstance(expr.args[0], ModuleNode) else None
        try:
            return None if owner is None else owner.get(expr.name)
        except KeyError:
            return None

    def _call(self, expr: Expr, path: Path) -> None:
        module = expr.args[0] if isinstance(expr, CallMethod) and expr.op == "call_module" else None
        inputs = [self._tensor(node) for node in expr.inputs if isinstance(node, TensorNode)]
        scope = expr.source.scope if expr.source is not None else ""
        if (
            expr.source is not None
            and expr.source.file
            and not expr.source.file.endswith(".py")
            and not expr.source.line
        ):
            scope = ""  # files of named nodes have no modules
        where = (*path, *(part for part in scope.split(".") if part))
        attributes = _attributes(expr)
        if isinstance(module, ModuleNode) and module.owner is not None:
            own = tuple(part for part in expr.target.split(".") if part)
            where = where if own[: len(where)] != where else own[:-1]
            attributes |= {key: value_text(value) for key, value in module.owner.attributes.items()}
            inputs += [
                self._own(f"{expr.target}.{name}", value) for name, value in module.owner.tensors.items()
            ]
        number = self.view.add_node(
            ViewNode(
                str(expr.outputs[0]) if expr.outputs else expr.target,
                _operator(expr),
                where,
                inputs,
                [self._tensor(node) for node in expr.outputs],
                attributes,
                str(expr.source or ""),
            )
        )
        for body in subgraphs_of(expr):
            self.add(body, (*where, self.view.nodes[number].name, body.name))

    def _own(self, name: str, value: np.ndarray) -> int:
        return self.view.add_tensor(ViewTensor(name, type_text(value.dtype.name, value.shape), value))


def _operator(expr: Expr) -> str:
    """Returns what people call the operator: ``Conv2d``, ``relu``, ``conv2d``."""
    if isinstance(expr, CallFunction):
        name = expr.function.rpartition("::")[2]
        if "aten." in name:  # an overload of PyTorch: aten.relu.default
            return name.rpartition("aten.")[2].split(".")[0]
        return name.rpartition(".")[2]
    if isinstance(expr, CallMethod):
        first = expr.args[0]
        return (
            first.class_name.rpartition(".")[2] if isinstance(first, ModuleNode) else expr.method.strip("_")
        )
    return type(expr).__name__


def _attributes(expr: Expr) -> dict[str, str]:
    """Returns the arguments that are not tensors, by their keywords or positions."""
    given = {f"argument {number}": value for number, value in enumerate(expr.args)} | dict(expr.kwargs)
    return {
        name: value_text(value)
        for name, value in given.items()
        if value is not None
        and not isinstance(value, InternalGraph)
        and not any(isinstance(leaf, Node) for leaf in leaves(value))
    }


def _type(node: Node) -> str:
    shape, dtype = getattr(node, "shape", None), getattr(node, "dtype", None)
    return type_text("" if dtype is None else dtype.name, shape)


def _qparams(node: Node) -> dict[str, Any] | None:
    qparams = node.qparams if isinstance(node, TensorNode) else None
    if qparams is None:
        return None
    return qparams_record(qparams.dtype, qparams.scale, qparams.zero_point, qparams.channel_axis)
