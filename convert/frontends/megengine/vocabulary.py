"""MegEngine's vocabulary: which adapter says a call in aten-style ops."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...errors import InternalError, Refusal, TmconvertError, UnsupportedError
from ...ir import CallFunction, CallMethod, Expr, ModuleNode, TensorNode, TracedModule
from ...ir.emitter import EagerEmitter, Emitter
from ...ir.fake_quant import with_clear_ties
from ...ir.tree import leaves
from ...symbolics.registry import catalogue
from .older import NEWEST, Release, as_of

Adapter = Callable[..., Any]

IDENTIFIER = "megengine-"


class MegEngineVocabulary:
    """The meaning of calls as a release of MegEngine recorded them; see ``ir.traced_module.Vocabulary``."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.identifier = f"{IDENTIFIER}{'.'.join(map(str, release))}"

    def apply(self, g: Emitter, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Says one call in aten-style ops on ``g``. Raises Refusal.

        ``args`` and ``kwargs`` are those of the expression, with ``g``'s values at the leaves and
        TracedModules in place of module nodes.
        """
        name, adapter = self._find(expr, args)
        if adapter is None:
            raise Refusal(f"{name} is not supported", _help(name))
        try:
            bound = _signature(adapter).bind(g, *args, **kwargs)
            return _on_recorded_grid(g, expr, args, adapter(*bound.args, **bound.kwargs))
        except Refusal:
            raise
        except TmconvertError as error:
            if isinstance(error, InternalError) and error.code != "TM3004":
                raise
            raise Refusal(
                f"{name}: {error.message}", "run the model in MegEngine to see whether it is sound"
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

    def _find(self, expr: Expr, args: tuple[Any, ...]) -> tuple[str, Adapter | None]:
        from .adapters import FUNCTIONS, METHODS, MODULES

        name = self.name(expr)
        if isinstance(expr, CallFunction):
            adapter = FUNCTIONS.get(name)
            return name, adapter and as_of(self.release, name, adapter)
        assert isinstance(expr, CallMethod)
        if isinstance(args[0], TracedModule):
            called = expr.method == "__call__"
            return args[0].class_name, MODULES.get(args[0].class_name) if called else None
        return name, METHODS.get(expr.method)


@cache
def vocabulary_of(release: Release) -> MegEngineVocabulary:
    """The vocabulary of a release, such as (1, 12, 4)."""
    return MegEngineVocabulary(release)


VOCABULARY = vocabulary_of(NEWEST)


def _on_recorded_grid(g: Emitter, expr: Expr, args: tuple[Any, ...], result: Any) -> Any:
    """Results that MegEngine kept as integers, put on the grid of those integers.

    The grid is that of the operand where the source recorded the same one for both, as it does for
    pooling and the like: a module may be called again with operands on another.
    """
    if not any(isinstance(node, TensorNode) and node.holds_integers for node in expr.outputs):
        return result
    operands = {
        node.qparams: value.qparams
        for node, value in zip(leaves(expr.args), leaves(args), strict=True)
        if isinstance(node, TensorNode) and getattr(value, "qparams", None) is not None
    }

    def settled(structure: Any, value: Any) -> Any:
        if isinstance(structure, (tuple, list)) and isinstance(value, (tuple, list)):
            return [settled(*pair) for pair in zip(structure, value, strict=True)]
        qparams = structure.qparams if isinstance(structure, TensorNode) else None
        if qparams is None or not structure.holds_integers:
            return value
        if getattr(value, "qparams", None) is not None:  # the adapter knew
            return value
        qparams = operands.get(qparams) or qparams
        value = with_clear_ties(value, qparams) if isinstance(value, np.ndarray) else value
        return g.quantized(value, qparams)

    return settled(expr.result, result)


@cache
def _signature(adapter: Adapter) -> inspect.Signature:
    return inspect.signature(adapter)


def _help(name: str) -> str:
    if name.startswith(("megengine.", "opdef.", "Tensor.")):
        return "write this part of the model with functions that `tmconvert ops` lists"
    return "it is code of your own: trace through it, or write it with MegEngine's functions"
