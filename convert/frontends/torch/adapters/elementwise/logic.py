"""Comparisons, logical and bitwise functions, and where."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import (
    cast,
    common_type,
    is_tensor,
    kind_of,
    promoted,
    reshaped,
)
from tmconvert.ir.emitter import Emitter

ATEN, METHODS = Table(), Table()


def _comparison(name: str, *names: str) -> None:
    def adapter(g, input, other):
        dtype = common_type(g, input, other)
        if dtype.kind == "b" and name not in ("eq", "ne"):
            dtype = np.dtype(np.uint8)
        return g.call(f"aten::{name}", *promoted(g, input, other, dtype=dtype))

    ATEN.add(name, f"__{name}__", *names)(adapter)


_comparison("eq")
_comparison("ne", "not_equal")
_comparison("lt", "less")
_comparison("le", "less_equal")
_comparison("gt", "greater")
_comparison("ge", "greater_equal")


@ATEN.add("isclose")
def isclose(g, input, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    return g.call("aten::isclose", *promoted(g, input, other), rtol, atol, equal_nan)


# ---- logic


def nonzero_mask(g, x):
    """Whether each element is non-zero, as bool; NaN counts as non-zero."""
    return cast(g, x, bool) if is_tensor(x) else g.constant(bool(x))


for _name in ("logical_and", "logical_or", "logical_xor"):

    def _logical(g: Emitter, input, other, _name: str = _name) -> Any:
        return g.call(f"aten::{_name}", nonzero_mask(g, input), nonzero_mask(g, other))

    ATEN[_name] = _logical


ATEN.add("logical_not")(lambda g, input: g.call("aten::logical_not", nonzero_mask(g, input)))


@ATEN.add("bitwise_not", "__invert__")
def bitwise_not(g, input):
    is_bool = g.type(input).dtype.kind == "b"
    return g.call("aten::logical_not" if is_bool else "aten::bitwise_not", input)


for _name in ("and", "or", "xor"):

    def _bitwise(g: Emitter, input, other, _name: str = _name) -> Any:
        x, y = promoted(g, input, other)
        return g.call(f"aten::{'logical' if g.type(x).dtype.kind == 'b' else 'bitwise'}_{_name}", x, y)

    ATEN.add(f"bitwise_{_name}", f"__{_name}__", f"__r{_name}__")(_bitwise)

for _name, _op in {"lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}.items():

    def _shift(g: Emitter, input, other, _op: str = _op) -> Any:
        return g.call(f"aten::{_op}", *promoted(g, input, other))

    def _reflected_shift(g: Emitter, input, other, _op: str = _op) -> Any:
        return g.call(f"aten::{_op}", *promoted(g, other, input))

    ATEN.add(_op, f"__{_name}__")(_shift)
    ATEN.add(f"__r{_name}__")(_reflected_shift)


# ---- questions about floats, whose answer is known for integers


def _everywhere(g: Emitter, x, value: bool) -> Any:
    return g.call("aten::expand", g.constant(value), list(g.type(x).shape))


for _name, _of_integers in {
    "isnan": False,
    "isinf": False,
    "isposinf": False,
    "isneginf": False,
    "isfinite": True,
}.items():

    def _question(g: Emitter, input, _name: str = _name, _answer: bool = _of_integers) -> Any:
        is_float = kind_of(g.type(input).dtype) >= 2
        return g.call(f"aten::{_name}", input) if is_float else _everywhere(g, input, _answer)

    ATEN[_name] = _question


ATEN.add("isreal")(lambda g, input: _everywhere(g, input, True))


@ATEN.add("signbit")
def signbit(g, input):
    dtype = g.type(input).dtype
    if kind_of(dtype) >= 2:
        return g.call("aten::signbit", input)
    if dtype.kind != "i":
        return _everywhere(g, input, False)
    return g.call("aten::lt", input, g.constant(0, dtype))


@ATEN.add("isin")
def isin(g, elements, test_elements, *, assume_unique=False, invert=False):
    """Compares each element with each test element, along a new last axis."""
    x, tests = promoted(g, elements, test_elements)
    shape = g.type(x).shape
    equal = g.call(
        "aten::eq", reshaped(g, x, [*shape, 1]), reshaped(g, tests, [*([1] * len(shape)), g.type(tests).size])
    )
    found = g.call("aten::any", equal, [len(shape)])
    return g.call("aten::logical_not", found) if invert else found


# ---- choices


@ATEN.add("where")
def where(g, condition, input=None, other=None):
    if input is None and other is None:
        places = cast(g, g.call("aten::nonzero", condition), np.int64)
        parts = g.call("aten::unbind", places, dim=1)
        return tuple(parts) if isinstance(parts, list) else (parts,)
    return g.call("aten::where", nonzero_mask(g, condition), *promoted(g, input, other))


METHODS.add("where")(lambda g, self, condition, other: where(g, condition, self, other))
