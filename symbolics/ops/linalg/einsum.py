"""aten::einsum: products of tensors, summed over the letters that the result lacks."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import NUMBERS, Attribute, Op, Tensors
from tmconvert.symbolics.traits import MatrixProduct

Array = np.ndarray

MOST_BATCHES = 3  # axes in front of matrices; more are made one

_FORM = re.compile(r"[a-zA-Z]*(,[a-zA-Z]*)*(->[a-zA-Z]*)?")


def _equation(value: Any) -> str:
    """Returns the equation without blanks, with an explicit result: by default, unique letters sorted."""
    text = str(value).replace(" ", "")
    if not _FORM.fullmatch(text):
        raise ValueError(f"{value!r} is not an equation without ellipses")
    if "->" in text:
        return text
    once = sorted(letter for letter in set(text) - {","} if text.count(letter) == 1)
    return f"{text}->{''.join(once)}"


def _terms(equation: str) -> tuple[list[str], str]:
    operands, _, result = equation.partition("->")
    return operands.split(","), result


def _result(tensors: list[TensorType], equation: str) -> TensorType:
    terms, result = _terms(equation)
    extents: dict[str, int] = {}
    if [len(term) for term in terms] != [tensor.rank for tensor in tensors]:
        raise ValueError(f"{equation} does not fit {', '.join(map(str, tensors))}")
    for term, tensor in zip(terms, tensors, strict=True):
        for letter, extent in zip(term, tensor.shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                raise ValueError(f"{letter} in {equation} stands for both {extents[letter]} and {extent}")
    if len(set(result)) != len(result) or not set(result) <= set(extents):
        raise ValueError(f"the result of {equation} names a letter twice, or one that no operand has")
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise TypeError(f"different dtypes: {', '.join(map(str, tensors))}")
    return TensorType(tensors[0].dtype, tuple(extents[letter] for letter in result))


einsum = Op(
    "aten::einsum",
    args=[Tensors("tensors", NUMBERS), Attribute("equation", _equation)],
    result=_result,
    traits=[MatrixProduct()],
)

einsum.reference(lambda tensors, equation: np.einsum(equation, *tensors).astype(tensors[0].dtype))


@einsum.decompose
def einsum_products(g, tensors, equation):
    """Multiplies operands from left to right, each pair as one batched matrix product.

    In ONNX, too: ONNX Runtime's Einsum does the same, and is slower; its releases before 1.24 fail on sums
    over one operand alone.
    """
    terms, result = _terms(equation)
    x, letters = tensors[0], terms[0]
    for i in range(1, len(tensors)):
        needed = set(result).union(*terms[i + 1 :])
        x, letters = _contracted(g, x, letters, tensors[i], terms[i], needed)
    x, letters = _summed(g, *_diagonal(g, x, letters), set(result))
    return _ordered(g, x, letters, result)


def _contracted(g: Any, x: Any, first: str, other: Any, second: str, needed: set[str]) -> tuple[Any, str]:
    """Multiplies two tensors, summing over letters that both have and nothing else uses."""
    x, first = _summed(g, *_diagonal(g, x, first), needed | set(second))
    other, second = _summed(g, *_diagonal(g, other, second), needed | set(first))
    sizes = {
        **dict(zip(first, g.type(x).shape, strict=True)),
        **dict(zip(second, g.type(other).shape, strict=True)),
    }
    shared = [letter for letter in first if letter in second]
    batch = "".join(letter for letter in shared if letter in needed)
    inner = "".join(letter for letter in shared if letter not in needed)
    rows = "".join(letter for letter in first if letter not in second)
    columns = "".join(letter for letter in second if letter not in first)

    batches = tuple(batch) if len(batch) <= MOST_BATCHES else (batch,)
    lines = (rows,) if batch else tuple(rows) or ("",)  # a product with one matrix takes rows as they are

    def matrices(value: Any, letters: str, *groups: str) -> Any:
        ordered = _ordered(g, value, letters, "".join([*batches, *groups]))
        return _reshaped(
            g, ordered, [math.prod(sizes[letter] for letter in group) for group in (*batches, *groups)]
        )

    product = g.call(
        "aten::matmul", matrices(x, first, *lines, inner), matrices(other, second, inner, columns)
    )
    letters = batch + rows + columns
    return _reshaped(g, product, [sizes[letter] for letter in letters]), letters


def _reshaped(g: Any, x: Any, shape: list[Any]) -> Any:
    return x if list(g.type(x).shape) == shape else g.call("aten::reshape", x, shape)


def _ordered(g: Any, x: Any, letters: str, order: str) -> Any:
    return x if letters == order else g.call("aten::permute", x, [letters.index(letter) for letter in order])


def _summed(g: Any, x: Any, letters: str, kept: set[str]) -> tuple[Any, str]:
    """Sums ``x`` over the axes whose letters are not in ``kept``; returns it with the remaining letters."""
    dropped = [axis for axis, letter in enumerate(letters) if letter not in kept]
    if not dropped:
        return x, letters
    return g.call("aten::sum", x, dropped), "".join(letter for letter in letters if letter in kept)


def _diagonal(g: Any, x: Any, letters: str) -> tuple[Any, str]:
    """Selects the diagonal for each letter that ``x`` has twice."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first, second = letters.index(letter), letters.rindex(letter)
            others = [axis for axis in range(len(letters)) if axis not in (first, second)]
            x = g.call("aten::permute", x, [*others, first, second])
            *rest, extent, _ = g.type(x).shape
            x = g.call("aten::reshape", x, [*rest, extent * extent])
            x = g.call("aten::slice", x, len(rest), 0, extent * extent, extent + 1)
            letters = "".join(letters[axis] for axis in others) + letter
    return x, letters
