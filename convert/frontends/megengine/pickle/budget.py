"""Limits the memory and time that loading a file may use.

A pickle refers to one value from many places, so ``t = (t, t)`` sixty times over is a file of a few hundred
bytes and a tree of 2**60 leaves. All values that the loader visits are counted here.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.frontends.megengine.pickle.allow_list import is_users_own
from tmconvert.frontends.megengine.pickle.builders import ARGUMENTS, COMP_NODE
from tmconvert.frontends.megengine.pickle.stand_ins import GlobalRef, Instance, Opaque, Tensor

OVER_LIMIT = "TM1006"
DAMAGED = "TM1007"
FREE_STEPS = 100_000
STEPS_PER_BYTE = 2
MAX_DEPTH = 50
MAX_TEXT = 1000
CHARACTERS_PER_STEP = 8
# What a print of an array shows before NumPy abbreviates.
MAX_SHOWN = 1000


class Budget:
    """The number of values that may still be visited for one file: a fixed number plus some per byte."""

    def __init__(self, file_size: int) -> None:
        self._left = FREE_STEPS + STEPS_PER_BYTE * file_size
        self._open: set[int] = set()
        self._opaque: dict[int, Opaque] = {}
        self._numbers = itertools.count(1)

    def spend(self, steps: int) -> None:
        """Counts visited values. Raises LoadError TM1006 for more than a valid file of this size has."""
        self._left -= steps
        if self._left < 0:
            raise LoadError(OVER_LIMIT, "the file repeats the same values again and again")

    def constant(self, value: object, depth: int = 0) -> Any:
        """Returns ``value`` as a tree of limited size.

        Ellipsis stands for its class, an array for a tensor, bytes for a view of the file, text for a
        device, an Opaque for an object of the user's class.
        """
        self.spend(1)
        if depth > MAX_DEPTH:
            raise LoadError(OVER_LIMIT, f"values are nested more than {MAX_DEPTH} deep")
        if isinstance(value, (tuple, list)):
            return type(value)([self.constant(item, depth + 1) for item in value])
        if isinstance(value, dict):
            return {text_key(key): self.constant(item, depth + 1) for key, item in value.items()}
        if isinstance(value, Instance):
            return self._record(value, depth)
        if isinstance(value, GlobalRef) and value.qualified_name == "builtins.ellipsis":
            return Ellipsis
        if isinstance(value, Tensor):
            value = value.array
        self.spend(_weight(value))
        if isinstance(value, memoryview):
            return bytes(value)
        return native(value) if isinstance(value, np.ndarray) else value

    def _record(self, value: Instance, depth: int) -> Any:
        """Returns a record of plain values; in a recursive record the inner reference has no state."""
        if value.class_name == COMP_NODE:
            return text(value.state.get("device"), "a device")
        if is_users_own(value.reference):
            return self._opaque_of(value, depth)
        if id(value) in self._open:
            return Instance(value.reference, {})
        self._open.add(id(value))
        try:
            state = {name: self.constant(item, depth + 1) for name, item in value.state.items()}
        finally:
            self._open.discard(id(value))
        return Instance(value.reference, state)

    def _opaque_of(self, value: Instance, depth: int) -> Opaque:
        """Returns the same Opaque for the same object, so that different constants of calls stay distinct."""
        known = self._opaque.get(id(value))
        if known is None:
            made_with = value.state.get(ARGUMENTS, ())
            is_plain = all(isinstance(item, (bool, int, float, str)) for item in made_with)
            arguments = self.constant(made_with, depth + 1) if is_plain else ()
            number = 0 if arguments else next(self._numbers)
            known = self._opaque[id(value)] = Opaque(value.reference, arguments, number)
        return known


def _weight(value: object) -> int:
    """Returns the printed size of a leaf."""
    if isinstance(value, (str, memoryview)):
        return len(value) // CHARACTERS_PER_STEP
    if isinstance(value, np.ndarray):
        return min(value.size, MAX_SHOWN)
    return len(value) if isinstance(value, (set, frozenset)) else 0


def native(array: np.ndarray) -> np.ndarray:
    """Returns the array in native byte order."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def text(value: object, what: str) -> str:
    """Returns a name from the file; empty for None. Raises LoadError for anything but a short text."""
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise LoadError(DAMAGED, f"{what} is {kind(value)}")
    return value


def number(value: object, what: str) -> int:
    """Returns an id from the file; 0 for None."""
    if value is None:
        return 0
    if not isinstance(value, int):
        raise LoadError(DAMAGED, f"{what} is {kind(value)}")
    return int(value)


def text_key(key: object) -> Any:
    """Returns a dict key, limited in length so that it can be part of names."""
    if isinstance(key, str):
        return text(key, "a key")
    if isinstance(key, (int, float, GlobalRef)) or key is None:
        return key
    raise LoadError(DAMAGED, f"a key is {kind(key)}")


def kind(value: object) -> str:
    """Describes a value for messages by its type, since its ``repr`` may be unlimited."""
    return f"a text of {len(value)} characters" if isinstance(value, str) else f"a {type(value).__name__}"
