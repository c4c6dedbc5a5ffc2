"""The graph verifier: checks the invariants of a normalized graph after every pass.

TM3011  every input is defined earlier, or is an input of the graph
TM3012  a value has one producer and belongs to one graph; its uses are the actual uses
TM3013  value names are unique and valid in the text form
TM3014  an op is in the catalogue, and its arguments match its signature
TM3015  result types are what the op's type rule computes
TM3016  a constant matches its declared type
TM3017  quantization: positive finite scales, zero points within the range, lengths match the axis
TM3018  an expression has a source location, or names the pass that made it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NoReturn

import numpy as np

from tmconvert.errors import GraphError, TmconvertError
from tmconvert.errors.source import printable
from tmconvert.ir.emitter import Definitions
from tmconvert.ir.expr import CallFunction, Constant, Expr
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.lazy_constants import Lazy
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.subgraphs import subgraphs_of, within
from tmconvert.ir.symbolic.data_dependent import agree
from tmconvert.ir.tree import leaves, map_leaves


class Checked:
    """A verified expression with the objects of its verification, so that its type rule runs once."""

    __slots__ = ("_args", "_kwargs", "_result", "_stored", "_types", "inputs", "outputs", "subgraphs", "uses")

    def __init__(self, expr: Expr) -> None:
        self.inputs = expr.inputs
        self.outputs = expr.outputs
        self.uses = _counted(self.inputs)
        self.subgraphs = subgraphs_of(expr)
        self._args, self._kwargs, self._result = expr.args, expr.kwargs, expr.result
        self._stored = expr.stored if isinstance(expr, Constant) else None
        self._types = [(node, node.shape, node.dtype, node.qparams) for node in _tensors(self.outputs)]

    def holds(self, expr: Expr) -> bool:
        """Whether arguments, results and their types are still the same objects.

        Never for calls with subgraphs, on whose types the type rule depends.
        """
        for node, shape, dtype, qparams in self._types:
            if node.shape is not shape or node.dtype is not dtype or node.qparams is not qparams:
                return False
        return (
            expr.args is self._args
            and expr.kwargs is self._kwargs
            and expr.result is self._result
            and (not isinstance(expr, Constant) or expr.stored is self._stored)
            and not self.subgraphs
        )


def verify_graph(
    graph: InternalGraph, catalogue: Definitions, checked: dict[Expr, Checked] | None = None
) -> None:
    """Raises GraphError with the code of the first broken invariant, the node and its neighbours.

    ``checked`` has the expressions that were verified before. For unchanged ones with unchanged operands only
    the links are checked: definitions, names and uses. Type rules that ran when a call was made are not run
    again.
    """
    known = {} if checked is None else checked
    defined: dict[Node, bool] = {}  # whether its type is new
    uses = 0
    for node in graph.inputs:
        if node.expr is None or node.expr.graph is not graph:
            _fail_definition(node)
        _define(defined, node, node.expr, is_new=True)
        _check_quantization(node.expr, node)
    for expr in graph:
        now = known.get(expr)
        is_new = now is None or not now.holds(expr)
        if now is None or is_new:
            now = Checked(expr)
        meets_new = is_new
        for node, count in now.uses.items():
            if node not in defined:
                _fail("TM3011", expr, f"%{node.name} is used before it is defined")
            if node.uses.get(expr) != count:
                _fail_uses(node)
            meets_new |= defined[node]
        uses += len(now.uses)
        for node in now.outputs:
            _define(defined, node, expr, is_new=is_new)
        if meets_new:
            _check_expr(expr, now.inputs, now.outputs, catalogue, is_full=checked is None)
            known[expr] = now
        for body in now.subgraphs:
            within(expr, body, partial(verify_graph, body, catalogue, known))
    _check_ends(graph, defined, uses)


def _define(defined: dict[Node, bool], node: Node, expr: Expr, *, is_new: bool) -> None:
    if node.expr is not expr or node in defined:
        _fail_definition(node)
    defined[node] = is_new


def _is_name(name: str) -> bool:
    """Whether a name can be printed: those of inputs and outputs are the file's, such as ``x:0``."""
    return bool(name) and printable(name) == name


def _check_ends(graph: InternalGraph, defined: Mapping[Node, bool], uses: int) -> None:
    """Checks that names are unique, results are defined, and recorded uses exist."""
    names: set[str] = set()
    for node in defined:
        name = node.name
        if name in names or not ((name.isascii() and name.isidentifier()) or _is_name(name)):
            raise GraphError("TM3013", f"the name {name!r} is used twice or not valid")
        names.add(name)
    returned = _counted(graph.outputs)
    for node in returned:
        if node not in defined:
            raise GraphError("TM3011", f"the result %{node.name} is not defined in the graph")
    for node in defined:
        if node not in returned and not graph.is_output(node):
            continue
        if graph.use_count(node) != sum(node.uses.values()) + returned.get(node, 0):
            raise GraphError("TM3012", f"the returned uses of %{node.name} differ from the graph's record")
    if sum(len(node.uses) for node in defined) != uses:
        for node in defined:
            if any(user.graph is not graph or node not in user.inputs for user in node.uses):
                _fail_uses(node)


def _check_expr(
    expr: Expr, inputs: Sequence[Node], outputs: Sequence[Node], catalogue: Definitions, *, is_full: bool
) -> None:
    if isinstance(expr, Constant):
        _check_constant(expr, outputs)
    elif isinstance(expr, CallFunction):
        if is_full or not _is_inferred(expr):
            _check_call(expr, inputs, outputs, catalogue)
    else:
        _fail("TM3014", expr, f"a {type(expr).__name__} is not allowed in a normalized graph")
    for node in outputs:
        _check_quantization(expr, node)
    if expr.source is None and expr.made_by is None:
        _fail("TM3018", expr, "the expression has neither a source nor the name of a pass")


def _check_constant(expr: Constant, outputs: Sequence[Node]) -> None:
    stored = expr.stored
    node = outputs[0] if len(outputs) == 1 else None
    if (
        not isinstance(stored, (np.ndarray, Lazy))
        or not isinstance(node, TensorNode)
        or stored.shape != node.shape
        or stored.dtype != node.dtype
    ):
        names = ", ".join(f"%{node.name}" for node in outputs)
        _fail("TM3016", expr, f"the constant {names} does not match its declared type")


def _is_inferred(expr: CallFunction) -> bool:
    """Whether the rule of the op has already run on these arguments, and gave these results.

    Never for calls with subgraphs, on whose types the rule depends.
    """
    return expr.inferred is not None and expr.inferred.holds(expr) and not subgraphs_of(expr)


def _check_call(
    expr: CallFunction, inputs: Sequence[Node], outputs: Sequence[Node], catalogue: Definitions
) -> None:
    op = catalogue.get(expr.function)
    if op is None:
        _fail("TM3014", expr, f"{expr.function} is not in the catalogue")
    try:
        bound = op.bind((), op.by_name(expr.args, expr.kwargs))
    except TmconvertError as error:
        _fail("TM3014", expr, error.message)
    except ValueError:
        _fail("TM3014", expr, f"{expr.function} has another number of tensor arguments")
    if bound != (expr.args, expr.kwargs):
        _fail("TM3014", expr, "the arguments are not in the canonical form of the signature")
    if not all(leaf is None or isinstance(leaf, TensorNode) for leaf in leaves(expr.args)):
        _fail("TM3014", expr, "an argument that is not a tensor is passed where a tensor is expected")
    if not all(_is_typed(node) for node in (*inputs, *outputs)):
        _fail("TM3015", expr, "the type of an argument or a result is unknown")
    types = map_leaves(lambda leaf: None if leaf is None else leaf.type, list(expr.args))
    try:
        expected = op.infer(types, expr.kwargs)
    except TmconvertError as error:
        _fail("TM3015", expr, error.message)
    actual = [node.type for node in outputs if isinstance(node, TensorNode)]
    if not agree(expected, actual):
        declared, computed = (", ".join(map(str, types)) for types in (actual, expected))
        _fail("TM3015", expr, f"declared {declared}, computed {computed}")


def _is_typed(node: Node) -> bool:
    return isinstance(node, TensorNode) and node.shape is not None and node.dtype is not None


def _check_quantization(expr: Expr, node: Node) -> None:
    qparams = node.qparams if isinstance(node, TensorNode) else None
    if qparams is None:
        return
    problem = qparams.problem(getattr(node, "shape", None) or (), f"%{node.name}")
    if problem:
        _fail("TM3017", expr, problem)


def _counted(nodes: Sequence[Node]) -> dict[Node, int]:
    counts: dict[Node, int] = {}
    for node in nodes:
        counts[node] = counts.get(node, 0) + 1
    return counts


def _tensors(nodes: Sequence[Node]) -> list[TensorNode]:
    return [node for node in nodes if isinstance(node, TensorNode)]


def _fail_definition(node: Node) -> NoReturn:
    raise GraphError("TM3012", f"%{node.name} has another producer or belongs to another graph")


def _fail_uses(node: Node) -> NoReturn:
    raise GraphError("TM3012", f"the recorded uses of %{node.name} are not its actual uses")


def _fail(code: str, expr: Expr, message: str) -> NoReturn:
    raise GraphError(code, message, source=expr.source, excerpt=_neighbourhood(expr))


def _neighbourhood(expr: Expr) -> str:
    """Returns the expression with its neighbours, for the message."""
    lines = []
    from tmconvert.ir.text import expr_to_text

    for mark, neighbour in ((" ", expr.previous), (">", expr), (" ", expr.next)):
        if neighbour is not None:
            try:
                lines.append(f"{mark} {expr_to_text(neighbour)}")
            except TmconvertError:
                lines.append(f"{mark} {type(neighbour).__name__} {neighbour.outputs}")
    return "\n".join(lines)
