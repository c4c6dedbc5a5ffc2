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

    It is the first of these: the vocabulary that the expression declares; that of the called module; that of
    the catalogue for its ops; that of the framework with which the function's name begins.
    """
    if expr.vocabulary is not None and expr.vocabulary is not own:
        return expr.vocabulary
    if isinstance(expr, CallFunction):
        return _by_name(own, expr.function)
    first = args[0] if args else None
    if isinstance(first, TracedModule):
        return first.vocabulary if first.vocabulary is not own else None
    return _torch(own) if own.identifier == "aten" and isinstance(expr, CallMethod) else None


def _by_name(own: AdapterVocabulary, function: str) -> Vocabulary | None:
    package, _, _ = function.partition(".")
    if "::" in function:
        if own.identifier == "aten" or isinstance(catalogue().get(function), (CustomOp, type(None))):
            return None
        from tmconvert.frontends.aten.vocabulary import VOCABULARY as ATEN

        return ATEN
    if package == "torch":
        return _torch(own)
    if package == "megengine" and not own.identifier.startswith("megengine"):
        from tmconvert.frontends.megengine.vocabulary import VOCABULARY as MEGENGINE

        return MEGENGINE
    return None


def _torch(own: AdapterVocabulary) -> Vocabulary | None:
    from tmconvert.frontends.torch.vocabulary import VOCABULARY as TORCH

    return None if own is TORCH else TORCH
