"""Inserts casts around ONNX operators that do not support the element types of their operands.

An operator that takes no int32 at opset 7, say, computes in float64, which holds every int32, and its result
is cast back. The table in ``data/element_types.txt`` states which inputs and outputs share a type, and which
types are allowed; tools/make_onnx_types.py makes it from the standard and measurements of ONNX Runtime.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

from tmconvert.errors import Refusal
from tmconvert.targets.onnx.operators import spec

_TYPES = Path(__file__).parents[1] / "data/element_types.txt"
DTYPE_LETTERS = {
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "l",
    "uint8": "B",
    "bool": "?",
}
_NAMES = {letter: name for name, letter in DTYPE_LETTERS.items()}

# The types that hold every value of one, the cheapest first.
_INTEGERS = {
    "bool": "Bbhil",
    "uint8": "hil",
    "int8": "hil",
    "int16": "il",
    "int32": "l",
    "int64": "",
    "float16": "",
    "float32": "",
    "float64": "",
}
_FLOATS = {
    **dict.fromkeys(("bool", "uint8", "int8", "int16", "float16"), "fd"),
    **dict.fromkeys(("int32", "float32"), "d"),
    **dict.fromkeys(("int64", "float64"), ""),
}


class Form(NamedTuple):
    """The type constraints of an operator from an opset on.

    ``inputs`` and ``outputs`` are type variables, or names of types; the last one of each repeats.
    ``allowed`` and ``runs`` are letters by type variable: the types in the standard, and those with kernels
    in ONNX Runtime.
    """

    since: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    allowed: dict[str, str]
    runs: dict[str, str]


class Output(NamedTuple):
    """The type that an operator returns, and the one that the graph needs."""

    computed: str
    wanted: str


class Plan(NamedTuple):
    """The type of each input (None: unchanged) and output (None: not in the table)."""

    inputs: tuple[str | None, ...]
    outputs: tuple[Output | None, ...]

    def output(self, index: int) -> Output | None:
        return self.outputs[min(index, len(self.outputs) - 1)]


@functools.cache
def cast_plan(operator: str, dtypes: tuple[str | None, ...], opset: int) -> Plan | None:
    """Returns the types in which to compute ``operator`` on ``dtypes``; None for operators not in the table.

    Raises: Refusal when no type that the operator takes at ``opset`` gives the exact result.
    """
    forms = [form for form in _forms(operator) if form.since <= opset]
    if not forms:
        return None
    form = forms[-1]
    bound = _bound(form, dtypes)
    if not DTYPE_LETTERS.keys() >= set(bound.values()):
        return None  # of types that only casts take
    chosen: dict[str, str] = {}
    for variable, dtype in bound.items():
        found = _carrier(operator, form, variable, dtype)
        if found is None:
            raise Refusal(*_refusal(operator, variable, dtype, opset))
        chosen[variable] = found
    inputs = [
        None if dtype is None else chosen.get(variable, _fixed(form, variable) or dtype)
        for variable, dtype in zip(_repeated(form.inputs, len(dtypes)), dtypes, strict=True)
    ]
    outputs = [_output(form, variable, bound, chosen) for variable in form.outputs]
    return Plan(tuple(inputs), tuple(outputs))


def types_without_kernel(operator: str, dtypes: tuple[str | None, ...], opset: int) -> list[str]:
    """Returns types among ``dtypes`` that the standard allows, but a release of ONNX Runtime has no kernel
    for.

    >>> types_without_kernel("Conv", ("float64", "float64", None), 17)
    ['float64']
    """
    forms = [form for form in _forms(operator) if form.since <= opset]
    if not forms:
        return []
    bound = _bound(forms[-1], dtypes)
    runs = forms[-1].runs
    return [
        dtype
        for variable, dtype in bound.items()
        if dtype in DTYPE_LETTERS and DTYPE_LETTERS[dtype] not in runs[variable]
    ]


def _bound(form: Form, dtypes: tuple[str | None, ...]) -> dict[str, str]:
    """Binds each type variable to the type of its first input."""
    bound: dict[str, str] = {}
    for variable, dtype in zip(_repeated(form.inputs, len(dtypes)), dtypes, strict=True):
        if dtype is not None and variable in form.allowed:
            bound.setdefault(variable, dtype)
    return bound


def _repeated(variables: tuple[str, ...], count: int) -> list[str]:
    return [variables[min(i, len(variables) - 1)] for i in range(count)]


def _fixed(form: Form, variable: str) -> str | None:
    """Returns the only type that an input or output can have; None if there are several."""
    if variable in DTYPE_LETTERS:
        return variable
    allowed = form.allowed.get(variable, "")
    return _NAMES[allowed] if len(allowed) == 1 else None


def _output(form: Form, variable: str, bound: dict[str, str], chosen: dict[str, str]) -> Output | None:
    if variable in bound:
        return Output(chosen[variable], bound[variable])
    fixed = _fixed(form, variable)
    return Output(fixed, fixed) if fixed else None


def _carrier(operator: str, form: Form, variable: str, dtype: str) -> str | None:
    """Returns the type in which the operator computes: one with a kernel, or else its own if allowed."""
    candidates = DTYPE_LETTERS[dtype]
    if not spec(operator).saturates or variable not in form.outputs:
        candidates += _INTEGERS[dtype]
        if spec(operator).selects or dtype in ("float16", "float32"):
            candidates += _FLOATS[dtype]
    for letter in candidates:
        if letter in form.runs[variable]:
            return _NAMES[letter]
    return dtype if DTYPE_LETTERS[dtype] in form.allowed[variable] else None


def _refusal(operator: str, variable: str, dtype: str, opset: int) -> tuple[str, str]:
    later = [
        form.since
        for form in _forms(operator)
        if form.since > opset and variable in form.allowed and _carrier(operator, form, variable, dtype)
    ]
    if not later:
        return f"ONNX's {operator} does not support {dtype}", ""
    return f"ONNX's {operator} does not support {dtype} at opset {opset}", f"use --opset {later[0]} or later"


@functools.cache
def _lines() -> dict[str, list[str]]:
    """Returns the lines of the table by operator."""
    lines: dict[str, list[str]] = {}
    for line in _TYPES.read_text(encoding="utf-8").splitlines()[1:]:
        lines.setdefault(line.partition(" ")[0], []).append(line)
    return lines


@functools.cache
def _forms(operator: str) -> tuple[Form, ...]:
    """Returns the forms of an operator, the oldest first; none for operators not in the table."""
    return tuple(map(_form, _lines().get(operator, ())))


def _form(line: str) -> Form:
    """Parses a line such as ``Where 9 B,T,T>T B=? T=efdbhilB?/h?``: operator, opset, inputs, outputs, and the
    allowed types of each type variable; those after a slash have no kernel.
    """
    _, since, sides, *variables = line.split()
    inputs, outputs = (tuple(part.split(",")) for part in sides.split(">"))
    allowed, runs = {}, {}
    for text in variables:
        name, _, letters = text.partition("=")
        allowed[name], _, missing = letters.partition("/")
        runs[name] = "".join(letter for letter in allowed[name] if letter not in missing)
    return Form(int(since), inputs, outputs, allowed, runs)
