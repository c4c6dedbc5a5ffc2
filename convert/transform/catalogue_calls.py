"""The ``g`` of decompositions and of replacements of ATen-style ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tmconvert.errors import Refusal, UsageError
from tmconvert.errors.suggestions import check_op
from tmconvert.frontends.aten.vocabulary import VOCABULARY
from tmconvert.ir import CallFunction, CallMethod, Expr
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.surgery import active


class CatalogueCalls:
    """An emitter with the calls that ``graph.insert_exprs()`` has: inside of a ``with`` block, nodes have
    operators and methods of tensors, and functions of torch take nodes.

    Numbers among the arguments become constants of the type of the other operand. An unknown op is a
    UsageError TM6050 with the most similar name; TM6052 is that of arguments that do not fit.

    >>> decompose(tm, {"aten::silu": lambda g, x: x * g.call("aten::sigmoid", x)})  # doctest: +SKIP
    """

    def __init__(self, emitter: GraphEmitter) -> None:
        self.emitter = emitter

    def __enter__(self) -> CatalogueCalls:
        active.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        active.pop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.emitter, name)

    def call(self, function: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Emits a call of an op or a function of torch, and returns its result, or a list of several."""
        name, is_method = VOCABULARY.function_name(function)
        if is_method:
            return self.call_method(name, *args, **kwargs)
        return self._applied(CallFunction(name, args, kwargs))

    call_function = call

    def call_method(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Emits the ops of a method of the tensor ``args[0]``, and returns its result."""
        expr = CallMethod(method, args, kwargs)
        expr.vocabulary = VOCABULARY.vocabulary_of_method(method)
        return self._applied(expr)

    def knows_method(self, name: str) -> bool:
        """Whether tensors have a method of this name."""
        return VOCABULARY.vocabulary_of_method(name) is not None

    def _applied(self, expr: Expr) -> Any:
        try:
            return VOCABULARY.apply(self.emitter, expr, expr.args, expr.kwargs)
        except Refusal as refusal:
            check_op(VOCABULARY.name(expr), self.emitter.catalogue)
            notes = [("help", refusal.help)] if refusal.help else []
            raise UsageError("TM6052", refusal.reason, notes=notes) from refusal
