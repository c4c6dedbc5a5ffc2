"""Arithmetic on symbolic sizes, as ``frontends/torch/tracing/sizes/integers.py`` records it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import SizeFloat
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.clamps import maximum, minimum
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.ir.symbolic.rounded import Steps, fraction, rounded
from tmconvert.ir.symbolic.signs import signs

FUNCTIONS = Table()
TENSORS = {"add": "aten::add", "sub": "aten::sub", "mul": "aten::mul", "truediv": "aten::div"}


class Quotient(SizeFloat):
    """A float that Python computes of symbolic sizes in some ``steps``; where it is rounded it is a size.

    It has no rounding error as ``numerator`` divided by ``denominator``.
    """

    def __init__(self, steps: Any) -> None:
        self.steps = steps
        self.numerator, self.denominator = fraction(steps)

    def as_tensor(self, g: Emitter) -> Any:
        over, under = (g.constant(each, np.float32) for each in (self.numerator, self.denominator))
        return g.call("aten::div", over, under)


class FunctionOfSizes(SizeFloat):
    """A root or another function of sizes, or a number computed of one: a float32 tensor of rank 0.

    ``steps`` compute it in float64, where it is rounded to a size.
    """

    def __init__(self, tensor: Any, steps: Any) -> None:
        self.tensor, self.steps = tensor, steps

    def as_tensor(self, g: Emitter) -> Any:
        return self.tensor


def as_quotient(number: Any) -> Quotient:
    """Returns a size or a number as a quotient of integers."""
    if isinstance(number, FunctionOfSizes):
        raise Refusal(
            "a function of a size is used where an exact fraction is needed", "keep this size static"
        )
    return number if isinstance(number, Quotient) else Quotient(number)


def _steps(name: str, *operands: Any) -> Steps:
    return Steps(name, *(each.steps if isinstance(each, SizeFloat) else each for each in operands))


def _operand(g, number):
    """Returns a size or a number as a float32 tensor of rank 0."""
    if isinstance(number, SizeFloat):
        return number.as_tensor(g)
    return g.constant(number, np.float32)


def _calculation(name: str) -> None:
    compute = getattr(operator, name)

    def adapter(g, left, right):
        if name in TENSORS and any(isinstance(x, FunctionOfSizes) for x in (left, right)):
            made = g.call(TENSORS[name], _operand(g, left), _operand(g, right))
            return FunctionOfSizes(made, _steps(name, left, right))
        is_float = name == "truediv" or any(isinstance(x, (float, Quotient)) for x in (left, right))
        if name in TENSORS and is_float and any(isinstance(x, (Dim, Quotient)) for x in (left, right)):
            return Quotient(_steps(name, left, right))
        return compute(left, right)

    FUNCTIONS.add(f"operator.{name}")(adapter)


for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
    _calculation(_name)


def _rounding(compute: Callable[[Any], Any]) -> None:
    name = compute.__name__

    def adapter(g, value):
        return rounded(name, value.steps) if isinstance(value, SizeFloat) else compute(value)

    FUNCTIONS.add(f"{compute.__module__}.{name}")(adapter)


for _function_of_python in (math.floor, math.ceil, round):
    _rounding(_function_of_python)


@FUNCTIONS.add("operator.pow")
def power(g, base, exponent):
    if not any(isinstance(each, (Dim, SizeFloat)) for each in (base, exponent)):
        return operator.pow(base, exponent)
    if isinstance(exponent, Dim):
        return rounded("floor", Steps("pow", float(base), exponent))
    made = g.call("aten::pow", _operand(g, base), _operand(g, exponent))
    is_root = not isinstance(exponent, SizeFloat) and exponent == 0.5
    return FunctionOfSizes(made, _steps("sqrt", base) if is_root else _steps("pow", base, exponent))


@FUNCTIONS.add("numpy.float32")
def single(g, value):
    if isinstance(value, FunctionOfSizes):
        return FunctionOfSizes(value.tensor, _steps("float32", value))
    return (
        Quotient(_steps("float32", value)) if isinstance(value, (Dim, Quotient)) else float(np.float32(value))
    )


def _function(name: str) -> None:
    plain = getattr(math, name)

    def adapter(g, value):
        if not isinstance(value, (Dim, SizeFloat)):
            return plain(value)
        return FunctionOfSizes(g.call(f"aten::{name}", _operand(g, value)), _steps(name, value))

    FUNCTIONS.add(f"math.{name}")(adapter)


for _name in ("sqrt", "exp", "log", "log2", "log10"):
    _function(_name)


def _choice(name: str, of_sizes: Callable[[Any, Any], Any]) -> None:
    def adapter(g, left, right):
        is_symbolic = any(isinstance(x, (Dim, SizeFloat)) for x in (left, right))
        if is_symbolic and any(isinstance(x, (float, SizeFloat)) for x in (left, right)):
            return Quotient(_steps(name, left, right))
        return of_sizes(left, right)

    FUNCTIONS.add(f"builtins.{name}")(adapter)


_choice("min", minimum)
_choice("max", maximum)


# by comparison, the signs of left - right for which it holds
SIGNS = {"eq": {0}, "ne": {-1, 1}, "lt": {-1}, "le": {-1, 0}, "gt": {1}, "ge": {0, 1}}


def _note_unequal(name: str, left: Any, right: Any, outcome: bool) -> None:
    """Notes a guard where the module went on because two sizes differ, which they do not at all sizes."""
    if (name, outcome) not in (("eq", False), ("ne", True)):
        return
    left, right = (int(x) if isinstance(x, float) and x.is_integer() else x for x in (left, right))
    difference = left - right if all(isinstance(x, (int, Dim)) for x in (left, right)) else 0
    if isinstance(difference, Dim) and 0 in signs(difference):
        current_journal().take(difference, SIGNS["ne"])


def _take_equal(left: Any, right: Any) -> bool:
    """Restricts the sizes to those that are equal, as in the example; whether they are not equal anyway."""
    difference = left - right if all(isinstance(x, (int, Dim)) for x in (left, right)) else 0
    if not isinstance(difference, Dim) or signs(difference) == {0} or difference.example != 0:
        return False
    current_journal().take_equal(difference)
    return True


def _note_ones(name: str, left: Any, right: Any, outcome: bool) -> None:
    """Notes a guard of several sizes that does not hold where all of them are 1.

    Signs of sizes hold from 2 on; the tracer tries 1 for each size by itself.
    """
    difference = left - right if all(isinstance(x, (int, Dim)) for x in (left, right)) else 0
    if not isinstance(difference, Dim) or len(difference.symbols) < 2:
        return
    wanted = SIGNS[name] if outcome else {-1, 0, 1} - SIGNS[name]
    least = int(difference.at(lambda _: 1))
    if (least > 0) - (least < 0) not in wanted:
        current_journal().take(difference, wanted)


@FUNCTIONS.add("tm.assume")
def assume(g, name, left, right, outcome, why=""):
    """A guard: a comparison of sizes that the trace depends on; ``why`` the other side is not in the file.

    Raises Refusal for sizes with another outcome. A comparison of data-dependent sizes takes the outcome of
    the example, which is reported, unless the sizes differ by a constant.
    """
    current_journal().why = why
    is_quotient = isinstance(left, SizeFloat) or isinstance(right, SizeFloat)
    if data_symbols((left, right)) and not is_quotient:
        difference = left - right
        if isinstance(difference, Dim):
            signs = SIGNS[name] if outcome else {-1, 0, 1} - SIGNS[name]
            current_journal().take(difference, signs)
            return ()
    if is_quotient:
        raise Refusal("a quotient of sizes decides which branch the module takes", "keep this size static")
    if (name, outcome) in (("eq", True), ("ne", False)) and _take_equal(left, right):
        return ()
    _note_unequal(name, left, right, outcome)
    if bool(getattr(operator, name)(left, right)) != outcome:
        raise Refusal(
            f"at this size the module takes another branch than in the trace ({left} {name} {right})",
            "trace it with example inputs of this size",
        )
    _note_ones(name, left, right, outcome)
    return ()
