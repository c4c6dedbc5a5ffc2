"""Insertion of calls: ``with graph.insert_exprs() as g``."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tmconvert.errors import GraphError, UnsupportedError, UsageError
from tmconvert.errors.source import Source
from tmconvert.errors.suggestions import check_op
from tmconvert.ir.expr import CallFunction, CallMethod, Constant, Expr, GetAttr, Input, short_label
from tmconvert.ir.ids import ids_of
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.tree import Tree, leaves, map_leaves
from tmconvert.ir.types import AnyCallable, Kwargs, TensorType
from tmconvert.surgery import active
from tmconvert.surgery.order import check_nodes, last_of, nodes_of, precedes
from tmconvert.surgery.transaction import Transaction
from tmconvert.surgery.type_inference import UNKNOWN, TypeInference, static_shape, vocabulary_of
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from tmconvert import ir
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.traced_module import Vocabulary
    from tmconvert.surgery.module import TracedModule

# Recorded calls come from modules of these packages, not from the user's code.
PACKAGES = ("tmconvert", "torch")


class Insertion:
    """Inserts calls into a graph while its ``with`` block runs; an exception undoes them all.

    Calls are inserted after ``after``, or after their last argument if that is computed later; by default
    after their arguments; with ``before`` before that expression. Their types are inferred. An exception
    that ends the transaction ``within`` undoes them, too.

    >>> with graph.insert_exprs() as g:  # doctest: +SKIP
    ...     y = g.call("aten::relu", x) * scale + g.constant(1.0)
    """

    def __init__(
        self,
        graph: InternalGraph,
        after: Expr | None = None,
        before: Expr | None = None,
        within: Transaction | None = None,
    ) -> None:
        vocabulary = vocabulary_of(graph)
        if vocabulary is None:
            raise UsageError("TM6004", f"graph {graph.name!r} has no module with a vocabulary for calls")
        self.graph = graph
        self.vocabulary: Vocabulary = vocabulary
        self.last = None if isinstance(after, Input) else after
        self.before = before
        self.within = within
        self._edit = Transaction(graph)
        self._inference: TypeInference | None = None

    def __enter__(self) -> Insertion:
        active.push(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        active.pop()
        self._edit.__exit__(kind, error, trace)
        if kind is None and self.within is not None:
            self.within.include(self._edit)

    # ---- calls

    def call(self, function: str | AnyCallable, *args: object, **kwargs: object) -> Any:
        """Inserts a call of a function, and returns its result: a node, or a list of several.

        ``function`` is an op of the catalogue (``aten::relu``), a qualified name in the source's words, or a
        function of torch. Arrays and tensors among the arguments become constants. Raises GraphError TM3015
        for arguments that do not match, UnsupportedError TM2001 for an unknown function.
        """
        name, is_method = self.vocabulary.function_name(function)
        if is_method:
            return self.call_method(name, *args, **kwargs)
        tensors, attributes = self._arguments(args, kwargs)
        return self._insert(CallFunction(name, tensors, attributes, label=short_label(name)))

    call_function = call

    def call_method(self, method: str, *args: object, **kwargs: object) -> Any:
        """Inserts a call of a method of the tensor ``args[0]``, and returns its result."""
        if not isinstance(method, str):
            raise UsageError("TM6061", f"method must be a name, got {type(method).__name__}")
        vocabulary = self.vocabulary.vocabulary_of_method(method)
        if vocabulary is None:
            raise UnsupportedError("TM2001", f"the method {method} of tensors is not supported")
        tensors, attributes = self._arguments(args, kwargs)
        expr = CallMethod(method, tensors, attributes)
        expr.vocabulary = None if vocabulary is self.vocabulary else vocabulary
        return self._insert(expr)

    def call_module(self, module: ir.TracedModule | str | ModuleNode, *args: object, **kwargs: object) -> Any:
        """Inserts a call of a module, and returns its result.

        ``module`` is the path of a submodule, its node, or a TracedModule of any source; one that is no
        part of the model is added to it.
        """
        node = module if isinstance(module, ModuleNode) else self._module_node(module)
        check_nodes(self.graph, node)
        tensors, attributes = self._arguments(args, kwargs)
        return self._insert(CallMethod("__call__", (node, *tensors), attributes))

    def constant(self, value: Any, dtype: Any = None, name: str = "") -> TensorNode:
        """Inserts a constant tensor; ``dtype`` of floats is float32 by default."""
        array = np.asarray(self.vocabulary.plain(value), dtype)
        if dtype is None and not isinstance(value, (np.ndarray, np.generic)) and array.dtype == np.float64:
            array = array.astype(np.float32)
        node = TensorNode(self.graph.free_name(name or "const"), array.shape, array.dtype)
        self._place(Constant(array.copy(), None, result=node), ())
        return node

    def has_attribute(self, holder: object, name: str) -> bool:
        """Whether the module of a node has a part of this name."""
        try:
            self._module_of(holder).get(name)
        except (AttributeError, KeyError):
            return False
        return True

    def _module_of(self, holder: Any) -> Any:
        return holder.owner if holder is not self.graph.inputs[0] else self._owner()

    def get_attr(self, path: str, holder: Any = None) -> Any:
        """Inserts the read of a parameter, buffer or submodule of this graph's module, at a dotted path.

        Returns its node, or a Python constant unchanged. ``holder`` is the node of another module. Raises
        GraphError TM3008 where there is none.
        """
        holder = self.graph.inputs[0] if holder is None else holder
        check_nodes(self.graph, holder)
        owner = self._module_of(holder)
        try:
            value = owner.get(path)
        except KeyError:
            raise GraphError("TM3008", f"{owner.name or owner.class_name} has no attribute {path}") from None
        name = self.graph.free_name(path.replace(".", "_"))
        if hasattr(value, "graph_for"):
            node: Node = ModuleNode(name, value.class_name, owner=value)
        elif isinstance(value, np.ndarray):
            node = TensorNode(name, value.shape, value.dtype, qparams=getattr(value, "qparams", None))
        else:
            return value
        self._place(GetAttr(holder, path, result=node), (holder,))
        return node

    def parameter(self, array: np.ndarray, name: str) -> Any:
        """Adds a parameter to this graph's module under ``name``, and returns its node."""
        owner = self._owner()
        owner.add_tensor(name, array)
        return self.get_attr(name)

    def type(self, value: Any) -> TensorType:
        """Returns the type of a node or an array."""
        return value.type if isinstance(value, TensorNode) else TensorType(value.dtype, value.shape)

    def knows_method(self, name: str) -> bool:
        """Whether tensors have a method of this name."""
        return self.vocabulary.vocabulary_of_method(name) is not None

    # ---- insertion

    def _owner(self) -> TracedModule:
        node = self.graph.inputs[0]
        assert isinstance(node, ModuleNode)
        return cast("TracedModule", node.owner)

    def _module_node(self, module: ir.TracedModule | str) -> ModuleNode:
        if isinstance(module, str):
            path = module
        else:
            owner = self._owner()
            found = next((path for path, each in owner.modules() if each is module and path), None)
            if found is None:
                found = owner.add_module(owner.free_attribute(getattr(module, "name", "module")), module)
            path = found
        node = self.get_attr(path)
        if not isinstance(node, ModuleNode):
            raise GraphError("TM3008", f"{path} is used as a module, but is not one")
        return node

    def _arguments(self, args: tuple[object, ...], kwargs: Kwargs) -> tuple[tuple[Any, ...], Kwargs]:
        """Returns arguments as an expression has them: arrays become constants."""

        def taken(leaf: object) -> Any:
            if isinstance(leaf, Node):
                return leaf
            value = self.vocabulary.plain(leaf)
            return self.constant(value) if isinstance(value, np.ndarray) else value

        mapped: tuple[tuple[Any, ...], dict[str, Any]] = map_leaves(taken, (args, kwargs))
        check_nodes(self.graph, mapped)
        return mapped

    def _insert(self, expr: Expr) -> Any:
        """Inserts a call with results of the types that it computes, and returns these results."""
        values = self._results(expr)
        base = _name_of(expr)

        def node(value: Any) -> Any:
            if isinstance(value, TensorNode):
                type_ = value.type
            elif getattr(value, "dtype", None) is None:
                return value
            else:
                type_ = TensorType(value.dtype, value.shape)
            shape = static_shape(type_.shape, None)
            return TensorNode(self.graph.free_name(base), shape, type_.dtype, qparams=value.qparams)

        result = map_leaves(node, list(values) if isinstance(values, tuple) else values)
        expr.result = result
        for made in expr.outputs:
            made.expr = expr
        self._place(expr, expr.inputs)
        self._bind(result, values)
        return result

    def _results(self, expr: Expr) -> Any:
        inference = self._inference
        if inference is None:
            inference = self._inference = TypeInference(self.graph, self.vocabulary)
        values = inference.call(expr)
        if any(leaf is UNKNOWN for leaf in leaves(values)) or (values == () and not expr.outputs):
            check_op(self.vocabulary.name(expr), catalogue())
            raise UnsupportedError(
                "TM2001",
                f"the result of {self.vocabulary.name(expr)} is not known: it is not supported",
                notes=[("help", "register a meaning with tmconvert.register_symbolic first")],
            )
        return values

    def _bind(self, result: Tree, values: object) -> None:
        assert self._inference is not None
        for node, value in zip(leaves(result), leaves(values), strict=True):
            if isinstance(node, Node):
                self._inference.values[node] = value

    def _place(self, expr: Expr, inputs: tuple[Node, ...]) -> None:
        """Links an expression after what it takes, and gives it a number."""
        producers = [node.expr for node in inputs if node.expr is not None]
        if self.before is not None:
            for node in nodes_of((expr.args, expr.kwargs)):
                if node.expr is None or not precedes(node.expr, self.before):
                    raise GraphError("TM3011", f"{node} is not defined before {self.before!r}")
            following: Expr | None = self.before
        else:
            last = last_of([*producers, *([] if self.last is None else [self.last])])
            following = self.graph.first if last is None else last.next
        if expr.source is None:
            expr.source = user_place()
        ids_of(self.graph).number(expr)
        self._edit.insert(expr, following)
        self.last = expr


def user_place() -> Source:
    """Returns the line of the user's code that inserts."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES:
        frame = frame.f_back
    return Source(frame.f_code.co_filename, frame.f_lineno)


def _name_of(expr: Expr) -> str:
    """Returns the name of results, as tracing gives it: ``relu_out``."""
    if isinstance(expr, CallFunction):
        base = expr.function.rpartition(":")[2].rpartition(".")[2]
    else:
        assert isinstance(expr, CallMethod)
        base = expr.args[0].name if isinstance(expr.args[0], ModuleNode) else expr.method.strip("_")
    return f"{base}_out"
