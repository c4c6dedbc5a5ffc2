"""An interpreter that writes the graphs of a new model."""

from __future__ import annotations

from typing import Any

from tmconvert import surgery
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    Expr,
    GetAttr,
    Input,
    InternalGraph,
    ModuleNode,
    Node,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.ids import share_ids
from tmconvert.ir.interpreter import Interpreter
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.surgery.insertion import Insertion
from tmconvert.surgery.module import users_model


class Transformer(Interpreter):
    """Makes a new model from a model; subclasses override what is written for a kind of expression.

    As torch.fx's class of that name, it is an Interpreter whose values are nodes, here of ``new_graph``. The
    methods insert the call that they are given, and return its results; a subclass calls them with another
    target or other arguments, several times or not at all; operators, methods of tensors and functions of
    torch insert calls, too. The graphs of submodules are transformed, each once; ``placeholder`` and
    ``output`` are for the graph of the model alone. Types are those of the source where nothing before a call
    changed, and inferred elsewhere.

    Args:
        module: The model; it is not changed.

    Example:
        >>> class SwapRelu(tmconvert.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         if target == "torch.relu":
        ...             return torch.sigmoid(args[0]) * 2
        ...         return super().call_function(target, args, kwargs)
        >>> swapped = SwapRelu(tm).transform()  # doctest: +SKIP
    """

    def __init__(self, module: TracedModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.new_graph = InternalGraph()
        self._source = module
        self._copies: dict[int, TracedModule] = {}
        self._insertion: Insertion

    def transform(self) -> surgery.TracedModule:
        """Returns the new model; it shares the arrays of the source, and has its example inputs."""
        source = self._source
        modules = list(source.modules())
        for _, module in modules:
            self._copies[id(module)] = _shallow(module)
        for _, module in modules:
            copy = self._copies[id(module)]
            copy.children = {name: self._copies[id(child)] for name, child in module.children.items()}
        for path, module in modules:
            for key, graph in module.graphs.items():
                self._copies[id(module)].graphs[key] = self._written(path, module, graph)
        made = self._copies[id(source)]
        if source.example is not None:
            made.example = source.example._replace(outputs=None)
        share_ids(made)
        return users_model(made)

    def _written(self, path: str, module: TracedModule, graph: InternalGraph) -> InternalGraph:
        """Returns the new graph for a graph of a module."""
        is_top = module is self._source
        self.graph, self.env = graph, {}
        self._owner, self._path = module if module.vocabulary is not None else self._source, path
        self.new_graph = InternalGraph(graph.name)
        first, *others = graph.inputs
        self._set(first, self._input(first))
        with Insertion(self.new_graph) as self._insertion:
            for node in others:
                self._set(node, self.run_node(node) if is_top else self._input(node))
            result = self._run_exprs()
            result = self.output("output", (result,), {}) if is_top else result
        self.new_graph.set_result(result)
        return self.new_graph

    # ---- one method for each kind of expression

    def placeholder(self, target: str, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """Adds an input of the model."""
        assert self._expr is not None
        return self._input(self._expr.outputs[0], target)

    def get_attr(self, target: str, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts a read of a parameter, buffer, constant or submodule."""
        expr = self._expr
        assert expr is not None
        if target != self._target:
            value = self.fetch_attr(target)
            owner = self.env[self.graph.inputs[0]]
            name = target.removeprefix(f"{self._path}.") if self._path else target
            node = self._node(Node(name.rpartition(".")[2]), value)
            self.new_graph.insert(GetAttr(owner, name, result=node, source=expr.source))
            return node
        node = self._copied(expr.outputs[0])
        if isinstance(expr, GetAttr):
            self.new_graph.insert(expr.like((self.env[expr.args[0]],), {}, node))
        else:
            assert isinstance(expr, Constant)
            clone = expr.like((), {}, node)
            if isinstance(expr.value, TracedModule):
                clone.stored = self._copies.get(id(expr.value), expr.value)  # type: ignore[attr-defined]
            self.new_graph.insert(clone)
        return node

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts a call of a function."""
        expr = self._expr
        assert expr is not None
        if isinstance(expr, CallFunction) and target == self._target:
            return self._inserted(expr, args, kwargs)
        return self._calls().call(target, *args, **kwargs)

    def call_method(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts a call of a method of the tensor ``args[0]``."""
        expr = self._expr
        assert expr is not None
        if isinstance(expr, CallMethod) and target == self._target:
            return self._inserted(expr, args, kwargs)
        return self._calls().call_method(target, *args, **kwargs)

    def call_module(self, target: str, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts a call of the submodule at a path."""
        expr = self._expr
        assert isinstance(expr, CallMethod)
        module = self.env[expr.args[0]] if target == self._target else self.get_attr(target, (), {})
        return self._inserted(expr, (module, *args), kwargs)

    # ---- nodes

    def _inserted(self, expr: Expr, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts a call like one of the source, with other arguments."""
        if self._has_new_types(expr, args, kwargs):
            return self._again(expr, args, kwargs)
        result = map_leaves(lambda leaf: self._copied(leaf) if isinstance(leaf, Node) else leaf, expr.result)
        copies = map_leaves(lambda leaf: leaf.copy() if isinstance(leaf, InternalGraph) else leaf, kwargs)
        self.new_graph.insert(expr.like(args, copies, result))
        return result

    def _has_new_types(self, expr: Expr, args: tuple[object, ...], kwargs: dict[str, Any]) -> bool:
        before, now = leaves((expr.args, expr.kwargs)), leaves((args, kwargs))
        return len(before) != len(now) or not all(map(_is_alike, before, now))

    def _again(self, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inserts the call with types that are inferred."""
        g = self._calls()
        if isinstance(expr, CallFunction):
            return g.call(expr.function, *args, **kwargs)
        assert isinstance(expr, CallMethod)
        if isinstance(args[0], ModuleNode):
            return g.call_module(*args, **kwargs)
        return g.call_method(expr.method, *args, **kwargs)

    def _calls(self) -> Insertion:
        """Returns the insertion, at the end of the new graph."""
        self._insertion.last = self.new_graph.last
        return self._insertion

    def _input(self, node: Node, name: str = "") -> Node:
        assert isinstance(node.expr, Input)
        made = self._copied(node)
        return self.new_graph.add_input(
            made, name or node.expr.name, id=node.expr._id, source=node.expr.source
        )

    def _copied(self, node: Node) -> Node:
        owner = node.owner if isinstance(node, ModuleNode) else None
        return self._node(node, owner).with_notes_of(node)

    def _node(self, like: Node, value: Any) -> Node:
        """Returns a new node of the type of another one, or of an array or module."""
        name = self.new_graph.free_name(like.name) if like.name else ""
        if isinstance(like, ModuleNode) or isinstance(value, TracedModule):
            owner = None if value is None else self._copies.get(id(value), value)
            class_name = like.class_name if isinstance(like, ModuleNode) else value.class_name
            return ModuleNode(name, class_name, owner=owner, id=like._id)
        if isinstance(like, TensorNode):
            return TensorNode(name, like.shape, like.dtype, qparams=like.qparams, id=like._id)
        return TensorNode(name, value.shape, value.dtype)


def _shallow(module: TracedModule) -> TracedModule:
    """Returns a copy without children and graphs."""
    made = TracedModule(module.name, module.class_name, vocabulary=module.vocabulary)
    made.tensors, made.attributes = dict(module.tensors), dict(module.attributes)
    made.buffers, made.notes, made.metadata = set(module.buffers), list(module.notes), module.metadata
    made.source_file, made.producer = module.source_file, module.producer
    made.source_sha256, made.dynamic_shapes = module.source_sha256, module.dynamic_shapes
    return made


def _is_alike(before: object, now: object) -> bool:
    """Whether an argument has the type that the source recorded for it; constants are equal."""
    if isinstance(before, TensorNode) and isinstance(now, TensorNode):
        return (before.shape, before.dtype) == (now.shape, now.dtype)
    if isinstance(before, Node) or isinstance(now, Node):
        return isinstance(before, Node) and isinstance(now, Node)
    return type(before) is type(now) and repr(before) == repr(now)
