"""The error for ranges of sizes beyond which the source computes something else."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import numpy as np

from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source
from tmconvert.ir.symbolic.dims import Symbol
from tmconvert.ir.symbolic.journal import MAX_COUNTED, Guard, summarized

MOST_SHOWN = 4  # further conditions in an error
LONGEST = 100  # characters of a condition that is shown as a formula
SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**"}
_MAXIMUM = re.compile(r"(?<![\w*])max\((\w+)-(\w+),0\)\+\2(?![\w*/.])")
_SUM = re.compile(r"(?<!\de)[-+*/%]")  # in an operand: a sum or a product of sizes
_CALL = re.compile(r"\b(float32|[a-z]+64)\(")


def refuse_ranges(
    broken: Sequence[tuple[Guard, Mapping[str, int]]], symbols: Mapping[str, Symbol], positions: int | None
) -> None:
    """Raises UnsupportedError TM2030 for guards, each with sizes beyond it where the source runs, unless they
    hold for all texts that the model has ``positions`` for.
    """
    refused = [each for each in broken if positions is None or not _holds_within(each[0], positions)]
    if refused:
        raise _refused_ranges(refused, symbols)


def _holds_within(guard: Guard, positions: int) -> bool:
    """Whether a guard holds at sizes whose sum is at most the number of positions of the model: beyond them,
    as where a table of positions is enlarged, the model has no meaning.
    """
    symbols = guard.difference.symbols
    for name, symbol in symbols.items():
        for other in dict.fromkeys((0, 1, 2, positions // 2, positions - 1)):
            others = {each: other for each in symbols if each != name}
            numbers = np.arange(0, positions - sum(others.values()) + 1, symbol.unit)
            if guard.broken_at({**others, name: numbers}).any():
                return False
    return bool(symbols)


def _refused_ranges(
    broken: Sequence[tuple[Guard, Mapping[str, int]]], symbols: Mapping[str, Symbol]
) -> UnsupportedError:
    """Returns the error TM2030 that shows the strictest guard."""
    ordered = sorted(broken, key=lambda each: _excluded(each[0], symbols), reverse=True)
    guard, sizes = ordered[0]
    names = [name for name in guard.difference.symbols if name in symbols]
    at = ", ".join(f"{name} = {sizes[name]}" for name in names)
    fixed = ", ".join(f"{name} at {symbols[name].example * symbols[name].unit}" for name in names)
    first = _shown(guard)
    strictest = set(summarized([each for each, _ in broken]))  # of several lower bounds the largest
    others = [each for each, _ in ordered if strictest.issuperset(summarized([each]))]
    texts = dict.fromkeys(f"{_shown(each)}{_at(each)}" for each in others if _shown(each) != first)
    also = [("also", text) for text in texts]
    also[MOST_SHOWN:] = [("also", f"{len(also) - MOST_SHOWN} more conditions")] * (len(also) > MOST_SHOWN)
    return UnsupportedError(
        "TM2030",
        f"the file would be valid for {first} only: the model computes something else at {at}",
        source=guard.source if isinstance(guard.source, Source) else None,
        notes=[
            *([("note", f"the other side cannot be written: {guard.why}")] if guard.why else []),
            *also,
            (
                "help",
                "accept that with --accept-range (accept_range=True), which writes the range into the "
                f"file; leaving the size out of --dynamic fixes {fixed}",
            ),
        ],
    )


def _excluded(guard: Guard, symbols: Mapping[str, Symbol]) -> int:
    """Returns how many of the tried sizes do not satisfy a guard: the strictest one is shown first."""
    sizes = {name: symbol.example * symbol.unit for name, symbol in symbols.items()}
    names, numbers = [name for name in guard.difference.symbols if name in sizes], np.arange(1, MAX_COUNTED)
    return sum(int(guard.broken_at({**sizes, name: numbers}).sum()) for name in names)


def _at(guard: Guard) -> str:
    return f" ({guard.source})" if isinstance(guard.source, Source) and guard.source else ""


def _shown(guard: Guard) -> str:
    """Returns a condition as a reader writes it; a long one by the sizes in it."""
    text = infix(summarized([guard])[0])
    names = list(guard.difference.symbols)
    if len(text) > LONGEST:
        text = f"a relation of {' and '.join(names)} that is too long to show"
    found = [name for name, symbol in guard.difference.symbols.items() if symbol.from_data]
    return f"{text} ({', '.join(found)}: as many elements as the data select)" if found else text


def infix(text: str) -> str:
    """Returns a condition with the operators of Python in place of functions of floats.

    >>> infix("floor64(mul64(n,truediv64(32,max(h-w,0)+w))) >= 1")
    'floor(n * (32 / max(h, w))) >= 1'
    """
    text = _MAXIMUM.sub(r"max(\1, \2)", text)
    call = _CALL.search(text)
    if call is None:
        return text
    name, start = call[1].removesuffix("64"), call.end()
    depth, place, commas = 1, start, list[int]()
    while depth:
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        commas += [place] * (depth == 1 and text[place] == ",")
        place += 1
    edges = [start - 1, *commas, place - 1]
    parts = [infix(text[one + 1 : two]) for one, two in itertools.pairwise(edges)]
    operands = [f"({_bare(each)})" if _SUM.search(_outer(each)) else each for each in parts]
    made = f"({f' {SIGNS[name]} '.join(operands)})" if name in SIGNS else f"{name}({_bare(', '.join(parts))})"
    return f"{text[: call.start()]}{made}{infix(text[place:])}"


def _outer(text: str) -> str:
    """Returns a text without what is in parentheses, and without its first sign."""
    depths = np.cumsum([{"(": 1, ")": -1}.get(each, 0) for each in text])
    return "".join(each for each, depth in zip(text, depths, strict=True) if not depth).lstrip("-")


def _bare(text: str) -> str:
    """Returns an operand without parentheses around all of it."""
    depths = np.cumsum([{"(": 1, ")": -1}.get(each, 0) for each in text])
    return text[1:-1] if text.startswith("(") and depths[:-1].all() else text
