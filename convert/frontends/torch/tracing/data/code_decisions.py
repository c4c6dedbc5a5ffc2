"""Analyses byte code: whether the behaviour of a function may depend on a plain number."""

from __future__ import annotations

import builtins
import dis
import itertools
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType

# functions after which a number decides, though the code has no comparison and no jump
_DECIDING = frozenset(
    ("isclose", "get", "index", "count", "startswith", "endswith", "match", "is_", "is_not", "is_integer")
)
# functions of Python that make no decision by the value of a number
_NEUTRAL = frozenset(
    ("len", "range", "tuple", "list", "zip", "enumerate", "super", "print", "isinstance", "map", "reversed")
)
_TYPES = frozenset(("type", "__class__", "id", "is_", "is_not", "singledispatch"))
# by which numbers that are small are computed from large ones; the size that becomes ``k``
GROWTHS: dict[str, Callable[[int], int]] = {
    "FORMAT_VALUE": lambda k: 10 ** (k - 1),  # as many digits as the text of a number has
    "str": lambda k: 10 ** (k - 1),
    "bit_length": lambda k: 2 ** (k - 1),
    "isqrt": lambda k: k * k,
    "log": lambda k: 2**k,
    "log2": lambda k: 2**k,
    "sqrt": lambda k: k * k,
}
_FORMATS = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")  # of f-strings, by the release of Python
_OPERATIONS = ("COMPARE_OP", "CONTAINS_OP", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "UNARY_NOT", "UNARY_INVERT")
_PLAIN_MODULES = sys.stdlib_module_names - {"__future__", "typing", "collections", "dataclasses", "warnings"}


@lru_cache(maxsize=1024)
def decides(code: CodeType) -> bool:
    """Whether the code has a comparison, a jump, a computed index, or a call of a function of Python.

    Tests for None, and numbers that are only arguments of tensor functions, do not count.
    """
    if not _DECIDING.isdisjoint(code.co_names):
        return True
    names = (name for name in code.co_names if name not in _NEUTRAL)
    if any(name in vars(builtins) or name in _PLAIN_MODULES for name in names):
        return True
    previous = None
    for instruction in dis.get_instructions(code):
        operation = instruction.opname
        if operation in _OPERATIONS or (operation == "IS_OP" and not _is_none(previous)):
            return True
        if "JUMP_IF" in operation and "NONE" not in operation and not _tests_for_none(previous):
            return True
        if "SUBSCR" in operation and previous is not None and previous.opname != "LOAD_CONST":
            return True
        previous = instruction
    return False


def _is_none(instruction: dis.Instruction | None) -> bool:
    return instruction is not None and instruction.opname == "LOAD_CONST" and instruction.argval is None


def _tests_for_none(instruction: dis.Instruction | None) -> bool:
    return instruction is not None and instruction.opname == "IS_OP"  # others are noticed before


@lru_cache(maxsize=1024)
def growths(code: CodeType) -> frozenset[str]:
    """Returns the functions in the code by which small numbers are computed of large ones."""
    found = GROWTHS.keys() & set(code.co_names)
    formats = any(instruction.opname in _FORMATS for instruction in dis.get_instructions(code))
    return frozenset(found | ({"FORMAT_VALUE"} if formats else set()))


@lru_cache(maxsize=1024)
def tells_types(code: CodeType) -> bool:
    """Whether the code tests types or identities, which differ between a traced size and an int."""
    if not _TYPES.isdisjoint(code.co_names):
        return True
    previous = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IS_OP" and not _is_none(previous):
            return True
        previous = instruction
    return False


@lru_cache(maxsize=1024)
def compared_constants(code: CodeType) -> tuple[object, ...]:
    """Returns the constants that the code compares with something."""
    instructions = list(dis.get_instructions(code))
    return tuple(
        constant.argval
        for constant, each in itertools.pairwise(instructions)
        if each.opname in ("COMPARE_OP", "CONTAINS_OP", "IS_OP") and constant.opname == "LOAD_CONST"
    )
