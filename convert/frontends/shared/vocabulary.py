"""Base class of the frontends' vocabularies: an adapter table and its use."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tmconvert.errors import GraphError, InternalError, Refusal, TmconvertError, UnsupportedError
from tmconvert.frontends.shared.multi_source import vocabulary_of_call
from tmconvert.ir import CallFunction, CallMethod, Expr, InternalGraph, ModuleNode, TensorNode
from tmconvert.ir.emitter import EagerEmitter, Emitter, GraphEmitter
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.traced_module import Vocabulary
from tmconvert.ir.tree import leaves, leaves_of, map_leaves
from tmconvert.symbolics.registry import catalogue, custom_op

if TYPE_CHECKING:
    from tmconvert.symbolics.custom import CustomOp

Adapter = Callable[..., Any]


class AdapterVocabulary:
    """Converts calls by adapters; see ``ir.traced_module.Vocabulary``.

    A subclass finds the adapter of a call. ``framework`` is what the source ran in.
    """

    identifier = ""
    framework = ""
    has_all_qparams = False
    is_channels_last = False
    may_open: frozenset[str] = frozenset()  # functions whose stored shape may follow another batch

    def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Adapter | None]:
        """Returns the source's name of a call with these arguments, and its adapter, if any."""
        raise NotImplementedError

    def help(self, name: str) -> str:
        """Returns the help for a call without an adapter."""
        raise NotImplementedError

    def reason(self, name: str) -> str | None:
        """Returns why calls with this name have no adapter; None where there is no special reason."""
        return None

    def refusal(self, name: str) -> Refusal:
        """Returns the reason why a call without an adapter is not supported, and help."""
        reason = self.reason(name)
        return Refusal(f"{name}: {reason}" if reason else f"{name} is not supported", self.help(name))

    def advice(self, error: TmconvertError) -> str:
        """Returns the help for a call whose op rejects the arguments of the adapter."""
        return f"check that the model runs in {self.framework}"

    def resolved(self, g: Emitter, expr: Expr, args: tuple[object, ...], result: object) -> Any:
        """Returns the result of an adapter in the form of the source."""
        return result

    def apply(self, g: Emitter, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Converts one call to ATen-style ops on ``g``. Raises Refusal.

        ``args`` and ``kwargs`` are those of the expression, with values of ``g`` at the leaves and
        TracedModules in place of module nodes. A call of another vocabulary is converted by that vocabulary.
        """
        vocabulary = vocabulary_of_call(self, expr, args)
        if vocabulary is not None:
            return vocabulary.apply(g, expr, args, kwargs)
        return self.converted(g, expr, args, kwargs)

    def converted(self, g: Emitter, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Converts one call of this vocabulary to ATen-style ops on ``g``. Raises Refusal."""
        op = custom_op(self.op_name(expr))
        if op is not None:
            return self._custom(g, op, expr, args, kwargs)
        name, adapter = self.find(expr, (*args, *kwargs.values()))
        if adapter is None:
            raise self.refusal(name)
        try:
            return self.resolved(g, expr, args, adapter(g, *args, **kwargs))
        except Refusal:
            raise
        except TmconvertError as error:
            if isinstance(error, InternalError) and error.code != "TM3004":
                raise
            raise Refusal(f"{name}: {error.message}", self.advice(error)) from error
        # Arguments come from a file and may be anything; what an adapter cannot digest is refused.
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            misfit = _misfit(adapter, (g, *args), kwargs)
            if misfit is None:
                reason = f"{type(error).__name__}: {error}"
                raise Refusal(f"{name}: its adapter fails at {_line_of(error)} ({reason})") from error
            raise Refusal(
                f"{name} was recorded with arguments that do not fit its signature: {misfit}"
            ) from error

    def _custom(
        self, g: Emitter, op: CustomOp, expr: Expr, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Any:
        """Converts a call of an op that the user has registered."""
        args, kwargs = map_leaves(_by_name, (args, kwargs))
        if not op.computes_types():
            from tmconvert.symbolics.custom import RECORDED

            kwargs = {**kwargs, RECORDED: _recorded_types(g, op, expr, (args, kwargs))}
        try:
            return g.call(op.name, *args, **kwargs)
        except GraphError as error:
            raise Refusal(error.message) from error

    def evaluate(self, expr: Expr, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Computes one call on arrays. Raises UnsupportedError: TM2008 for too many steps, else TM2001."""
        try:
            name = expr.outputs[0].name if expr.outputs else ""
            return self.apply(EagerEmitter(catalogue(), name), expr, args, kwargs)
        except Refusal as refusal:
            code = "TM2008" if getattr(refusal.__cause__, "code", "") == "TM2008" else "TM2001"
            raise UnsupportedError(code, refusal.reason, source=expr.source, excerpt=repr(expr)) from refusal

    def knows(self, name: str, is_method: bool) -> bool:
        """Whether there is an adapter for a function, or a method of tensors."""
        raise NotImplementedError

    def function_name(self, function: object) -> tuple[str, bool]:
        """Returns the name of a function, and whether it is a method of tensors."""
        from tmconvert.frontends.shared.recording import function_name

        return function_name(function)

    def vocabulary_of_method(self, method: str) -> Vocabulary | None:
        """Returns the vocabulary that converts a method of a tensor; None for an unknown one."""
        from tmconvert.frontends.shared.recording import vocabulary_of_method

        return vocabulary_of_method(self, method)

    def plain(self, leaf: object) -> Any:
        """Returns a constant argument as a graph stores it."""
        from tmconvert.frontends.shared.recording import plain

        return plain(leaf)

    def emitter(self, graph: InternalGraph) -> GraphEmitter:
        """Returns an emitter that adds ops of the catalogue to a graph."""
        return GraphEmitter(graph, catalogue())

    def result_op(self, expr: Expr) -> str | None:
        """Returns the op that computes the first result of a call; see ``ir.traced_module.Vocabulary``."""
        graph = InternalGraph()

        def stand_in(leaf: object) -> object:
            if isinstance(leaf, ModuleNode):
                return leaf.owner
            if not isinstance(leaf, TensorNode):
                return leaf
            name = graph.free_name("x")
            return graph.add_input(TensorNode(name, leaf.shape, leaf.dtype, qparams=leaf.qparams))

        args, kwargs = map_leaves(stand_in, (expr.args, expr.kwargs))
        try:
            made = self.apply(GraphEmitter(graph, catalogue()), expr, args, kwargs)
        except Refusal:
            return None
        first = next((leaf for leaf in leaves(made) if isinstance(leaf, TensorNode)), None)
        producer = first.expr if first is not None else None
        return producer.function if isinstance(producer, CallFunction) else None

    def op_name(self, expr: Expr) -> str:
        """Returns the name by which ``register_symbolic`` identifies the op of a call."""
        return self.name(expr)

    def name(self, expr: Expr) -> str:
        """Returns the source's name of a call: of a function or class, qualified, or ``Tensor.method``."""
        if isinstance(expr, CallFunction):
            return expr.function
        assert isinstance(expr, CallMethod)
        first = expr.args[0]
        return first.class_name if isinstance(first, ModuleNode) else f"Tensor.{expr.method}"


def _recorded_types(g: Emitter, op: CustomOp, expr: Expr, arguments: object) -> list[Any]:
    """Returns the types that the source recorded for the results of a call. Raises Refusal."""
    help = f"pass result= to the register_symbolic of {op.name}"
    types = []
    for node in expr.outputs:
        if not isinstance(node, TensorNode) or node.shape is None or node.dtype is None:
            raise Refusal(f"the model does not record the type of a result of {op.name}", help)
        types.append([node.dtype.name, list(node.shape)])
    tensors = leaves_of(TensorNode, arguments)
    if any(is_symbolic(g.type(tensor).shape) for tensor in tensors):
        reason = (
            f"without a result= of register_symbolic, the result sizes of {op.name} are unknown for other "
            "inputs"
        )
        raise Refusal(reason, help)
    return types


def _by_name(leaf: object) -> Any:
    """Returns dtypes and similar objects of the source by name."""
    return leaf.name if isinstance(leaf, GlobalRef) else leaf


def _line_of(error: BaseException) -> str:
    """Returns the innermost line of an adapter where an error came up."""
    import traceback
    from pathlib import Path

    from tmconvert.symbolics.plugins import plugin_frame

    found = plugin_frame(error)
    if found is not None:
        return str(found.place)
    frames = traceback.extract_tb(error.__traceback__)[1:] or traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "adapters" in Path(frame.filename).parts] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}"


def _misfit(adapter: Adapter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """Returns why an adapter cannot be called with these arguments, which is about names of arguments."""
    try:
        inspect.signature(adapter).bind(*args, **kwargs)
    except TypeError as error:
        return error
    return None
