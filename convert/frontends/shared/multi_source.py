"""Edited models, which may have calls of several vocabularies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.ir import CallFunction, CallMethod, Expr, TracedModule
from tmconvert.symbolics.custom import CustomOp
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
    from tmconvert.ir.traced_module import Vocabulary


def vocabulary_of_call(own: AdapterVocabulary, expr: Expr, args: tuple[object, ...]) -> Vocabulary | None:
    """Returns the vocabulary that converts a call in a graph of ``own``; None for ``own`` itself.

    It is the first of these: that of the catalogue for its ops; that of the framework with which the
    function's name begins; the vocabulary that the expression declares; that of the called module. For the
    vocabulary that it returns it returns None.
    """
    found = _declared(own, expr, args)
    return None if found is own else found


def _declared(own: AdapterVocabulary, expr: Expr, args: tuple[object, ...]) -> Vocabulary | None:
    if isinstance(expr, CallFunction):
        return _by_name(own, expr) or expr.vocabulary
    if expr.vocabulary is not None:
        return expr.vocabulary
    first = args[0] if args else None
    if isinstance(first, TracedModule):
        return first.vocabulary
    return _torch() if own.identifier == "aten" and isinstance(expr, CallMethod) else None


def _by_name(own: AdapterVocabulary, expr: CallFunction) -> Vocabulary | None:
    package, _, _ = expr.function.partition(".")
    if "::" in expr.function:
        if own.identifier == "aten" or isinstance(catalogue().get(expr.function), (CustomOp, type(None))):
            return own
        from tmconvert.frontends.aten.vocabulary import VOCABULARY as ATEN

        return ATEN
    if package == "torch":
        return _torch()
    if package == "megengine":
        for known in (expr.vocabulary, own):  # of any release
            if known is not None and known.identifier.startswith("megengine"):
                return known
        from tmconvert.frontends.megengine.vocabulary import VOCABULARY as MEGENGINE

        return MEGENGINE
    return None


def _torch() -> Vocabulary:
    from tmconvert.frontends.torch.vocabulary import VOCABULARY as TORCH

    return TORCH
