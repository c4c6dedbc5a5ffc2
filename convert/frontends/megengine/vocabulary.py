"""MegEngine's vocabulary: which adapter says a call in aten-style ops."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...errors import Refusal
from ...ir import CallFunction, CallMethod, Expr, TensorNode, TracedModule
from ...ir.emitter import Emitter
from ...ir.fake_quant import with_clear_ties
from ...ir.tree import leaves
from ..vocabulary import Adapter, AdapterVocabulary
from .older import NEWEST, Release, as_of
from .refused import refusal_of

IDENTIFIER = "megengine-"


class MegEngineVocabulary(AdapterVocabulary):
    """The meaning of calls as a release of MegEngine recorded them; see ``ir.traced_module.Vocabulary``."""

    framework = "MegEngine"

    def __init__(self, release: Release) -> None:
        self.release = release
        self.identifier = f"{IDENTIFIER}{'.'.join(map(str, release))}"

    def find(self, expr: Expr, args: tuple[Any, ...]) -> tuple[str, Adapter | None]:
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

    def help(self, name: str) -> str:
        if name.startswith(("megengine.", "opdef.", "Tensor.")):
            return "write this part of the model with functions that `tmconvert ops` lists"
        return "it is code of your own: trace through it, or say what it means with register_symbolic"

    def refusal(self, name: str) -> Refusal:
        return refusal_of(name) or super().refusal(name)

    def settled(self, g: Emitter, expr: Expr, args: tuple[Any, ...], result: Any) -> Any:
        return _on_recorded_grid(g, expr, args, result)


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
