"""Runs graphs on NumPy arrays; ``Interpreter`` has the interface of torch.fx's class of that name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tmconvert.errors import GraphError, Refusal, TmconvertError, UnsupportedError, UsageError
from tmconvert.ir.expr import CallFunction, CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.symbolic.open_sizes import check_sizes, sizes_by_name
from tmconvert.ir.traced_module import Evaluate, TracedModule
from tmconvert.ir.tree import Tree, map_leaves
from tmconvert.ir.types import Arrays, TensorType

# Python itself ends at 1000 frames; a call takes a handful.
MAX_CALL_DEPTH = 100


class Interpreter:
    """Runs a model, or a graph, expression by expression; subclasses override what they need.

    ``run`` calls ``run_node`` for each expression, and that ``placeholder``, ``get_attr``, ``call_function``,
    ``call_method`` or ``call_module``, each with ``(target, args, kwargs)`` as in torch.fx: the target is the
    name of the input, the path of the attribute or module, the name of the function or method; nodes among
    the arguments are replaced by their values. ``output`` gets the results of the model. The base class
    computes on arrays, by the reference kernels; subclasses may use values of any kind.

    Submodules that have a graph are run by the same object, so a subclass sees their expressions, too; one
    that overrides ``call_module`` without calling the base method does not. ``placeholder`` and ``output``
    are for the model alone.

    Args:
        module: The model, or a graph.
        garbage_collect_values: Drop a value after its last use; otherwise ``env``, the values by node, keeps
            those of the graph.
        graph: Another graph of the model to run.
        evaluate: Computes the calls of a graph that has no module.

    Raises:
        UsageError: TM6004 for a module without a graph.

    Example:
        >>> class Counter(tmconvert.Interpreter):
        ...     def run_node(self, node):
        ...         value = super().run_node(node)
        ...         print(node.name, getattr(value, "shape", ""))
        ...         return value
        >>> Counter(tmconvert.load("net.tm")).run(x)  # doctest: +SKIP
    """

    def __init__(
        self,
        module: TracedModule | InternalGraph,
        garbage_collect_values: bool = True,
        *,
        graph: InternalGraph | None = None,
        evaluate: Evaluate | None = None,
    ) -> None:
        self.module = module if isinstance(module, TracedModule) else None
        found = graph or (module.graph if isinstance(module, TracedModule) else module)
        if found is None:
            raise UsageError("TM6004", f"{module!r} has no graph to run")
        self.graph: InternalGraph = found
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self._owner, self._path, self._depth = self.module, "", 0  # of the graph that is being run
        self._evaluate = evaluate
        self._expr: Expr | None = None  # what is being computed
        self._target = ""

    # ---- running

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """Runs the model.

        Args:
            *args: The inputs of the model.
            initial_env: Values of nodes that are known already; their expressions are not run.

        Returns:
            The result, in the structure of the source.

        Raises:
            UsageError: TM6003 for a wrong number of inputs.
            Exception: What a call raises.
        """
        inputs = self.graph.inputs if self.module is None else self.graph.inputs[1:]
        self._check_count(len(args))
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        if self.module is not None:
            self._set(self.graph.inputs[0], self.module)
        for node in inputs:
            self._set(node, self.run_node(node))
        return self.output("output", (self._run_exprs(),), {})

    def boxed_run(self, args: list[Any]) -> Any:
        """Runs the model on a list of inputs, which is emptied, so that the run owns its values.

        Args:
            args: The inputs.

        Returns:
            The result, in the structure of the source.

        Raises:
            UsageError: TM6003 for a wrong number of inputs, which leaves the list as it is.
        """
        self._check_count(len(args))
        given = list(args)
        args.clear()
        return self.run(*given)

    def _check_count(self, count: int) -> None:
        expected = len(self.graph.inputs) - (self.module is not None)
        if count != expected:
            name = self.graph.name or "the model"
            raise UsageError("TM6003", f"{name} takes {expected} inputs, {count} were given")

    def _run_exprs(self) -> Any:
        """Runs the expressions of the graph, and returns its result."""
        graph = self.graph
        uses = {node: graph.use_count(node) for node in graph.inputs}
        for expr in graph:
            if not expr.outputs or expr.outputs[0] not in self.env:
                bind(expr.result, self._result(expr), self._set)
            if not self.garbage_collect_values:
                continue
            for node in expr.outputs:
                uses[node] = graph.use_count(node)
            for node in expr.inputs:
                uses[node] -= 1
            for node in (*expr.inputs, *expr.outputs):
                if not uses[node]:
                    self.env.pop(node, None)
        return self._values(graph.result, graph.last)

    def _result(self, expr: Expr) -> Any:
        return self.run_node(expr.outputs[0]) if expr.outputs else self._computed(expr)

    def run_node(self, node: Node) -> Any:
        """Computes the expression that produces a node.

        Args:
            node: The node. An expression with several results is run once, for the first of its nodes.

        Returns:
            The tree of results of the expression.
        """
        assert node.expr is not None
        return self._computed(node.expr)

    def _computed(self, expr: Expr) -> Any:
        args, kwargs = self._arguments(expr)
        target, outer = expr.target_in(self._path), (self._expr, self._target)
        self._expr, self._target = expr, target
        try:
            return getattr(self, expr.op)(target, args, kwargs)
        except MemoryError as error:  # sizes may come from a damaged file
            from tmconvert.errors.environment import memory_error

            raise memory_error("the results of a call", source=expr.source, excerpt=repr(expr)) from error
        finally:
            self._expr, self._target = outer

    # ---- one method for each kind of expression

    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the next input of the model; a tensor, list or number as an array."""
        value = next(self.args_iter)
        is_number = isinstance(value, (int, float, complex, list)) or hasattr(value, "__array__")
        is_given = isinstance(value, np.ndarray) or not is_number
        if is_given:
            return value
        from tmconvert.ir.arrays import as_array

        return as_array(value, f"the input {target!r}")

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns a parameter, buffer, constant or submodule."""
        expr = self._expr
        if expr is None or target != self._target:
            return self.fetch_attr(target)
        return expr.value if isinstance(expr, Constant) else self._attribute(expr)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the results of a function: a qualified name in the source's words, or anything callable."""
        if callable(target):
            return target(*args, **kwargs)
        expr = self._expr
        if not isinstance(expr, CallFunction) or target != self._target:
            expr = CallFunction(target, args, kwargs, source=expr.source if expr else None)
        return self._evaluated(expr, args, kwargs)

    def call_method(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the results of a method of the tensor ``args[0]``."""
        expr = self._expr
        if not isinstance(expr, CallMethod) or target != self._target:
            expr = CallMethod(target, args, kwargs, source=expr.source if expr else None)
        return self._evaluated(expr, args, kwargs)

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the results of the submodule at the path ``target``; ``args`` are without it."""
        expr = self._expr
        assert isinstance(expr, CallMethod)
        module = self.env[expr.args[0]] if target == self._target else self.fetch_attr(target)
        graph = module.graph_for(expr.args, expr.kwargs)
        if graph is None:
            return self._evaluated(expr, (module, *args), kwargs)
        given: dict[Node, Any] = {}
        bind((expr.args, expr.kwargs), ((module, *args), kwargs), given.__setitem__)
        return self._run_call(expr, module, graph, target, [given[node] for node in expr.inputs])

    def output(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of the model, ``args[0]``."""
        return args[0]

    # ---- values

    def fetch_attr(self, target: str) -> Any:
        """Returns the parameter, buffer, attribute or submodule at a path of the model.

        Args:
            target: The dotted path.

        Raises:
            UsageError: TM6050 where there is none.
        """
        try:
            if self.module is not None:
                return self.module.get(target)
        except KeyError:
            pass
        raise UsageError("TM6050", f"the model has no attribute {target!r}")

    def fetch_args_kwargs_from_env(self, node: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments of an expression, with values instead of nodes.

        Args:
            node: A result of the expression.
        """
        assert node.expr is not None
        return self._arguments(node.expr)

    def map_nodes_to_values(self, args: Tree, node: Node | None = None) -> Any:
        """Returns a tree with the value of each node in its place.

        Args:
            args: The tree.
            node: The node whose expression has these arguments, for messages.

        Raises:
            GraphError: TM3011 for a node without a value.
        """
        return self._values(args, node.expr if node is not None else None)

    def _values(self, tree: Tree, expr: Expr | None) -> Any:
        try:
            return map_leaves(lambda leaf: self.env[leaf] if isinstance(leaf, Node) else leaf, tree)
        except KeyError as error:
            source, excerpt = (expr.source, repr(expr)) if expr is not None else (None, "")
            raise GraphError(
                "TM3011", f"%{error.args[0]} is used before it is computed", source=source, excerpt=excerpt
            ) from None

    def _arguments(self, expr: Expr) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args = expr.args[1:] if expr.op == "call_module" else expr.args
        values: tuple[tuple[Any, ...], dict[str, Any]] = self._values((args, expr.kwargs), expr)
        return values

    def _attribute(self, expr: Expr) -> Any:
        assert isinstance(expr, GetAttr)
        return self._values(expr.args[0], expr).get(expr.name)

    def _set(self, node: Node, value: Any) -> None:
        """Keeps the value of a node."""
        self.env[node] = value

    # ---- calls

    def _evaluated(self, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner = self._owner
        if self._evaluate is not None:
            return self._evaluate(expr, args, kwargs)
        if owner is None or owner.vocabulary is None:
            raise UsageError(
                "TM6004",
                f"graph {self.graph.name!r} has no module with a vocabulary that can evaluate its calls",
            )
        return owner.vocabulary.evaluate(expr, args, kwargs)

    def _run_call(
        self, expr: Expr, module: TracedModule, graph: InternalGraph, path: str, inputs: list[Any]
    ) -> Any:
        """Runs the graph of a submodule at ``path``."""
        if len(inputs) != len(graph.inputs) or len(graph.outputs) != len(expr.outputs):
            raise UnsupportedError(
                "TM2007",
                f"{graph.name or 'a module'} was not traced for this structure of arguments",
                source=expr.source,
                excerpt=repr(expr),
            )
        if self._depth >= MAX_CALL_DEPTH:
            raise UnsupportedError(
                "TM2006", f"module calls are nested more than {MAX_CALL_DEPTH} deep", source=expr.source
            )
        outer = self.graph, self.env, self._owner, self._path
        self.graph, self.env = graph, {}
        self._owner = module if module.vocabulary is not None else self._owner
        self._path, self._depth = path, self._depth + 1
        try:
            for node, value in zip(graph.inputs, inputs, strict=True):
                self._set(node, value)
            return self._run_exprs()
        finally:
            self.graph, self.env, self._owner, self._path = outer
            self._depth -= 1


def interpret_graph(graph: InternalGraph, inputs: Sequence[Any], evaluate: Evaluate | None) -> Any:
    """Computes the result of a graph; see ``tmconvert.surgery.graph.InternalGraph.interpret``."""
    owner = inputs[0] if inputs else None
    if isinstance(owner, TracedModule):
        return Interpreter(owner, graph=graph, evaluate=evaluate).run(*inputs[1:])
    return Interpreter(graph, evaluate=evaluate).run(*inputs)


def interpret_expr(expr: Expr, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Computes the results of one expression, from the values of its inputs in order."""
    if isinstance(expr, Input):
        return tuple(inputs)
    if len(inputs) != len(expr.inputs):
        raise UsageError("TM6003", f"{expr!r} takes {len(expr.inputs)} inputs, {len(inputs)} were given")
    return _Single(expr).results(inputs)


class _Single(Interpreter):
    """Computes one expression of a graph, and what it calls."""

    def __init__(self, expr: Expr) -> None:
        first = expr.graph.inputs[0] if expr.graph is not None and expr.graph.inputs else None
        owner = first.owner if isinstance(first, ModuleNode) else None
        super().__init__(owner or InternalGraph(), graph=expr.graph)
        self.expr = expr

    def results(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        for node, value in zip(self.expr.inputs, inputs, strict=True):
            self._set(node, _as_input(node, value))
        bind(self.expr.result, self._result(self.expr), self._set)
        return tuple(self.env[node] for node in self.expr.outputs)


def _as_input(node: Node, value: Any) -> Any:
    if not isinstance(node, TensorNode):
        return value
    from tmconvert.ir.arrays import as_array

    return as_array(value, f"the input {node.name!r}")


def run_module(module: TracedModule, inputs: Arrays, interpreter: Interpreter | None = None) -> Any:
    """``module(*inputs)``. Raises UsageError TM6003, TM6014 for inputs that do not fit the model."""
    if module.graph is None or module.vocabulary is None:
        raise UsageError("TM6004", f"{module!r} has no graph to run")
    expected = len(module.graph.inputs) - 1
    if len(inputs) != expected:
        raise UsageError(
            "TM6003", f"{module.name or 'the model'} takes {expected} inputs, {len(inputs)} were given"
        )
    nodes = module.graph.inputs[1:]
    from tmconvert.ir.arrays import as_array

    arrays = [as_array(value, _name_of(node)) for node, value in zip(nodes, inputs, strict=True)]
    _check_shapes(module, arrays)
    different = [_difference(node, array) for node, array in zip(nodes, arrays, strict=True)]
    try:
        result = interpreter.run(*arrays) if interpreter is not None else _observed(module, arrays)
    except Exception as error:
        has_other_ranks = any(map(_has_other_rank, nodes, arrays))
        if not any(different) or (
            isinstance(error, TmconvertError) and not has_other_ranks and not _is_misfit(error)
        ):
            raise
        message = f"the model cannot be run on these inputs: {'; '.join(filter(None, different))}"
        reason = error.message if isinstance(error, TmconvertError) else str(error)
        raise UsageError("TM6003", message, notes=[("it fails with", reason)]) from error
    return map_leaves(lambda leaf: np.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, result)


class _AllReached(Exception):
    """All end points have values."""


class _Observer(Interpreter):
    """Keeps the values of watch points, and stops when all end points have values."""

    def __init__(self, module: TracedModule) -> None:
        super().__init__(module)
        self.watched, self.ends = dict.fromkeys(module.watch_points), dict.fromkeys(module.end_points)
        self.missing = set(self.ends)
        self.values: dict[Node, Any] = {}

    def _set(self, node: Node, value: Any) -> None:
        super()._set(node, value)
        if node in self.watched or node in self.ends:
            self.values[node] = value
        if node in self.missing:
            self.missing.remove(node)
            if not self.missing:
                raise _AllReached


def _observed(module: TracedModule, arrays: Arrays) -> Any:
    """Runs a model with watch points or end points; returns the values of the end points, if any."""
    if not module.watch_points and not module.end_points:
        return Interpreter(module).run(*arrays)
    observer = _Observer(module)
    try:
        result = observer.run(*arrays)
    except _AllReached:
        result = [observer.values[node] for node in module.end_points]
    module.watch_node_value = {
        node: observer.values[node] for node in module.watch_points if node in observer.values
    }
    if observer.missing:
        names = ", ".join(sorted(map(str, observer.missing)))
        raise UsageError("TM6050", f"the run did not compute the end points {names}")
    return result


def _check_shapes(module: TracedModule, arrays: Arrays) -> None:
    """Raises UsageError TM6014 for other sizes than in the trace where they are not declared dynamic."""
    if module.dynamic_shapes is None or module.graph is None:
        return
    shapes: dict[str, tuple[int, ...]] = {}
    for node, array in zip(module.graph.inputs[1:], arrays, strict=True):
        if isinstance(node, TensorNode) and node.shape is not None and isinstance(node.expr, Input):
            check_sizes(module.dynamic_shapes, node.expr.name, node.shape, array.shape)
            shapes[node.expr.name] = array.shape
    sizes_by_name(module.dynamic_shapes, shapes)


def _has_other_rank(node: Node, array: np.ndarray) -> bool:
    return isinstance(node, TensorNode) and node.shape is not None and len(node.shape) != array.ndim


def _is_misfit(error: TmconvertError) -> bool:
    """Whether a call was refused since NumPy, or Python, failed on its arguments."""
    return isinstance(error.__cause__, Refusal) and error.__cause__.__cause__ is not None


def _difference(node: Node, array: np.ndarray) -> str:
    """How an array differs from the input that was recorded; empty where it does not."""
    if not isinstance(node, TensorNode) or node.shape is None or node.dtype is None:
        return ""
    given = TensorType(array.dtype, array.shape)
    return "" if given == node.type else f"{_name_of(node)} is {given}, and was recorded as {node.type}"


def _name_of(node: Node) -> str:
    return f"the input {node.expr.name if isinstance(node.expr, Input) else node.name!r}"


def bind(structure: Tree, result: Any, set_value: Callable[[Node, Any], None]) -> None:
    """Calls ``set_value`` with each node of a tree and the value at its position in ``result``."""
    if isinstance(structure, Node):
        set_value(structure, result)
    elif isinstance(structure, dict):
        for key, child in structure.items():
            bind(child, result[key], set_value)
    elif isinstance(structure, (tuple, list)):
        for child, part in zip(structure, result, strict=True):
            bind(child, part, set_value)
    elif isinstance(structure, slice):
        for name in ("start", "stop", "step"):
            bind(getattr(structure, name), getattr(result, name), set_value)
