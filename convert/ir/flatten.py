"""Inlining of submodules."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source, printable
from tmconvert.ir.expr import CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.links import ensure_valid_links
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.traced_module import TracedModule
from tmconvert.ir.tree import map_leaves

# A file of a few kilobytes can name calls of calls of calls: 2**n expressions once they are in line.
MAX_EXPRESSIONS = 50_000
MAX_CALLS = 50_000
MAX_CALL_DEPTH = 200
MAX_NAME = 500  # a path of modules deeper than that loses its front


@dataclass(eq=False)
class ModuleCall:
    """A call of the module at ``path``, whose nodes have names that begin with ``prefix``.

    ``inputs`` are the names that the module has for its arguments, by those of the flat graph; ``outputs``
    are the names of the results there.
    """

    path: str
    prefix: str
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)


class CallSource(Source):
    """A source location with the calls of modules around it, from the outermost."""

    calls: tuple[ModuleCall, ...] = ()


def flatten_module(
    module: TracedModule, keeps: Collection[str] = (), *, marks_calls: bool = False
) -> TracedModule:
    """Returns a copy of ``module`` whose graph calls only built-in modules, methods and functions.

    Calls of modules of the classes ``keeps`` stay as they are. Attribute names become dotted paths from the
    top; node names get the path in front; sources get the scope of the module which held the expression.
    With ``marks_calls`` they are CallSources.
    Raises UnsupportedError for recursion.
    """
    flat = TracedModule(module.name, module.class_name, vocabulary=module.vocabulary)
    flat.children, flat.tensors, flat.attributes = module.children, module.tensors, module.attributes
    flat.source_file, flat.producer = module.source_file, module.producer
    flat.source_sha256, flat.metadata = module.source_sha256, module.metadata
    flat.dynamic_shapes, flat.notes = module.dynamic_shapes, module.notes
    if module.graph is not None:
        graph = flat.graphs[next(iter(module.graphs))] = _Flattener(module, keeps, marks_calls).run(
            module.graph
        )
        flat.dynamic_shapes = _renamed(module.dynamic_shapes, module.graph, graph)
    flat.take_example(module)  # of the graph that it has now
    return flat


class _Call:
    """A call that is being inlined: its module, and the mapping of its nodes."""

    def __init__(
        self,
        graph: InternalGraph,
        owner: TracedModule,
        scope: str = "",
        prefix: str = "",
        caller: _Call | None = None,
    ) -> None:
        self.graph = graph
        self.owner = owner
        self.scope = scope
        self.prefix = prefix
        self.caller = caller
        self.depth: int = 0 if caller is None else caller.depth + 1
        self.calls: tuple[ModuleCall, ...] = ()
        if caller is not None:
            self.calls = (*caller.calls, ModuleCall(scope, prefix))
        self.mapped: dict[Node, Node] = {}
        self.names: dict[Node, str] = {}

    def map(self, tree: object) -> Any:
        return map_leaves(lambda leaf: self.mapped[leaf] if isinstance(leaf, Node) else leaf, tree)

    def is_active(self, graph: InternalGraph) -> bool:
        call: _Call | None = self
        while call is not None and call.graph is not graph:
            call = call.caller
        return call is not None


class _Flattener:
    def __init__(self, top: TracedModule, keeps: Collection[str], marks_calls: bool) -> None:
        self.top = top
        self.keeps = keeps
        self.marks_calls = marks_calls
        self.flat = InternalGraph()
        self.calls = 0
        self.inlined: set[InternalGraph] = set()
        self.paths: dict[Node, str] = {}  # module nodes of the flat graph -> dotted path from the top

    def run(self, graph: InternalGraph) -> InternalGraph:
        self.flat.name, self.flat.ids = graph.name, graph.ids
        call = _Call(graph, self.top)
        for node in graph.inputs:
            duplicate = _copied(node, self.flat.free_name(_identifier("", node.name)))
            call.mapped[node] = self.flat.add_input(
                duplicate,
                node.name,
                id=node.expr._id if node.expr else None,
                source=self._source(call, node.expr),
            )
            self._keep_name(node, duplicate)
        self.paths[call.mapped[graph.inputs[0]]] = ""
        self._inline(call)
        self.flat.set_result(call.map(graph.result))
        self._remove_inlined_modules()
        return self.flat

    def _keep_name(self, node: Node, made: Node) -> None:
        """Records the name that a node of the model has in its file, where the flat graph needs another."""
        own = node.expr.graph if node.expr is not None else None
        name = node.name if own is None else own.source_names.get(node, node.name)
        if name and name != made.name and printable(name) == name:
            self.flat.source_names[made] = name

    def _remove_inlined_modules(self) -> None:
        """Removes the expressions that get the modules whose calls are inlined now."""
        expr = self.flat.last
        while expr is not None:
            node = expr.outputs[0] if expr.outputs else None
            owner = node.owner if isinstance(node, ModuleNode) and not self.flat.is_used(node) else None
            if isinstance(expr, (GetAttr, Constant)) and owner is not None and owner.graphs:
                self.flat.remove(expr)
            expr = expr.previous

    def _inline(self, call: _Call) -> None:
        ensure_valid_links(call.graph)
        for expr in call.graph:
            callee = self._callee(expr, call)
            if callee is None:
                self._copy(expr, call)
            else:
                self._inline_call(expr, callee, call)

    def _callee(self, expr: Expr, call: _Call) -> TracedModule | None:
        """Returns the traced module that ``expr`` calls, or None."""
        if not isinstance(expr, CallMethod) or expr.method != "__call__":
            return None
        node = call.map(expr.args[0])
        if not isinstance(node, ModuleNode) or node.owner is None or node.owner.graph is None:
            return None
        return None if node.owner.class_name in self.keeps else node.owner

    def _inline_call(self, expr: Expr, callee: TracedModule, caller: _Call) -> None:
        graph = callee.graph_for(expr.args, expr.kwargs)
        if graph is None or len(graph.inputs) != len(expr.inputs) or len(graph.outputs) != len(expr.outputs):
            raise UnsupportedError(
                "TM2007",
                f"{callee.name or callee.class_name} was not traced for this structure of arguments",
                source=self._source(caller, expr),
                excerpt=repr(expr),
            )
        if caller.is_active(graph):
            raise UnsupportedError(
                "TM2006",
                f"the module {caller.scope or callee.name!r} calls itself",
                source=self._source(caller, expr),
                notes=[("help", "a recursive module cannot be inlined; unroll the recursion")],
            )
        self.calls += 1
        if self.calls > MAX_CALLS or caller.depth >= MAX_CALL_DEPTH:
            raise UnsupportedError(
                "TM2008",
                (
                    f"there are more than {MAX_CALLS} module calls, or they are nested more than "
                    f"{MAX_CALL_DEPTH} deep"
                ),
            )
        path = self.paths.get(caller.mapped[expr.args[0]], "")
        prefix = _identifier(caller.prefix, expr.args[0].name)
        call = _Call(graph, callee, path, prefix, caller)
        call.mapped = {
            formal: caller.mapped[actual] for formal, actual in zip(graph.inputs, expr.inputs, strict=True)
        }
        for outer, returned in zip(expr.outputs, graph.outputs, strict=True):
            # the caller's name of a result says more than the callee's `relu_out`
            call.names.setdefault(returned, caller.names.get(outer) or _identifier(caller.prefix, outer.name))
        call.calls[-1].inputs = {
            call.mapped[node].name: node.expr.name
            for node in graph.inputs[1:]
            if isinstance(node.expr, Input)
        }
        self._inline(call)
        call.calls[-1].outputs = [call.mapped[node].name for node in graph.outputs]
        for outer, returned in zip(expr.outputs, graph.outputs, strict=True):
            caller.mapped[outer] = call.mapped[returned]
        self.inlined.add(graph)

    def _copy(self, expr: Expr, call: _Call) -> None:
        if len(self.flat) >= MAX_EXPRESSIONS:
            raise UnsupportedError("TM2008", f"the flat graph has more than {MAX_EXPRESSIONS} expressions")
        for node in expr.outputs:
            wanted = call.names.get(node) or _identifier(call.prefix, node.name or f"v{node.id}")
            call.mapped[node] = _copied(node, self.flat.free_name(wanted))
            if call.caller is None:
                self._keep_name(node, call.mapped[node])
        clone = expr.copied(call.mapped)
        clone.source = self._source(call, expr)
        if clone.vocabulary is None and call.owner.vocabulary is not self.top.vocabulary:
            clone.vocabulary = call.owner.vocabulary
        if isinstance(clone, GetAttr):
            self._resolve(clone)
        elif isinstance(clone, Constant) and isinstance(clone.value, TracedModule):
            node = clone.outputs[0]
            assert isinstance(node, ModuleNode)
            node.owner = clone.value
            self.paths[node] = clone.name or node.name
        if call.graph in self.inlined:  # the first call has its numbers
            clone._id = None
            for node in clone.outputs:
                node._id = None
        self.flat.insert(clone)

    def _source(self, call: _Call, expr: Expr | None) -> Source:
        known = expr.source if expr is not None else None
        source = known or Source(self.top.source_file or "model", expr.id if expr is not None else None)
        scope, class_name = call.scope, call.owner.class_name.rpartition(".")[2]
        # a node of a file, or a call of a graph that is flat already, such as that of a calibrated model
        if known is not None and known.scope and (known.line is None or not scope):
            scope, class_name = known.scope, known.class_name
        place = (source.file, source.line, scope, class_name)
        if not self.marks_calls:
            return Source(*place)
        marked = CallSource(*place)
        marked.calls = call.calls
        return marked

    def _resolve(self, expr: GetAttr) -> None:
        """Rewrites a GetAttr to the top module with a dotted path, and links its node to the module."""
        holder = expr.args[0]
        owner = self.top if holder is self.flat.inputs[0] else holder.owner
        base = self.paths.get(holder, "")
        path = f"{base}.{expr.name}" if base else expr.name
        node = expr.outputs[0]
        try:
            value = owner.get(expr.name)
        except (AttributeError, KeyError) as error:  # of a module that a caller passes, or nobody does
            raise UnsupportedError(
                "TM2007", f"the model has no attribute {path}", source=expr.source, excerpt=repr(expr)
            ) from error
        if isinstance(node, ModuleNode):
            node.owner = value
            self.paths[node] = path
        if _is_at(self.top, path, value):  # a module held by a Constant is not below the top
            expr.name = path
            expr.args = (self.flat.inputs[0],)


def _is_at(top: TracedModule, path: str, value: object) -> bool:
    try:
        return top.get(path) is value
    except KeyError:
        return False


def _copied(node: Node, name: str) -> Node:
    if isinstance(node, ModuleNode):
        return ModuleNode(name, node.class_name, owner=node.owner, id=node._id).with_notes_of(node)
    assert isinstance(node, TensorNode)
    made = TensorNode(name, node.shape, node.dtype, qparams=node.qparams, id=node._id)
    return made.with_notes_of(node)


def _renamed(
    sizes: dict[str, dict[int, str]] | None, graph: InternalGraph, flat: InternalGraph
) -> dict[str, dict[int, str]] | None:
    """Returns the dynamic sizes by the names of arguments in the flat graph."""
    if sizes is None:
        return None
    pairs = [(old.expr, new.expr) for old, new in zip(graph.inputs, flat.inputs, strict=True)]
    names = {old.name: new.name for old, new in pairs if isinstance(old, Input) and isinstance(new, Input)}
    return {names.get(name, name): axes for name, axes in sizes.items()}


def _identifier(prefix: str, name: str) -> str:
    """Returns a node name that is valid in the text form: path parts joined by underscores."""
    is_clean = name.isascii() and name.isidentifier()
    clean = name if is_clean else re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{prefix}_{clean}"[-MAX_NAME:] if prefix else clean[-MAX_NAME:] or "v"
