"""Edited models, which may have calls of several vocabularies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.frontends.registry import frontend_named, frontend_of_function
from tmconvert.ir import CallFunction, CallMethod, Expr, TracedModule
from tmconvert.symbolics.registry import catalogue, custom_op

if TYPE_CHECKING:
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
    from tmconvert.ir.traced_module import Vocabulary

_OF_EDITS = "torch"  # whose functions and tensor methods an edit of any model may call


def vocabulary_of_call(own: AdapterVocabulary, expr: Expr, args: tuple[object, ...]) -> Vocabulary | None:
    """Returns the vocabulary that converts a call in a graph of ``own``; None for ``own`` itself.

    It is the first of these: that of the frontend with one of whose prefixes the function's name begins; the
    vocabulary that the expression declares; that of the called module. For the vocabulary that it returns it
    returns None.
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
    return vocabulary_of_edits() if own.identifier == "aten" and isinstance(expr, CallMethod) else None


def _by_name(own: AdapterVocabulary, expr: CallFunction) -> Vocabulary | None:
    name = expr.function
    if "::" in name and (name not in catalogue() or custom_op(name) is not None):
        return own  # an op of the user, or an unknown one: each vocabulary converts or refuses these
    frontend = frontend_of_function(name)
    if frontend is None:
        return None
    for known in (expr.vocabulary, own):  # of any release
        if known is not None and frontend.vocabulary(known.identifier) is not None:
            return known
    return frontend.vocabulary(frontend.name)


def vocabulary_of_edits() -> AdapterVocabulary:
    """Returns the vocabulary whose methods of tensors an edit may call in every model."""
    vocabulary = frontend_named(_OF_EDITS).vocabulary(_OF_EDITS)
    assert vocabulary is not None
    return vocabulary


def name_of_edit(function: object) -> tuple[str, bool]:
    """Returns the name of a function object that an edit calls, and whether it is a method of tensors."""
    package = getattr(function, "__module__", None) or ""
    return (frontend_of_function(f"{package}.") or frontend_named(_OF_EDITS)).function_name(function)
