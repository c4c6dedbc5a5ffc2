"""Inserts calls in the words of a source into its graph; types come from converting them on the side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from tmconvert.errors import Refusal, UsageError
from tmconvert.errors.source import Source
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
)
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.traced_module import Vocabulary
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Op


class SourceCalls(Protocol):
    """Takes up calls that have no results yet, and returns these."""

    def record(self, expr: Expr) -> Any: ...


class InsertedCalls:
    """The ``g`` of a replacement in the words of a source: inserts calls before ``before``."""

    def __init__(
        self,
        graph: InternalGraph,
        vocabulary: Vocabulary,
        catalogue: Mapping[str, Op],
        before: Expr | None,
        source: Source | None,
    ) -> None:
        self.graph = graph
        self.vocabulary = vocabulary
        self.catalogue = catalogue
        self.before = before
        self.source = source

    def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """Returns the results of a function."""
        return self.record(CallFunction(function, args, kwargs, label=short_label(function)))

    def call_method(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Returns the results of a method of the tensor ``args[0]``."""
        return self.record(CallMethod(method, args, kwargs))

    def constant(self, value: Any, dtype: Any = None) -> TensorNode:
        """Returns a constant tensor."""
        array = np.asarray(value, dtype)
        node = TensorNode(self.graph.free_name("const"), array.shape, array.dtype)
        self._insert(Constant(array, result=node))
        return node

    def record(self, expr: Expr) -> Any:
        """Inserts a call, and returns its results. Raises UsageError TM6054 for one without meaning."""
        base = target_name(expr).rpartition(".")[2].strip("_")
        types = result_types(expr, self.vocabulary, self.catalogue)
        result = map_leaves(
            lambda type_: TensorNode(self.graph.free_name(f"{base}_out"), type_.shape, type_.dtype), types
        )
        self._insert(expr.like(expr.args, expr.kwargs, result))
        return result

    def _insert(self, expr: Expr) -> None:
        expr.source = self.source
        self.graph.insert(expr, before=self.before)


def result_types(expr: Expr, vocabulary: Vocabulary, catalogue: Mapping[str, Op]) -> Any:
    """Returns the tree of the types of a call's results. Raises UsageError TM6054 where it has no meaning."""
    emitter = GraphEmitter(InternalGraph("types"), catalogue)

    def value_of(leaf: Any) -> Any:
        if not isinstance(leaf, Node):
            return leaf
        if isinstance(leaf, ModuleNode):
            return leaf.owner
        if isinstance(leaf.expr, Constant):
            return emitter.constant(leaf.expr.value)
        value = _attribute(leaf.expr) if isinstance(leaf.expr, GetAttr) else None
        if isinstance(value, np.ndarray):
            return emitter.constant(value)
        assert isinstance(leaf, TensorNode)
        copy = TensorNode(emitter.graph.free_name(leaf.name or "v"), qparams=leaf.qparams)
        copy.type = leaf.real_type
        emitter.graph.add_input(copy)
        return copy

    try:
        values: dict[Any, Any] = {}
        args, kwargs = map_leaves(
            lambda leaf: values.setdefault(leaf, value_of(leaf)) if isinstance(leaf, Node) else leaf,
            (expr.args, expr.kwargs),
        )
        made = vocabulary.apply(emitter, expr, args, kwargs)
    except (Refusal, TypeError) as error:
        reason = error.reason if isinstance(error, Refusal) else str(error)
        raise UsageError("TM6054", f"{target_name(expr)} cannot be inserted: {reason}") from error
    return map_leaves(lambda leaf: leaf.type, tuple(made) if isinstance(made, list) else made)


def _attribute(expr: GetAttr) -> Any:
    owner = expr.args[0].owner
    return None if owner is None else owner.get(expr.name)


def target_name(expr: Expr) -> str:
    """Returns the function or method of a call."""
    return str(getattr(expr, "function", None) or getattr(expr, "method", ""))


def short_label(function: str) -> str:
    """Returns the short form of a function's name that prints show: ``nn.relu``.

    >>> short_label("megengine.functional.nn.relu")
    'nn.relu'
    """
    return function if "::" in function else ".".join(function.split(".")[-2:])
