"""Infers the types in a source graph by converting its calls to ATen-style ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.errors import GraphError, Refusal, TmconvertError
from tmconvert.ir.expr import CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.symbolic.dims import Dim, example
from tmconvert.ir.tree import Tree, map_leaves
from tmconvert.ir.types import TensorType, name_of

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.traced_module import TracedModule, Vocabulary
    from tmconvert.surgery.transaction import Transaction

# Integers of so few elements may be sizes: their values are computed where the shapes give them.
MOST_SIZES = 64
# Sizes that are computed by longer chains are taken as tensors.
MAX_CHAIN = 50
MAX_CALL_DEPTH = 100
# Constants that are computed by longer chains are taken as tensors.
MOST_FOLDED = 8


class Unknown:
    """The value of a result whose type cannot be computed, since its call cannot be converted."""


UNKNOWN = Unknown()


class TypeInference:
    """Computes the types of results in a source graph of a module, from recorded types of arguments.

    Calls are converted in a temporary graph. ``types`` holds the computed types.
    """

    def __init__(self, graph: InternalGraph, vocabulary: Vocabulary) -> None:
        self.graph = graph
        self.vocabulary = vocabulary
        self.emitter = vocabulary.emitter(type(graph)("types"))
        self.values: dict[Node, Any] = {}
        self.depth = 0
        # called with the inference of each call of a traced module, before and after it
        self.visit_called: Callable[[TypeInference, bool], None] = lambda inner, is_done: None

    # ---- values

    def value(self, node: Node, chain: int = 0) -> Any:
        """Returns a node's value for an adapter: a tensor of the temporary graph, a module, a constant."""
        if node not in self.values:
            self.values[node] = self._found(node, chain)
        return self.values[node]

    def _found(self, node: Node, chain: int) -> Any:
        expr = node.expr
        if isinstance(node, ModuleNode) and isinstance(expr, Input):
            return node.owner or UNKNOWN
        if isinstance(expr, Constant):
            return self._captured(expr.value, expr.name)
        if isinstance(expr, GetAttr):
            return self._attribute(expr, self.value(expr.args[0], chain))
        is_typed = isinstance(node, TensorNode) and node.shape is not None and node.dtype is not None
        if expr is None or isinstance(expr, Input) or chain > MAX_CHAIN:
            return self.placeholder(node) if is_typed else UNKNOWN
        if is_typed and not _may_be_sizes(node) and not is_small_constant(node):
            return self.placeholder(node)
        try:
            self.bind(expr.result, self.call(expr, chain + 1))
        except TmconvertError:
            return self.placeholder(node) if is_typed else UNKNOWN
        return self.values[node]

    def _attribute(self, expr: GetAttr, owner: Any) -> Any:
        try:
            value = owner.get(expr.name)
        except (AttributeError, KeyError):
            raise GraphError(
                "TM3008",
                f"{expr.outputs[0]} is the attribute {expr.name!r}, which does not exist",
                source=expr.source,
            ) from None
        return self._captured(value, expr.name)

    def _captured(self, value: object, name: str | None) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        return self.emitter.parameter(value, name) if name else self.emitter.constant(value)

    def placeholder(self, node: Node, type_: TensorType | None = None) -> TensorNode:
        """Returns a tensor of the temporary graph, of the recorded type or of another one."""
        assert isinstance(node, TensorNode)
        recorded = node.real_type if type_ is None else type_
        scratch = self.emitter.graph
        made = TensorNode(
            scratch.free_name(node.name or "v"),
            recorded.shape,
            np.dtype(name_of(recorded.dtype)),
            qparams=node.qparams,
        )
        scratch.add_input(made)
        return made

    # ---- calls

    def call(self, expr: Expr, chain: int = 0) -> Any:
        """Returns the tree of results of a call. Raises GraphError TM3015 for arguments that do not match."""
        args, kwargs = map_leaves(
            lambda leaf: self.value(leaf, chain) if isinstance(leaf, Node) else leaf, (expr.args, expr.kwargs)
        )
        if isinstance(expr, CallMethod) and expr.method == "__call__" and hasattr(args[0], "graph_for"):
            callee = args[0].graph_for(expr.args, expr.kwargs)
            if callee is not None:
                return self._module(expr, callee, [self.values[node] for node in expr.inputs])
            if args[0].graphs:
                raise GraphError(
                    "TM3014",
                    f"{args[0].name or args[0].class_name} was not traced for this structure of arguments",
                    source=expr.source,
                    excerpt=repr(expr),
                )
        return self._applied(expr, args, kwargs)

    def _applied(self, expr: Expr, args: Any, kwargs: Any) -> Any:
        self.emitter.begin(expr.outputs[0].name if expr.outputs else "v", expr.source)
        try:
            return self.vocabulary.apply(self.emitter, expr, args, kwargs)
        except Refusal as refusal:
            if _has_unknown((args, kwargs)) or refusal.reason.endswith("is not supported"):
                return map_leaves(lambda leaf: UNKNOWN, expr.result)
            raise GraphError(
                "TM3015",
                f"the arguments do not fit: {refusal.reason}",
                source=expr.source,
                excerpt=repr(expr),
            ) from refusal

    def _module(self, expr: Expr, callee: InternalGraph, inputs: list[Any]) -> Any:
        """Converts the calls of a traced module for values of its inputs."""
        if len(callee.inputs) != len(inputs) or self.depth > MAX_CALL_DEPTH:
            raise GraphError(
                "TM3014",
                f"{callee.name or 'a module'} takes {len(callee.inputs)} values, got {len(inputs)}",
                source=expr.source,
                excerpt=repr(expr),
            )
        inner = TypeInference(callee, inputs[0].vocabulary or self.vocabulary)
        inner.emitter, inner.depth = self.emitter, self.depth + 1
        inner.visit_called = self.visit_called
        inner.values.update(zip(callee.inputs, inputs, strict=True))
        self.visit_called(inner, False)
        for each in callee:
            inner.run(each)
        self.visit_called(inner, True)
        return map_leaves(lambda leaf: inner.value(leaf) if isinstance(leaf, Node) else leaf, callee.result)

    def run(self, expr: Expr) -> None:
        """Computes the values of the results of an expression."""
        if isinstance(expr, (Constant, GetAttr)):
            for node in expr.outputs:
                self.value(node)
        else:
            self.bind(expr.result, self.call(expr))

    def bind(self, structure: Tree, result: object) -> None:
        """Assigns results to nodes. Raises GraphError TM3014 for another structure."""
        if isinstance(structure, Node):
            self.values[structure] = result
        elif isinstance(structure, (tuple, list, dict)):
            children = list(structure.values()) if isinstance(structure, dict) else list(structure)
            if isinstance(result, dict):
                result = list(result.values())
            if not isinstance(result, (list, tuple)) or len(result) != len(children):
                raise GraphError(
                    "TM3014", "a call has another number of results than its expression declares"
                )
            for child, part in zip(children, result, strict=True):
                self.bind(child, part)

    def type_of(self, node: Node) -> TensorType | None:
        """Returns the computed type of a node; None where it has none, or an unknown one."""
        value = self.values.get(node)
        if isinstance(value, np.ndarray):
            return TensorType(value.dtype, value.shape)
        return value.type if isinstance(value, TensorNode) else None


def _may_be_sizes(node: Node) -> bool:
    if not isinstance(node, TensorNode) or node.dtype is None or node.dtype.kind not in "iu":
        return False
    return len(node.shape or ()) < 2 and (not node.shape or node.shape[0] <= MOST_SIZES)


def is_small_constant(node: Node) -> bool:
    """Whether a node has few elements, and is computed from parameters and constants alone: calls may look at
    its value, as at the scale of a quantization.
    """
    shape = getattr(node, "shape", None)
    return shape is not None and math.prod(shape) <= MOST_SIZES and _is_constant(node, 0)


def _is_constant(node: Node, chain: int) -> bool:
    expr = node.expr
    if expr is None or chain > MOST_FOLDED:
        return False
    if isinstance(expr, (Constant, GetAttr)):
        return True
    if isinstance(expr, Input) or not expr.inputs:
        return False
    return all(_is_constant(each, chain + 1) for each in expr.inputs)


def _has_unknown(tree: Tree) -> bool:
    found: list[bool] = []
    map_leaves(lambda leaf: found.append(leaf is UNKNOWN), tree)
    return any(found)


# ---- types of nodes


def vocabulary_of(graph: InternalGraph) -> Vocabulary | None:
    """Returns the vocabulary of the module that a source graph belongs to; None if it is not known."""
    owner: TracedModule | None = getattr(graph.inputs[0], "owner", None) if graph.inputs else None
    vocabulary = owner.vocabulary if owner is not None else None
    return vocabulary if hasattr(vocabulary, "emitter") else None


def infer_changed(edit: Transaction) -> None:
    """Infers the types of changed expressions, and of the expressions that use them, as far as types change.

    Raises GraphError TM3014, TM3015 where arguments do not match any more.
    """
    graph = edit.graph
    vocabulary = vocabulary_of(graph)
    if vocabulary is None or not edit.changed:
        return
    inference = TypeInference(graph, vocabulary)
    dirty = set(edit.changed)
    edit.changed = {}
    for expr in graph:
        if not dirty:
            return
        if expr not in dirty:
            continue
        dirty.discard(expr)
        inference.run(expr)
        if expr is edit.written and any(inference.values.get(node) is UNKNOWN for node in expr.outputs):
            raise GraphError("TM3014", "the call is not supported", source=expr.source, excerpt=repr(expr))
        for node in expr.outputs:
            if retyped(edit, node, inference.type_of(node)):
                dirty.update(node.users)


def retyped(edit: Transaction, node: Node, type_: TensorType | None) -> bool:
    """Records the computed type of a node; returns whether its users have to be inferred again."""
    if not isinstance(node, TensorNode) or type_ is None:
        return False
    shape = static_shape(type_.shape, node.shape)
    dtype = node.dtype if node.holds_integers or _same_dtype(node, type_) else type_.dtype
    if node.shape == shape and node.dtype is dtype:
        return _may_be_sizes(node) or is_small_constant(node)
    edit.set_type(node, shape, dtype)
    return True


def _same_dtype(node: TensorNode, type_: TensorType) -> bool:
    return node.dtype is not None and name_of(node.dtype) == name_of(type_.dtype)


def static_shape(shape: tuple[object, ...], recorded: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Returns a shape of integers; data-dependent sizes are those that were recorded."""
    known = recorded if recorded is not None and len(recorded) == len(shape) else shape
    return tuple(
        (old if not isinstance(old, Dim) else example(size)) if isinstance(size, Dim) else size
        for size, old in zip(shape, known, strict=True)
    )
