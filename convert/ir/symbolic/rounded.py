"""Sizes that a program computes in float64 and rounds: ``int(n * 0.29)`` is 28 for 100, not 29.

``rounded`` returns integer arithmetic where that gives the same sizes: because no step has a rounding error
that matters, or because all sizes of a declared range were tried. Elsewhere the size is an atom that computes
the steps in float64.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir.symbolic.clamps import maximum, minimum
from tmconvert.ir.symbolic.dims import Dim, Floor, Size, Symbol, of, symbols_of
from tmconvert.ir.symbolic.signs import signs

MOST = {1: 1 << 20, 2: 1 << 10}  # the largest size that is tried, by the number of symbols
FEW = 4  # sizes that show a difference
LARGEST = 1 << 31  # number of elements along an axis
DENOMINATOR = 1 << 20  # of the fraction that a float stands for
Value = Any  # a float, a size, or ``Steps``


class Steps(NamedTuple):
    """A computation in float64: the name of a function of two operands, or of the first of them alone, as
    ``float32``, which rounds it to that type.
    """

    name: str
    left: Value
    right: Value = 0

    def __str__(self) -> str:
        name = self.name if self.name == "float32" else f"{self.name}64"
        return f"{name}({','.join(map(str, self.operands))})"

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.left,) if self.name in UNARY else (self.left, self.right)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv")},
    "min": np.minimum,
    "max": np.maximum,
    "pow": np.power,
    "float32": lambda value, _: np.asarray(value, np.float32).astype(np.float64)[()],
    "sqrt": lambda value, _: np.sqrt(value),
    "log": lambda value, _: np.log(value),
}
UNARY = frozenset(("float32", "sqrt", "log"))
IRRATIONAL = frozenset(("pow", "sqrt", "log"))  # functions of sizes that are no fractions of them
ROUNDINGS: dict[str, Callable[[Any], Any]] = {"floor": np.floor, "ceil": np.ceil, "round": np.rint}


@dataclass(frozen=True)
class Rounded(Floor):
    """A size that is computed in float64; ``numerator`` and ``denominator`` are its exact counterpart."""

    is_float = True
    name: str
    steps: Steps

    @cached_property
    def text(self) -> str:
        return f"{self.name}64({self.steps})"

    def __str__(self) -> str:
        return self.text

    @property
    def is_never_negative(self) -> bool:
        """Whether only sizes and numbers that are not negative are multiplied, divided, added or compared."""
        return _is_never_negative(self.steps)

    @property
    def is_rational(self) -> bool:
        """Whether the size is a rounded fraction of sizes, but for rounding errors."""
        return not any(step.name in IRRATIONAL for step in _nested(self.steps))

    @property
    def integers(self) -> Size:
        """Returns the size in integer arithmetic, without rounding errors."""
        return _exactly(self.name, self.numerator, self.denominator)

    def differing_sizes(self) -> list[dict[str, int]]:
        return differing_sizes(self.name, self.steps)

    def at(self, value: Callable[[Symbol], Any], known: dict[int, Any] | None = None) -> Any:
        """Returns the size where symbols have these values: sizes, or arrays of integers."""
        return rounded(self.name, _at(self.steps, value, known))


def rounded(name: str, steps: Value) -> Any:
    """Returns floor, ceil or round of a computation of sizes, of numbers or of arrays.

    >>> rounded("floor", Steps("mul", 100, 0.29))
    28
    """
    if not symbols_of(_leaves(steps)):
        return _rounded(name, steps)
    atom = Rounded(*fraction(steps), name, steps)
    is_proven = rounds_like_integers(steps) or _rounds_to_fraction(name, steps)
    is_proven = is_proven or (name != "round" and _is_between_integers(steps, atom))
    return atom.integers if is_proven or (atom.is_rational and _is_tried(name, steps)) else of(atom)


def _is_tried(name: str, steps: Value) -> bool:
    """Whether integer arithmetic gives the same for all sizes of their declared ranges."""
    symbols = symbols_of(_leaves(steps)).values()
    most = MOST.get(len(symbols), 0)
    is_within = all(each.most is not None and each.most * each.unit <= most for each in symbols)
    return is_within and not differing_sizes(name, steps)


def fraction(value: Value) -> tuple[Size, Size]:
    """Returns a computation as the numerator and denominator that it has without rounding errors; those of
    the operand of a function that is not rational.
    """
    if isinstance(value, (int, Dim)):
        return value, 1
    if not isinstance(value, Steps):
        exact = Fraction(value).limit_denominator(DENOMINATOR)
        return exact.numerator, exact.denominator
    if value.name in UNARY:
        return fraction(value.left)
    (above, below), (over, under) = fraction(value.left), fraction(value.right)
    if value.name == "pow":
        return above * over, below * under
    if value.name == "mul":
        return above * over, below * under
    if value.name == "truediv":
        above, below = above * under, below * over
        return (-above, -below) if isinstance(below, int) and below < 0 else (above, below)
    left, right = above * under, over * below
    choices = {"min": minimum, "max": maximum}
    compute = choices.get(value.name) or FUNCTIONS[value.name]
    return compute(left, right), below * under


def _exactly(name: str, numerator: Size, denominator: Size) -> Size:
    if name == "round":
        return _half_to_even(numerator, denominator)
    up: Size = denominator - 1 if name == "ceil" else 0
    made: Size = (numerator + up) // denominator
    return made


def _half_to_even(numerator: Size, denominator: Size) -> Size:
    """Returns the nearest integer: up from 2k - 1/2 on to an even one, and beyond 2k + 1/2 to an odd one."""
    twice: Size = 2 * denominator
    if isinstance(denominator, int) and denominator % 2:
        return (2 * numerator + denominator) // twice
    to_even = (2 * numerator + denominator) // (2 * twice)
    return to_even + (2 * numerator + 3 * denominator - 1) // (2 * twice)


def rounds_like_integers(value: Value) -> bool:
    """Whether rounding errors never change a size that is rounded down or up.

    A quotient of exact integers is the nearest float: it is an integer only where the integers' quotient is
    (below 2**53). So is its sum with an exact number.
    """
    if _is_exact(value):
        return True
    if not isinstance(value, Steps):
        return False
    if value.name == "truediv":
        return _is_exact(value.left) and _is_exact(value.right)
    if value.name not in ("add", "sub"):
        return False
    pair = value.left, value.right
    return any(_is_exact(one) and rounds_like_integers(two) for one, two in (pair, pair[::-1]))


def _rounds_to_fraction(name: str, steps: Value) -> bool:
    """Whether a size times or divided by a float is rounded as if the float was the fraction that it stands
    for.

    Only where that gives an integer can the error matter: it is lost in rounding if it is at most half of
    that of rounding, and harmless if the integer is approached from its own side.
    """
    if not isinstance(steps, Steps) or steps.name not in ("mul", "truediv") or not _is_exact(steps.left):
        return False
    factor = steps.right
    if not isinstance(factor, float) or not factor > 0 or not math.isfinite(factor):
        return False
    exact = Fraction(factor).limit_denominator(DENOMINATOR)
    if float(exact) != factor:
        return False
    error = (Fraction(factor) / exact - 1) * (1 if steps.name == "mul" else -1)
    return abs(error) <= Fraction(1, 1 << 54) or (
        error > 0 if name == "floor" else name == "ceil" and error < 0
    )


def _is_between_integers(steps: Value, atom: Rounded) -> bool:
    """Whether a sum, product or quotient of positive numbers is farther from any integer than it is rounded.

    (n + 0.1) / 5 * 5 is n + 0.1: its numerator 50 n + 5 is no multiple of the denominator 50 for any n.
    """
    above, below = atom.numerator, atom.denominator
    if not (isinstance(above, Dim) and isinstance(below, int) and _has_small_error(steps)):
        return False
    factors = {monomial: factor for monomial, factor in above.terms if monomial}
    rest = next((factor for monomial, factor in above.terms if not monomial), 0)
    if not all(len(each) == 1 and isinstance(each[0], Symbol) for each in factors):
        return False
    largest = sum(map(abs, factors.values())) * LARGEST + abs(rest)
    is_close = largest * 2 * len(_nested(steps)) < 1 << 52
    return is_close and rest % math.gcd(below, *factors.values()) != 0


def _has_small_error(value: Value) -> bool:
    """Whether no step takes differences, and each float is the nearest one of the fraction it stands for."""
    if isinstance(value, Steps):
        return value.name in ("add", "mul", "truediv") and all(map(_has_small_error, value.operands))
    if isinstance(value, Dim):
        return _is_never_negative(value)
    return bool(value > 0 and float(Fraction(value).limit_denominator(DENOMINATOR)) == value)


def _is_exact(value: Value) -> bool:
    """Whether a computation has no rounding error, as with fractions of powers of 2."""
    if isinstance(value, (int, Dim)):
        return True
    if not isinstance(value, Steps):
        return math.isfinite(value) and Fraction(value).denominator <= DENOMINATOR
    divides = value.name == "truediv"
    if value.name in UNARY or value.name == "pow":
        return False
    if divides and not (isinstance(value.right, (int, float)) and math.frexp(value.right)[0] in (0.5, -0.5)):
        return False
    return _is_exact(value.left) and (divides or _is_exact(value.right))


@lru_cache(maxsize=64)
def differing_sizes(name: str, steps: Steps) -> list[dict[str, int]]:
    """Returns the least sizes, by symbol, at which integer arithmetic without rounding errors gives another.

    >>> differing_sizes("floor", Steps("mul", dim("n", 2), 0.29))[0]
    {'n': 100}
    """
    symbols = symbols_of(_leaves(steps))
    most = MOST.get(len(symbols), 0)
    axes = [np.arange(1, most // symbol.unit + 1) for symbol in symbols.values()]
    arrays = dict(zip(symbols, np.meshgrid(*axes, indexing="ij", sparse=True), strict=True))
    size = _exactly(name, *fraction(steps))
    with np.errstate(all="ignore"):
        floats = ROUNDINGS[name](_computed(_at(steps, lambda symbol: arrays[symbol.name])))
        integers = size.at(lambda symbol: arrays[symbol.name]) if isinstance(size, Dim) else size
        places = np.argwhere((floats != integers) & np.isfinite(floats))
    places = places[np.argsort(places.max(1, initial=0), kind="stable")[:FEW]]
    return [
        {
            name: int(number + 1) * symbol.unit
            for (name, symbol), number in zip(symbols.items(), place, strict=True)
        }
        for place in places
    ]


def _rounded(name: str, steps: Value) -> Any:
    with np.errstate(all="ignore"):
        made = ROUNDINGS[name](_computed(steps))
    if isinstance(made, np.ndarray):
        return made.astype(np.int64)
    if not math.isfinite(made):
        raise ZeroDivisionError("a size is divided by zero")
    return int(made)


def _computed(value: Value) -> Any:
    if isinstance(value, Steps):
        return FUNCTIONS[value.name](_computed(value.left), _computed(value.right))
    return np.asarray(value, np.float64)[()]


def _at(value: Value, sizes: Callable[[Symbol], Any], known: dict[int, Any] | None = None) -> Value:
    if isinstance(value, Steps):
        return Steps(value.name, _at(value.left, sizes, known), _at(value.right, sizes, known))
    return value.at(sizes, known) if isinstance(value, Dim) else value


def _is_never_negative(value: Value) -> bool:
    if not isinstance(value, Steps):
        return signs(value) <= {0, 1} if isinstance(value, Dim) else value >= 0
    if value.name == "log":  # that of a size of 1 or more, plus a half
        inner = value.left
        return isinstance(inner, Steps) and (inner.name, inner.right) == ("add", 0.5) and inner.left >= 1
    if value.name == "pow":
        return _is_never_negative(value.left)
    return value.name != "sub" and all(map(_is_never_negative, value.operands))


def _nested(value: Value) -> list[Steps]:
    return [value, *_nested(value.left), *_nested(value.right)] if isinstance(value, Steps) else []


def _leaves(value: Value) -> list[Any]:
    return [*_leaves(value.left), *_leaves(value.right)] if isinstance(value, Steps) else [value]
