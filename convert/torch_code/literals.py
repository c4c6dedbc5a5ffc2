"""Values of a graph as Python expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.symbolic.dims import Atom, Dim, Floor, Positive, Size, Symbol, sole_symbol

# Element types of NumPy that have another name in torch
_DTYPES = {"bool": "torch.bool"}


def dtype_text(name: str) -> str:
    """Returns the expression of an element type.

    >>> dtype_text("float16")
    'torch.float16'
    """
    return _DTYPES.get(name, f"torch.{name}")


def number_text(value: Any) -> str:
    """Returns a Python number, or a NumPy scalar, in its shortest form.

    >>> number_text(np.float32(0.1)), number_text(float("-inf")), number_text(np.int64(3))
    ('0.1', 'float("-inf")', '3')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    number = float(value)
    if not math.isfinite(number):
        return f'float("{number}")'
    if isinstance(value, np.floating):
        text = np.format_float_scientific(value, trim="-") if abs(number) < 1e-4 else str(value)
        if abs(float(text)) > float(np.finfo(value.dtype).max):  # the shortest text is rounded up
            return repr(number)
        return text if any(mark in text for mark in ".en") else f"{text}.0"
    return repr(number)


def literal(value: object, size: Callable[[Dim], str]) -> str:
    """Returns an attribute of an op as an expression; lists become tuples. Raises Refusal."""
    if isinstance(value, Dim):
        return size(value)
    if value is None:
        return "None"
    if isinstance(value, str):
        return ascii(value).replace('"', '\\"').replace("'", '"') if _is_simple(value) else ascii(value)
    if isinstance(value, (bool, int, float, np.generic)):
        return number_text(value)
    if isinstance(value, (list, tuple)):
        items = [literal(item, size) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    raise Refusal(f"an argument of type {type(value).__name__} cannot be written as Python code")


def _is_simple(text: str) -> bool:
    return text.isascii() and text.isprintable() and not set(text) & set("'\"\\")


def size_text(size: Size, symbols: Mapping[str, str]) -> str:
    """Returns a symbolic size as an expression of ``symbols``, their texts by name. Raises Refusal."""
    if not isinstance(size, Dim):
        return str(size)
    symbol = sole_symbol(size)
    if symbol is not None and symbol.name in symbols:
        return symbols[symbol.name]
    terms = sorted(size.terms, key=lambda term: (term[1] < 0, -len(term[0])))
    text = ""
    for monomial, factor in terms:
        factors = [_atom(atom, symbols) for atom in monomial]
        if abs(factor) != 1 or not factors:
            factors.append(str(abs(factor)))
        sign = "-" if factor < 0 else "+"
        text += (
            f" {sign} {' * '.join(factors)}" if text else ("-" if factor < 0 else "") + " * ".join(factors)
        )
    return text


def _atom(atom: Atom, symbols: Mapping[str, str]) -> str:
    if isinstance(atom, Symbol):
        if atom.name not in symbols:
            raise Refusal(f"the size {atom.name} is not known where it is used")
        return symbols[atom.name] if atom.unit == 1 else f"({symbols[atom.name]} // {atom.unit})"
    if isinstance(atom, Floor):
        top, bottom = (_grouped(part, symbols) for part in (atom.numerator, atom.denominator))
        return f"({top} // {bottom})"
    assert isinstance(atom, Positive)
    return f"max({size_text(atom.size, symbols)}, 0)"


def _grouped(size: Size, symbols: Mapping[str, str]) -> str:
    text = size_text(size, symbols)
    return f"({text})" if " " in text or text.startswith("-") else text
