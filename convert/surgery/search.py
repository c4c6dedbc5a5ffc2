"""Searches in source graphs: filters over expressions and nodes, named as in MegEngine's TracedModule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import translate
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from tmconvert import ir
from tmconvert.errors import UsageError
from tmconvert.ir.expr import CallFunction, CallMethod
from tmconvert.ir.function_names import name_of_function
from tmconvert.ir.node import ModuleNode, TensorNode
from tmconvert.ir.tree import leaves_of

if TYPE_CHECKING:
    from tmconvert.ir.traced_module import Vocabulary
    from tmconvert.surgery.exprs import Expr
    from tmconvert.surgery.graph import InternalGraph
    from tmconvert.surgery.nodes import Node

Item = TypeVar("Item", bound=ir.Expr | ir.Node)
MOST_SHOWN = 5  # of the items that a message lists


class _Filter(Generic[Item]):
    """A view of a graph: each iteration walks the graph again, so it sees later edits."""

    def __init__(self, walk: Callable[[], Iterable[Item]]) -> None:
        self._walk = walk

    def __iter__(self) -> Iterator[Item]:
        return iter(self._walk())

    def as_list(self) -> list[Item]:
        """Returns the items found, in execution order."""
        return list(self)

    def as_dict(self) -> dict[int, Item]:
        """Returns the items found, by id."""
        return {item.id: item for item in self}

    def as_count(self) -> int:
        """Counts what was found."""
        return sum(1 for _ in self)

    def as_unique(self) -> Item:
        """Returns the only item found. Raises UsageError TM3020 unless exactly one was found."""
        found = self.as_list()
        if len(found) == 1:
            return found[0]
        shown = [repr(item).replace("\t", " ") for item in found[:MOST_SHOWN]]
        raise UsageError(
            "TM3020",
            f"the search found {len(found)} elements, one was expected",
            notes=[("found", "; ".join([*shown, *(["..."] if len(found) > MOST_SHOWN else [])]))]
            if found
            else [],
        )


class ExprFilter(_Filter["Expr"]):
    """Expressions of a graph, in execution order; the methods filter them further.

    >>> graph.exprs().call_function("nn.relu").as_count()  # doctest: +SKIP
    9
    """

    def call_function(self, function: object = None) -> ExprFilter:
        """Keeps the calls of a function, by default of any.

        ``function`` is a name (``"nn.relu"``, ``"megengine.functional.nn.relu"``), the function itself
        (``torch.relu``), or an op of the catalogue (``"aten::relu"``), which finds the calls of functions,
        methods and builtin modules that are converted to this op.
        """
        if function is None:
            return self._that(lambda expr: isinstance(expr, CallFunction))
        if isinstance(function, str) and "::" in function:
            return self._that(_meaning_filter(function))
        name = name_of_function(function)
        end = f".{name}"
        return self._that(
            lambda expr: (
                isinstance(expr, CallFunction)
                and (expr.function == name or expr.label == name or expr.function.endswith(end))
            )
        )

    def call_method(self, method: Any = None) -> ExprFilter:
        """Keeps the calls of a method, by its name or the method itself (``torch.Tensor.add``); by default of
        any, calls of modules included.
        """
        name = method if method is None or isinstance(method, str) else method.__name__
        return self._that(lambda expr: isinstance(expr, CallMethod) and name in (None, expr.method))

    def call_module(self, module_class: object = None) -> ExprFilter:
        """Keeps the calls of modules of a class, which is the class or its name (``"Conv2d"``)."""
        is_of_class = _class_filter(module_class)
        return self._that(lambda expr: expr.op == "call_module" and is_of_class(expr.inputs[0]))

    def expr_id(self, expr_id: int | Sequence[int]) -> ExprFilter:
        """Keeps the expressions with an id, or one of several."""
        wanted = _as_set(expr_id)
        return self._that(lambda expr: expr.id in wanted)

    def type(self, expr_class: type[ir.Expr]) -> ExprFilter:
        """Keeps the expressions of a class, such as ``GetAttr``."""
        return self._that(lambda expr: isinstance(expr, expr_class))

    def name(self, name: str, ignorecase: bool = True) -> ExprFilter:
        """Keeps the expressions one of whose results has a name; see ``NodeFilter.name``."""
        is_called = _name_filter(name, ignorecase)
        return self._that(lambda expr: any(map(is_called, expr.outputs)))

    def _that(self, condition: Callable[[Expr], bool]) -> ExprFilter:
        return ExprFilter(lambda: (expr for expr in self if condition(expr)))


class NodeFilter(_Filter["Node"]):
    """Inputs of a graph and results of its expressions, in execution order; the methods filter them further.

    >>> graph.nodes().name("*_conv1").as_list()  # doctest: +SKIP
    [backbone_conv1, layer1_conv1]
    """

    def type(self, node_class: object) -> NodeFilter:
        """Keeps modules of a class (``"Conv2d"``, ``torch.nn.Conv2d``), or nodes of one (``TensorNode``)."""
        if isinstance(node_class, type) and issubclass(node_class, ir.Node):
            return self._that(lambda node: isinstance(node, node_class))
        return self._that(_class_filter(node_class))

    def distinct_modules(self) -> NodeFilter:
        """Keeps the first node of each module."""

        def first() -> Iterator[Node]:
            seen = set[int]()
            for node in self:
                module = id(getattr(node, "owner", None) or node)
                if module not in seen:
                    seen.add(module)
                    yield node

        return NodeFilter(first)

    def node_id(self, node_id: int | Sequence[int]) -> NodeFilter:
        """Keeps the nodes with an id, or one of several."""
        wanted = _as_set(node_id)
        return self._that(lambda node: node.id in wanted)

    def name(self, name: str, ignorecase: bool = True) -> NodeFilter:
        """Keeps the nodes with a name, which may have ``*`` and ``?``.

        It is compared with the node's name, and with ``GRAPH_NAME`` as ``"{:p}".format(graph)`` prints it; a
        name with a point is compared with the qualified name.
        """
        return self._that(_name_filter(name, ignorecase))

    def _that(self, condition: Callable[[Node], bool]) -> NodeFilter:
        return NodeFilter(lambda: (node for node in self if condition(node)))


def walk_exprs(graph: InternalGraph, recursive: bool, with_inputs: bool = False) -> Iterator[Expr]:
    """Yields expressions; those of a called module come after its first call."""
    for owner, expr in _steps(graph, recursive):
        if expr is not None:
            yield expr
        elif with_inputs:
            yield from [node.expr for node in owner.inputs if node.expr is not None]


def walk_nodes(graph: InternalGraph, recursive: bool) -> Iterator[Node]:
    """Yields formal inputs and results; those of a called module follow the results of its first call."""
    for owner, expr in _steps(graph, recursive):
        yield from owner.inputs if expr is None else expr.outputs


def dependencies(nodes: Iterable[ir.Node]) -> list[Expr]:
    """Returns the expressions that nodes depend on, the last first, each once."""
    found: dict[Expr, None] = {}
    waiting = list(nodes)
    while waiting:
        expr = cast("Expr | None", waiting.pop().expr)
        if expr is not None and expr not in found:
            found[expr] = None
            waiting.extend(expr.inputs)
    return list(found)


def _steps(graph: InternalGraph, recursive: bool) -> Iterator[tuple[InternalGraph, Expr | None]]:
    """Yields ``(graph, None)`` where a graph begins, and ``(graph, expr)`` for each of its expressions."""
    seen = {graph}
    entered = [_own_steps(graph)]
    while entered:
        for step in entered[-1]:
            yield step
            called = _called_graphs(step[1]) if recursive and step[1] is not None else ()
            fresh = [each for each in dict.fromkeys(called) if each not in seen] if called else []
            if fresh:
                seen.update(fresh)
                entered.extend(_own_steps(each) for each in reversed(fresh))
                break
        else:
            entered.pop()


def _own_steps(graph: InternalGraph) -> Iterator[tuple[InternalGraph, Expr | None]]:
    yield graph, None
    for expr in graph:
        yield graph, expr


def _called_graphs(expr: Expr) -> Sequence[Any]:
    """Returns the graph of the module that is called, and those of branches and loops."""
    modules = [node for node in expr.inputs if node.is_module]
    if isinstance(expr, CallFunction) and expr.kwargs:
        found: list[Any] = leaves_of(ir.InternalGraph, expr.kwargs)
    elif modules and isinstance(expr, (CallFunction, CallMethod)):
        found = []
    else:
        return ()
    for node in modules:
        owner = getattr(node, "owner", None)
        if owner is not None and isinstance(expr, CallMethod) and node is expr.args[0]:
            called = owner.graph_for(expr.args, expr.kwargs)
            found += [] if called is None else [called]
        elif owner is not None:
            found += owner.graphs.values()
    return found


def _meaning_filter(op: str) -> Callable[[Expr], bool]:
    """Returns a condition: a call computes its first result by an op of the catalogue."""
    known: dict[object, bool] = {}  # calls with equal arguments mean the same
    graph: ir.InternalGraph | None = None
    vocabulary: Vocabulary | None = None  # of that graph

    def means(expr: Expr) -> bool:
        nonlocal graph, vocabulary
        is_function = isinstance(expr, CallFunction)
        if is_function:
            called = expr.function  # type: ignore[attr-defined]
            if called == op:
                return True
        elif isinstance(expr, CallMethod):
            called = expr.method
        else:
            return False
        if graph is None or expr.graph is not graph:
            graph, vocabulary = expr.graph, _vocabulary_of(expr)
        if vocabulary is None:
            return False
        if not is_function and expr.op == "call_module" and _called_graphs(expr):
            return False  # the calls of its own graph are searched
        options = _description(expr.kwargs) if expr.kwargs else None
        key = (is_function, called, id(expr.vocabulary), options, *map(_description, expr.args))
        if key not in known:
            known[key] = vocabulary.result_op(expr) == op
        return known[key]

    return means


def _description(tree: Any) -> object:
    """Returns what the meaning of a call depends on, hashable: types of tensors, modules, numbers."""
    if isinstance(tree, TensorNode):
        qparams = tree.qparams
        return tree.shape, tree.dtype, None if qparams is None else str(qparams)
    if isinstance(tree, ModuleNode):
        return id(tree.owner)
    if isinstance(tree, (tuple, list)):
        return (type(tree), *map(_description, tree))
    if isinstance(tree, dict):
        return tuple((name, _description(part)) for name, part in tree.items())
    if isinstance(tree, slice):
        return slice, *map(_description, (tree.start, tree.stop, tree.step))
    return type(tree), str(tree)  # of numbers too: 1, 1.0 and True are equal


def _vocabulary_of(expr: Expr) -> Vocabulary | None:
    graph = expr.graph
    first = graph.inputs[0] if graph is not None and graph.inputs else None
    return first.owner.vocabulary if isinstance(first, ModuleNode) and first.owner is not None else None


def _class_filter(module_class: object) -> Callable[[Node], bool]:
    """Returns a condition: a node is a module of a class, which is named by text or the class itself."""
    name = "" if module_class is None else name_of_function(module_class)

    def is_of_class(node: Node) -> bool:
        if not isinstance(node, ModuleNode):
            return False
        own = node.owner.class_name if node.owner is not None else node.class_name
        return module_class is None or own == name or own.endswith(f".{name}")

    return is_of_class


def _name_filter(name: str, ignorecase: bool) -> Callable[[Node], bool]:
    pattern = re.compile(translate(name), re.IGNORECASE if ignorecase else 0)

    def fits(own: str) -> bool:
        return own == name or pattern.match(own) is not None

    def is_called(node: Node) -> bool:
        own = str(node)
        if fits(own):
            return True
        if "." in name:
            return fits(node.qualname)
        graph = node.top_graph
        return graph is not None and fits(f"{graph.name}_{own}")

    return is_called


def _as_set(ids: int | Sequence[int]) -> set[int]:
    return {ids} if isinstance(ids, int) else set(ids)
