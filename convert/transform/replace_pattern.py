"""Replaces the matches of a pattern in a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from tmconvert.errors import GraphError, TmconvertError, UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.ir import Expr, InternalGraph, ModuleNode, Node, TensorNode, TracedModule
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.ids import number_rest
from tmconvert.ir.subgraphs import inlined
from tmconvert.ir.tree import leaves, leaves_of, replaced
from tmconvert.surgery.insertion import Insertion
from tmconvert.surgery.module import users_model
from tmconvert.surgery.transaction import Transaction
from tmconvert.surgery.type_inference import infer_changed
from tmconvert.symbolics.custom import raised_at
from tmconvert.symbolics.op import Op
from tmconvert.transform.catalogue_calls import CatalogueCalls
from tmconvert.transform.match import Match, MatchFilter, find_matches, value_inputs
from tmconvert.transform.normal_form import eliminate_dead_code, is_normalized, transformed
from tmconvert.transform.pattern import is_of_catalogue, parameter_names, pattern_of, takes_g
from tmconvert.transform.source_calls import copied

# (match, the call before which to insert) -> the new values
Emit = Callable[[Match, Expr], list[Any]]


class Retypes(Enum):
    """Whether a replacement may have another type than the pattern: not in ATen-style ops; in a submodule as
    far as its own results keep their types; anywhere in the graph of the model.
    """

    NEVER = 0
    INSIDE = 1
    ANYWHERE = 2


def replace_in_model(
    module: TracedModule,
    pattern: object,
    replacement: object,
    match_filters: Sequence[MatchFilter],
    catalogue: Mapping[str, Op],
) -> list[Match]:
    """Replaces matches in all graphs of a model; a pattern of ATen-style ops converts the model to these
    first.

    On an error the model is unchanged.
    """
    wanted = _users(lambda: pattern_of(pattern, catalogue), "pattern")
    match_filters = [partial(_filtered, each) for each in match_filters]
    if isinstance(replacement, (str, TracedModule)):
        replacement = pattern_of(replacement, catalogue)
    if not callable(replacement) and not isinstance(replacement, InternalGraph):
        given = type_and_value(replacement)
        raise UsageError("TM6054", f"a replacement must be a function, a text or a graph, got {given}")
    if is_of_catalogue(wanted, catalogue):
        matches: list[Match] = []

        def work(graph: InternalGraph) -> None:
            emit = _aten_emitter(graph, replacement, catalogue)
            with Transaction(graph) as edit:
                done = _replace_in_graph(edit, wanted, emit, match_filters)
            matches[:] = done.finished()
            eliminate_dead_code(graph)

        made = transformed(module, catalogue, work, keeps_outputs=False)
        if matches:
            become(module, made)
        return matches
    if module.vocabulary is None or is_normalized(module):
        raise UsageError(
            "TM6054",
            "the pattern is in the words of a source, but the model is in ATen-style ops",
            notes=[("help", "write it with g.call('aten::...'), or apply it before normalize or optimize")],
        )
    with ExitStack() as edits:
        replaced_in = []
        for graph in [graph for _, each in module.modules() for graph in each.graphs.values()]:
            edit = edits.enter_context(Transaction(graph))
            retypes = Retypes.ANYWHERE if graph is module.graph else Retypes.INSIDE
            emit = _source_emitter(edit, replacement)
            replaced_in.append(_replace_in_graph(edit, wanted, emit, match_filters, retypes))
    found = [match for each in replaced_in for match in each.finished()]
    called = {id(node.owner) for match in found for node in _modules(match)}
    for path in [path for path, each in module.modules() if id(each) in called]:
        users_model(module).delete_submodule(path)  # unless something else uses it
    return found


class _Replaced(NamedTuple):
    """Replaced matches of a graph, and the expressions that it had before."""

    graph: InternalGraph
    matches: list[Match]
    before: set[Expr]

    def finished(self) -> list[Match]:
        """Returns the matches, when nothing can be refused any more."""
        for match in self.matches:
            _take_names(self.graph, match, self.before)
            _remove_reads(self.graph, match)
        return self.matches


def _replace_in_graph(
    edit: Transaction,
    pattern: InternalGraph,
    emit: Emit,
    match_filters: Sequence[MatchFilter],
    retypes: Retypes = Retypes.NEVER,
) -> _Replaced:
    """Replaces the matches in a graph. Raises UsageError TM6054 for results of other types that
    their users cannot take, or where ``retypes`` does not allow them.
    """
    graph = edit.graph
    number_rest(graph)  # the matches are shown after they are removed
    before, results = set(graph), _result_types(graph)
    plans = list(_plans(graph, find_matches(graph, pattern, match_filters)))
    for match, expr in plans:
        match.replacements = _checked(match, emit(match, expr), retypes)
    for match, _ in plans:
        for old, new in zip(match.returning_nodes, match.replacements, strict=True):
            _replace_uses(edit, old, new)
    for match, _ in plans:
        _remove(edit, match)
    _infer(edit)
    if retypes is Retypes.INSIDE and _result_types(graph) != results:
        raise UsageError("TM6054", f"the replacement changes the types of the results of {graph.name}")
    return _Replaced(graph, [match for match, _ in plans], before)


def _replace_uses(edit: Transaction, old: Node, new: Node) -> None:
    users = old.users
    for user in users:
        edit.set_arguments(user, replaced(user.args, old, new), replaced(user.kwargs, old, new))
    if edit.graph.is_output(old):
        edit.set_result(replaced(edit.graph.result, old, new))
    if _is_retyped(old, new):
        edit.changed.update(dict.fromkeys(users))


def _result_types(graph: InternalGraph) -> list[Any]:
    return [_type(node) for node in graph.outputs if isinstance(node, TensorNode)]


def _infer(edit: Transaction) -> None:
    """Infers types that follow from those of replacements. Raises UsageError TM6054."""
    try:
        infer_changed(edit)
    except GraphError as error:
        raise UsageError(
            "TM6054",
            f"the replacement changes a type that another call needs: {error.message}",
            source=error.source,
        ) from error


def _plans(graph: InternalGraph, matches: Sequence[Match]) -> list[tuple[Match, Expr]]:
    """Returns the matches, each with the call before which its replacement goes.

    That is after all that it takes, and before all that uses its results; where there is no such position, as
    where a result is used by what another one is computed from, the match is left out.
    """
    position: dict[Expr, float] = {expr: number for number, expr in enumerate(graph)}
    plans = []
    for match in matches:
        inside = set(match.calls.values())
        users = [user for node in match.returning_nodes for user in node.users if user not in inside]
        last = max(inside, key=position.__getitem__)
        where = min([last, *users], key=position.__getitem__)
        taken = leaves_of(Node, match.placeholder_nodes)
        producers = [position.get(node.expr, -1.0) for node in taken if node.expr is not None]
        if max(producers, default=-1.0) >= position[where]:
            continue
        for node in match.returning_nodes:
            if node.expr is not None:
                position[node.expr] = position[where] - 0.5
        plans.append((match, where))
    return plans


def _checked(match: Match, made: list[Any], retypes: Retypes) -> list[Node]:
    old = match.returning_nodes
    if len(made) != len(old):
        raise UsageError("TM6054", f"the replacement has {len(made)} results, the pattern {len(old)}")
    for was, new in zip(old, made, strict=True):
        if not isinstance(new, Node):
            raise UsageError("TM6054", f"a replacement must return values, got {type_and_value(new)}")
        if retypes is Retypes.NEVER and _is_retyped(was, new):
            types = [getattr(each, "type", None) for each in (new, was)]
            raise UsageError(
                "TM6054",
                f"the replacement of {was.name} is {types[0]}, not {types[1]}",
                source=was.expr.source if was.expr is not None else None,
            )
    return made


def _is_retyped(old: Node, new: Node) -> bool:
    return isinstance(old, TensorNode) and isinstance(new, TensorNode) and _type(old) != _type(new)


def _type(node: TensorNode) -> Any:
    return None if node.shape is None or node.dtype is None else node.real_type


def _remove(edit: Transaction, match: Match) -> None:
    """Removes the calls of a match."""
    for expr in _in_order(match):
        if not any(map(edit.graph.is_used, expr.outputs)):
            edit.remove(expr)


def _remove_reads(graph: InternalGraph, match: Match) -> None:
    """Removes the reads of modules that only the calls of a match took."""
    for node in _modules(match):
        if node.expr is not None and node.expr.graph is graph and not graph.is_used(node):
            graph.remove(node.expr)


def _modules(match: Match) -> list[ModuleNode]:
    """Returns the nodes of the modules that a match calls."""
    first = [expr.args[0] for expr in match.calls.values() if expr.args]
    return list(dict.fromkeys(node for node in first if isinstance(node, ModuleNode)))


def _take_names(graph: InternalGraph, match: Match, before: set[Expr]) -> None:
    """Gives the new values the names and quantization of the old ones."""
    for old, node in zip(match.returning_nodes, match.replacements, strict=True):
        if node.expr in before or not old.name or graph.node_called(old.name) is not None:
            continue  # a value that was there already
        graph.rename(node, old.name)
        if isinstance(node, TensorNode) and node.qparams is None and not _is_retyped(old, node):
            node._qparams = getattr(old, "qparams", None)


def _in_order(match: Match) -> list[Expr]:
    """Returns the matched calls, users first."""
    rest, found = set(match.calls.values()), list[Expr]()
    while rest:
        free = [
            expr
            for expr in match.calls.values()
            if expr in rest and not any(user in rest for node in expr.outputs for user in node.users)
        ]
        found += free
        rest -= set(free)
    return found


# ---- replacements


def _aten_emitter(graph: InternalGraph, replacement: Any, catalogue: Mapping[str, Op]) -> Emit:
    def emit(match: Match, before: Expr) -> list[Any]:
        name = match.anchor.name
        g = GraphEmitter(
            graph, catalogue, source=before.source, made_by="replace_pattern", name=name, before=before
        )
        if isinstance(replacement, InternalGraph):
            values = _values(match, len(value_inputs(replacement)))
            return _users(lambda: inlined(g, replacement, values), "replacement")
        if not takes_g(replacement):
            raise UsageError(
                "TM6054", "a replacement of ATen-style ops must take g first, and make calls by g.call"
            )
        with CatalogueCalls(g) as calls:
            given = _arguments(replacement, match, 1)
            return leaves(_users(lambda: replacement(calls, *given), "replacement"))

    return emit


def _source_emitter(edit: Transaction, replacement: Any) -> Emit:
    def emit(match: Match, before: Expr) -> list[Any]:
        with Insertion(edit.graph, before=before, within=edit) as g:
            if isinstance(replacement, InternalGraph):
                return copied(g, replacement, _values(match, len(value_inputs(replacement))))
            own = [g] if takes_g(replacement) else []  # without it, functions of torch record themselves
            values = _arguments(replacement, match, len(own))
            made = _users(lambda: replacement(*own, *values), "replacement")
            return leaves(list(made) if isinstance(made, (list, tuple)) else made)

    return emit


def _values(match: Match, count: int) -> list[Any]:
    values = match.placeholder_nodes
    if len(values) != count:
        raise UsageError("TM6054", f"the pattern has {len(values)} inputs, the replacement {count}")
    return values


def _arguments(replacement: object, match: Match, first: int) -> list[Any]:
    """Returns what the inputs of the pattern matched, and the match for a parameter ``match``."""
    if not callable(replacement):
        raise UsageError(
            "TM6054",
            f"a replacement must be a function, a text or a graph, got {type_and_value(replacement)}",
        )
    names = parameter_names(replacement)[first:]
    values = _values(match, len([name for name in names if name != "match"]))
    rest = iter(values)
    return [match if name == "match" else next(rest) for name in names]


def _filtered(own: MatchFilter, match: Match, graph: InternalGraph, pattern: InternalGraph) -> bool:
    return bool(_users(lambda: own(match, graph, pattern), "match filter"))


def _users(call: Callable[[], Any], what: str) -> Any:
    """Returns what the user's code does. Raises UsageError TM6052 where it raises an error of its own."""
    try:
        return call()
    except TmconvertError as error:
        if isinstance(error, UsageError) and error.code != "TM6050":
            raise
        raise UsageError(
            "TM6052", f"the {what} failed: {error.message}", source=raised_at(error), notes=error.notes
        ) from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError("TM6052", f"the {what} failed: {reason}", source=raised_at(error)) from error


def become(module: TracedModule, made: TracedModule) -> None:
    """Replaces the content of a model by that of another one, in place."""
    assert made.graph is not None
    module.watch_points, module.watch_node_value, module.end_points = [], {}, []
    module.children, module.tensors, module.attributes = {}, made.tensors, {}
    module.buffers, module.graphs, module.vocabulary = set(), made.graphs, made.vocabulary
    module.dynamic_shapes, module.rerun = made.dynamic_shapes, None
    module.example, module.notes = made.example, made.notes
    made.graph.inputs[0].owner = module  # type: ignore[attr-defined]
