"""Equations of einsum with ellipses, implicit results and axes of extent 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.arguments import rank, reshaped
from tmconvert.ir.emitter import Emitter

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum_of(g: Emitter, equation: str, tensors: Sequence[Any]) -> Any:
    """Emits aten::einsum for an equation that may have ellipses. Raises Refusal.

    >>> einsum_of(g, "...ij,...jk", [x, y])  # doctest: +SKIP
    """
    terms, result = _spelled_out(g, equation.replace(" ", ""), list(tensors))
    terms, kept = _without_ones(g, terms, list(tensors))
    return g.call("aten::einsum", kept, f"{','.join(terms)}->{result}")


def _spelled_out(g: Emitter, equation: str, tensors: list[Any]) -> tuple[list[str], str]:
    """Returns the letters of each operand and of the result, with new letters for an ellipsis.

    Ellipses broadcast from the right. Without an arrow the result has the axes of the ellipsis, then the
    letters that occur once, in alphabetical order (upper case first). Source: torch.einsum, Einsum of ONNX.
    """
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise Refusal(f"the number of terms in the equation {equation} differs from the number of operands")
    unused = [letter for letter in LETTERS if letter not in equation]
    hidden = [
        rank(g, tensor) - len(term.replace("...", "")) for term, tensor in zip(terms, tensors, strict=True)
    ]
    most = max([count for count, term in zip(hidden, terms, strict=True) if "..." in term], default=0)
    own = "".join(unused[:most])
    if not arrow:
        letters = re.sub(r"[,.]", "", left)
        result = own + "".join(sorted(each for each in set(letters) if letters.count(each) == 1))
    spelled = [term.replace("...", own[most - count :]) for term, count in zip(terms, hidden, strict=True)]
    return spelled, result.replace("...", own)


def _without_ones(g: Emitter, terms: list[str], tensors: list[Any]) -> tuple[list[str], list[Any]]:
    """Removes axes of extent 1 that broadcast against longer axes of the same letter."""
    long = {
        letter
        for term, tensor in zip(terms, tensors, strict=True)
        for letter, extent in zip(term, g.type(tensor).shape, strict=True)
        if extent != 1
    }
    for place, (term, tensor) in enumerate(zip(terms, tensors, strict=True)):
        shape = g.type(tensor).shape
        kept = [i for i, letter in enumerate(term) if shape[i] != 1 or letter not in long]
        if len(kept) < len(term):
            terms[place] = "".join(term[i] for i in kept)
            tensors[place] = reshaped(g, tensor, [shape[i] for i in kept])
    return terms, tensors
