"""Parses and prints sizes: ``4*batch``, ``floor((height+1)/2)-3``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tmconvert.ir.symbolic.dims import LEAST, Dim, Floor, Monomial, Size, Symbol, of, substituted

_TOKEN = re.compile(
    r"\s*([0-9]+\.[0-9]+(?:e[-+]?[0-9]+)?|[0-9]+e[-+]?[0-9]+|[0-9]{1,18}|[A-Za-z_]\w*|[-+*/(),])"
)
MAX_TOKENS = 1000
NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
ROUNDINGS = {"floor64": "floor", "ceil64": "ceil", "round64": "round"}
STEPS = {
    f"{name}64": name for name in ("add", "sub", "mul", "truediv", "min", "max", "pow", "sqrt", "log")
} | {"float32": "float32"}
UNARY = frozenset(("sqrt", "log", "float32"))
FUNCTIONS = frozenset({"floor", "min", "max", *ROUNDINGS, *STEPS})
RESERVED = FUNCTIONS | frozenset({"none", "true", "false", "inf", "nan", "loc", "by", "nhwc"})


def is_size_name(name: str) -> bool:
    """Whether ``name`` is a valid name for a symbol."""
    return NAME.fullmatch(name) is not None and name not in RESERVED


def is_size_expression(text: str) -> bool:
    """Whether ``text`` is an expression of at least one symbol with a valid name, such as ``past+sequence``.

    >>> is_size_expression("2*height + 1"), is_size_expression("batch size")
    (True, False)
    """
    names = names_in(text)
    try:
        size = parse_size(text, {name: Symbol(name, LEAST) for name in names})
    except (ValueError, ArithmeticError):  # as of a division by zero
        return False
    return isinstance(size, Dim) and all(map(is_size_name, names)) and set(names) == set(size.symbols)


def names_in(text: str) -> list[str]:
    """Returns the names of the symbols in an expression of sizes, in order.

    >>> names_in("past+2*sequence")
    ['past', 'sequence']
    """
    return [name for name in dict.fromkeys(NAME.findall(text)) if name not in FUNCTIONS]


def size_of(text: str, sizes: Mapping[str, int]) -> Size:
    """Returns the size of an expression; symbols without a number in ``sizes`` stay, with examples of 2.

    >>> size_of("past+sequence", {"past": 3, "sequence": 4})
    7
    """
    names = names_in(text)
    size = parse_size(text, {name: Symbol(name, LEAST) for name in names})
    known = {name: sizes[name] for name in names if name in sizes}
    made: Size = substituted([size], known)[0]
    return made


def parse_size(text: str, symbols: Mapping[str, Symbol]) -> Size:
    """Parses the output of ``str(dim)``. Raises ValueError for anything else, and for unknown symbols."""
    tokens = _TOKEN.findall(text)
    if len(tokens) > MAX_TOKENS or "".join(tokens) != re.sub(r"\s", "", text):
        raise ValueError(f"{text!r:.60} is not a size")
    reader = _Reader(tokens[::-1], symbols)
    result = reader.sum(0)
    if reader.tokens:
        raise ValueError(f"{text!r:.60} is not a size")
    return result


class _Reader:
    def __init__(self, tokens: list[str], symbols: Mapping[str, Symbol]) -> None:
        self.tokens = tokens  # the next one is the last
        self.symbols = symbols

    def next(self) -> str:
        return self.tokens[-1] if self.tokens else ""

    def take(self, token: str) -> None:
        if self.next() != token:
            raise ValueError(f"{token!r} expected in a size, not {self.next() or 'its end'!r}")
        self.tokens.pop()

    def sum(self, depth: int) -> Size:
        if depth > 50:
            raise ValueError("a size is nested too deeply")
        total: Size = 0
        sign = 1
        if self.next() == "-":
            self.take("-")
            sign = -1
        while True:
            total = total + sign * self.product(depth)
            if self.next() not in ("+", "-"):
                return total
            sign = 1 if self.tokens.pop() == "+" else -1

    def steps(self, depth: int) -> Any:
        """Reads a computation in float64: a float, a size, or a function of two of them."""
        from tmconvert.ir.symbolic.rounded import Steps

        token = self.next()
        if "." in token or (token[:1].isdigit() and "e" in token):
            return float(self.tokens.pop())
        if token not in STEPS or depth > 50:
            return self.sum(depth)
        self.take(token)
        self.take("(")
        operands = [self.steps(depth + 1)]
        if STEPS[token] not in UNARY:
            self.take(",")
            operands.append(self.steps(depth + 1))
        self.take(")")
        return Steps(STEPS[token], *operands)

    def product(self, depth: int) -> Size:
        result = self.factor(depth)
        while self.next() == "*":
            self.take("*")
            result = result * self.factor(depth)
        return result

    def factor(self, depth: int) -> Size:
        token = self.next()
        if token.isdigit():
            return int(self.tokens.pop())
        if token == "floor":
            self.take("floor")
            self.take("(")
            numerator = self.product(depth + 1)
            self.take("/")
            denominator = self.factor(depth + 1)
            self.take(")")
            if denominator == 0:
                raise ValueError("a size is divided by zero")
            return numerator // denominator
        if token in ("min", "max"):
            self.take(token)
            self.take("(")
            first = self.sum(depth + 1)
            self.take(",")
            second = self.sum(depth + 1)
            self.take(")")
            from tmconvert.ir.symbolic.clamps import maximum, minimum

            return minimum(first, second) if token == "min" else maximum(first, second)
        if token in ROUNDINGS:
            from tmconvert.ir.symbolic.rounded import rounded

            self.take(token)
            self.take("(")
            made: Size = rounded(ROUNDINGS[token], self.steps(depth + 1))
            self.take(")")
            return made
        if token == "(":
            self.take("(")
            inner = self.sum(depth + 1)
            self.take(")")
            return inner
        if token not in self.symbols:
            raise ValueError(f"the size {token!r} is not declared")
        symbol = self.symbols[self.tokens.pop()]
        divisor = 1
        if symbol.unit > 1 and self.next() == "/" and "".join(self.tokens[-2:-1]).isdigit():
            self.take("/")
            divisor = int(self.tokens.pop())
        if not divisor or symbol.unit % divisor:
            raise ValueError(f"{token} is not declared as a multiple of {divisor}")
        size: Size = of(symbol) * (symbol.unit // divisor)
        return size


# ---- printing


def printed(size: Dim) -> str:
    """Returns the text of a size; a first term below zero would read as an operator.

    >>> printed(2 - dim("n", 4) + dim("h", 8))
    'h+2-n'
    """
    from tmconvert.ir.symbolic.clamps import as_minimum

    clamped = as_minimum(size)
    if clamped is not None:
        return f"min({clamped[0]},{clamped[1]})"
    terms = sorted(size.terms, key=lambda term: (term[1] < 0, -len(term[0]), tuple(map(str, term[0]))))
    return "".join(_term(monomial, factor) for monomial, factor in terms).removeprefix("+")


def as_remainder(size: Size) -> tuple[str, int] | None:
    """Returns ``height % 8`` and 2 for height - 8 floor(height / 8) + 2; None for other sizes."""
    for monomial, _ in size.terms if isinstance(size, Dim) else ():
        for atom in monomial:
            if isinstance(atom, Floor) and not atom.is_float:
                rest = size - (atom.numerator - of(atom) * atom.denominator)
                if isinstance(rest, int):
                    return f"{grouped(atom.numerator)} % {grouped(atom.denominator)}", rest
    return None


def _term(monomial: Monomial, factor: int) -> str:
    """Prints a term with its sign. A symbol with units takes them from the factor: 16 (h/32) is h/2."""
    sign, factor, words = "-" if factor < 0 else "+", abs(factor), []
    for atom in monomial:
        if isinstance(atom, Symbol):
            shared = math.gcd(factor, atom.unit)
            factor, atom = factor // shared, replace(atom, unit=atom.unit // shared)
        words.append(str(atom))
    number = [str(factor)] if factor != 1 or not words else []
    return sign + "*".join(number + words)


def grouped(value: Size) -> str:
    """Returns the text of an operand, in parentheses where it needs them."""
    text = str(value)
    # height/32 is a part of a size, not a quotient
    has_unit = not isinstance(value, int) and any(symbol.unit > 1 for symbol in value.symbols.values())
    return text if (text.isidentifier() and not has_unit) or text.isdigit() else f"({text})"
