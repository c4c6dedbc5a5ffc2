"""einsum, integer matmul and grouped matmul."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import cast, is_tensor, rank, reshaped
from tmconvert.ir.emitter import Emitter

ATEN, FUNCTIONS = Table(), Table()
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@FUNCTIONS.add("torch.einsum")
def einsum(g, equation, *operands):
    """``einsum("ij,jk", a, b)``, ``einsum("ij,jk", [a, b])`` and ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    if is_tensor(equation):
        equation, operands = _written([equation, *operands])
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return aten_einsum(g, equation, operands)


@ATEN.add("einsum")
def aten_einsum(g, equation, tensors, *, path=None):
    terms, result = _spelled_out(g, equation.replace(" ", ""), list(tensors))
    terms, kept = _without_ones(g, terms, list(tensors))
    return g.call("aten::einsum", kept, f"{','.join(terms)}->{result}")


def _written(given: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """Returns the equation of operands with lists of axes; a single last list is the result's."""
    result = "" if len(given) % 2 == 0 else "->" + _of_numbers(given.pop())
    return ",".join(_of_numbers(axes) for axes in given[1::2]) + result, tuple(given[::2])


def _of_numbers(axes: Any) -> str:
    return "".join("..." if axis is Ellipsis else _LETTERS[axis] for axis in axes)


def _spelled_out(g: Emitter, equation: str, tensors: list[Any]) -> tuple[list[str], str]:
    """Returns the letters of each operand and of the result, with new letters for an ellipsis.

    Without an arrow the result has the axes of the ellipsis, then the letters that occur once, in
    alphabetical order (upper case first). Source: torch.einsum.
    """
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise Refusal(f"the number of terms in the equation {equation} differs from the number of operands")
    unused = [letter for letter in _LETTERS if letter not in equation]
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


@ATEN.add("_int_mm")
def _int_mm(g, self, mat2):
    """Product of int8 matrices, accumulated in int32."""
    return g.call("aten::matmul", *(cast(g, each, np.int32) for each in (self, mat2)))


@ATEN.add("_grouped_mm", "transformers::grouped_mm_fallback")
@FUNCTIONS.add("torch.nn.functional.grouped_mm")
def grouped_mm(g, mat_a, mat_b, offs=None, bias=None, out_dtype=None):
    """Multiplies row ``i`` of ``mat_a`` (rows, n) by the matrix of its group in ``mat_b`` (groups, n, m).

    Group ``j`` ends before row ``offs[j]``; rows after the last group give 0. The product of each group is
    computed for all rows, with the rows of other groups set to 0, so that no shape depends on data. Source:
    torch.nn.functional.grouped_mm.
    """
    if rank(g, mat_a) != 2 or rank(g, mat_b) != 3 or offs is None or bias is not None:
        raise Refusal("grouped_mm is supported only for rows times a batch of matrices")
    rows, groups = g.type(mat_a).shape[0], g.type(mat_b).shape[0]
    ends = reshaped(g, cast(g, offs, np.int64), [groups, 1])
    before = g.call("aten::slice", ends, 0, 0, groups - 1, 1)
    starts = g.call("aten::cat", [g.constant(np.zeros((1, 1), np.int64)), before], 0)
    places = g.call("aten::arange", 0, rows, 1)
    is_in = g.call("aten::logical_and", g.call("aten::ge", places, starts), g.call("aten::lt", places, ends))
    mask = reshaped(g, cast(g, is_in, g.type(mat_a).dtype), [groups, rows, 1])
    products = g.call("aten::matmul", g.call("aten::mul", mat_a, mask), mat_b)
    return g.call("aten::sum", products, [0], False)
