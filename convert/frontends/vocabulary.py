"""What the vocabularies of all frontends share: a table of adapters, and how a call is handed to one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from ..errors import InternalError, Refusal, TmconvertError, UnsupportedError
from ..ir import CallFunction, CallMethod, Expr, ModuleNode
from ..ir.emitter import EagerEmitter, Emitter
from ..symbolics.registry import catalogue

Adapter = Callable[..., Any]


class AdapterVocabulary:
    """The meaning of calls, by adapters; see ``ir.traced_module.Vocabulary``.

    A subclass finds the adapter of a call. ``framework`` is what the source ran in.
    """

    identifier = ""
    framework = ""

    def find(self, expr: Expr, args: tuple[Any, ...]) -> tuple[str, Adapter | None]:
        """The source's name of a call with these arguments, and its adapter if there is one."""
        raise NotImplementedError

    def help(self, name: str) -> str:
        """What to do where there is no adapter."""
        raise NotImplementedError

    def settled(self, g: Emitter, expr: Expr, args: tuple[Any, ...], result: Any) -> Any:
        """The result of an adapter as the source has it."""
        return result

    def apply(self, g: Emitter, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Says one call in aten-style ops on ``g``. Raises Refusal.

        ``args`` and ``kwargs`` are those of the expression, with ``g``'s values at the leaves and
        TracedModules in place of module nodes.
        """
        name, adapter = self.find(expr, (*args, *kwargs.values()))
        if adapter is None:
            raise Refusal(f"{name} is not supported", self.help(name))
        try:
            bound = _signature(adapter).bind(g, *args, **kwargs)
            return self.settled(g, expr, args, adapter(*bound.args, **bound.kwargs))
        except Refusal:
            raise
        except TmconvertError as error:
            if isinstance(error, InternalError) and error.code != "TM3004":
                raise
            raise Refusal(
                f"{name}: {error.message}", f"run the model in {self.framework} to see whether it is sound"
            ) from error
        # Arguments come from a file and may be anything; what an adapter cannot digest is refused.
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Refusal(f"{name} was recorded with arguments that do not fit it: {error}") from error

    def evaluate(self, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Computes one call on arrays. Raises UnsupportedError TM2001."""
        try:
            return self.apply(EagerEmitter(catalogue()), expr, args, kwargs)
        except Refusal as refusal:
            raise UnsupportedError(
                "TM2001", refusal.reason, source=expr.source, excerpt=repr(expr)
            ) from refusal

    def name(self, expr: Expr) -> str:
        """The source's word for a call: a function's or class's qualified name, or ``Tensor.method``."""
        if isinstance(expr, CallFunction):
            return expr.function
        assert isinstance(expr, CallMethod)
        first = expr.args[0]
        return first.class_name if isinstance(first, ModuleNode) else f"Tensor.{expr.method}"


@cache
def _signature(adapter: Adapter) -> inspect.Signature:
    return inspect.signature(adapter)
