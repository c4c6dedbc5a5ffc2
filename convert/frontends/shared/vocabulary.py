"""What the vocabularies of all frontends share: a table of adapters, and how a call is handed to one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from tmconvert.errors import GraphError, InternalError, Refusal, TmconvertError, UnsupportedError
from tmconvert.ir import CallFunction, CallMethod, Expr, ModuleNode, TensorNode
from tmconvert.ir.emitter import EagerEmitter, Emitter
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.symbolics.custom import RECORDED, CustomOp
from tmconvert.symbolics.registry import catalogue, registered

Adapter = Callable[..., Any]


class AdapterVocabulary:
    """The meaning of calls, by adapters; see ``ir.traced_module.Vocabulary``.

    A subclass finds the adapter of a call. ``framework`` is what the source ran in.
    """

    identifier = ""
    framework = ""
    names_all_grids = False

    def find(self, expr: Expr, args: tuple[Any, ...]) -> tuple[str, Adapter | None]:
        """The source's name of a call with these arguments, and its adapter if there is one."""
        raise NotImplementedError

    def help(self, name: str) -> str:
        """What to do where there is no adapter."""
        raise NotImplementedError

    def refusal(self, name: str) -> Refusal:
        """Why a call without an adapter is refused."""
        return Refusal(f"{name} is not supported", self.help(name))

    def advice(self, error: TmconvertError) -> str:
        """What to do where an op does not take what an adapter gives it."""
        return f"run the model in {self.framework} to see whether it is sound"

    def settled(self, g: Emitter, expr: Expr, args: tuple[Any, ...], result: Any) -> Any:
        """The result of an adapter as the source has it."""
        return result

    def apply(self, g: Emitter, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Says one call in aten-style ops on ``g``. Raises Refusal.

        ``args`` and ``kwargs`` are those of the expression, with ``g``'s values at the leaves and
        TracedModules in place of module nodes.
        """
        op = registered(self.op_name(expr))
        if isinstance(op, CustomOp):
            return self._custom(g, op, expr, args, kwargs)
        name, adapter = self.find(expr, (*args, *kwargs.values()))
        if adapter is None:
            raise self.refusal(name)
        try:
            bound = _signature(adapter).bind(g, *args, **kwargs)
            return self.settled(g, expr, args, adapter(*bound.args, **bound.kwargs))
        except Refusal:
            raise
        except TmconvertError as error:
            if isinstance(error, InternalError) and error.code != "TM3004":
                raise
            raise Refusal(f"{name}: {error.message}", self.advice(error)) from error
        # Arguments come from a file and may be anything; what an adapter cannot digest is refused.
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Refusal(f"{name} was recorded with arguments that do not fit it: {error}") from error

    def _custom(
        self, g: Emitter, op: CustomOp, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of an op that the user has registered."""
        args, kwargs = map_leaves(_by_name, (args, kwargs))
        if not op.computes_types():
            kwargs = {**kwargs, RECORDED: _recorded_types(g, op, expr, (args, kwargs))}
        try:
            return g.call(op.name, *args, **kwargs)
        except GraphError as error:
            raise Refusal(error.message) from error

    def evaluate(self, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Computes one call on arrays. Raises UnsupportedError TM2001."""
        try:
            return self.apply(EagerEmitter(catalogue()), expr, args, kwargs)
        except Refusal as refusal:
            raise UnsupportedError(
                "TM2001", refusal.reason, source=expr.source, excerpt=repr(expr)
            ) from refusal

    def op_name(self, expr: Expr) -> str:
        """What ``register_symbolic`` calls the op of a call."""
        return self.name(expr)

    def name(self, expr: Expr) -> str:
        """The source's word for a call: a function's or class's qualified name, or ``Tensor.method``."""
        if isinstance(expr, CallFunction):
            return expr.function
        assert isinstance(expr, CallMethod)
        first = expr.args[0]
        return first.class_name if isinstance(first, ModuleNode) else f"Tensor.{expr.method}"


def _recorded_types(g: Emitter, op: CustomOp, expr: Expr, arguments: Any) -> list[Any]:
    """The types that the source recorded for the results of a call. Raises Refusal."""
    help = f"give the register_symbolic of {op.name} a result="
    types = []
    for node in expr.outputs:
        if not isinstance(node, TensorNode) or node.shape is None or node.dtype is None:
            raise Refusal(f"the model does not say the type of a result of {op.name}", help)
        types.append([node.dtype.name, list(node.shape)])
    tensors = [leaf for leaf in leaves(arguments) if isinstance(leaf, TensorNode)]
    if any(is_symbolic(g.type(tensor).shape) for tensor in tensors):
        reason = f"only a result= of register_symbolic says the sizes of {op.name} for other inputs"
        raise Refusal(reason, help)
    return types


def _by_name(leaf: Any) -> Any:
    """Dtypes and the like of the source by their names."""
    return leaf.name if isinstance(leaf, GlobalRef) else leaf


@cache
def _signature(adapter: Adapter) -> inspect.Signature:
    return inspect.signature(adapter)
