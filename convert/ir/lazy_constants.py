"""Lazy constants: computed when read, and in blocks of rows when written.

Scales are folded into weights. Computed at once, the scaled weights would be a second copy of the model in
memory, which is read only once. ``lowering/rounded_constants.py`` has other kinds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

# Bytes. Of smaller arrays the product is made at once.
_SMALL = 1 << 16


class Lazy(ABC):
    """A constant that is computed when it is read.

    It has an array's ``shape``, ``dtype``, ``size``, ``nbytes``, ``flags`` and ``ndim``: by default those of
    ``array``, from which it is computed element by element.
    """

    __slots__ = ()
    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def flags(self) -> Any:
        return self.array.flags

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @abstractmethod
    def viewed(self, view: Callable[[np.ndarray], np.ndarray]) -> Array:
        """Applies ``view`` to the result, such as a permutation or a slice of rows."""

    @abstractmethod
    def compute(self, out: np.ndarray) -> None:
        """Writes the result to ``out``, contiguous, of the same shape and dtype."""

    @abstractmethod
    def memory(self) -> Hashable:
        """Returns a key that is equal for the same elements computed from the same memory."""

    def computed(self) -> np.ndarray:
        """Returns the result as a contiguous array."""
        made = np.empty(self.shape, self.dtype)
        self.compute(made)
        return made


class Scaled(Lazy):
    """``array`` times ``factors``, each of its shape (as broadcast views), rounded once to its dtype."""

    __slots__ = ("_computed", "array", "factors")
    array: np.ndarray

    def __init__(self, array: np.ndarray, factors: tuple[np.ndarray, ...]) -> None:
        self.array = array
        self.factors = factors
        self._computed: np.ndarray | None = None

    def viewed(self, view: Callable[[np.ndarray], np.ndarray]) -> Array:
        """Applies ``view`` to the product."""
        if self._computed is None:
            array, *factors = map(view, (self.array, *self.factors))
            # a factor that had to be copied would be as large as the array
            if all(map(np.may_share_memory, factors, self.factors)):
                return Scaled(array, tuple(factors))
        return view(self.computed())

    def computed(self) -> np.ndarray:
        """Returns the product as a contiguous array, which is cached."""
        if self._computed is None:
            self._computed = super().computed()
        return self._computed

    def compute(self, out: np.ndarray) -> None:
        """Writes the product to ``out``."""
        array, (*others, last) = self.array, self.factors
        with np.errstate(all="ignore"):  # a channel that overflows here did so before
            for factor in others:
                array = np.multiply(array, factor, dtype=np.float64)
            if not others and not array.flags.c_contiguous:  # in the order of the result it is faster
                from tmconvert.ir.tiles import copy_elements

                copy_elements(out, array)
                array = out
            precise = {} if last.dtype == array.dtype else {"dtype": np.float64}
            np.multiply(array, last, out=out, casting="unsafe", **precise)  # cast in small pieces

    def memory(self) -> Hashable:
        return tuple(map(memory_of, (self.array, *self.factors)))


Array = np.ndarray | Lazy


def scaled(array: Array, factor: Any) -> Array:
    """Multiplies ``array`` by a broadcastable factor, as if in float64."""
    broadcast = np.broadcast_to(_narrow(np.asarray(factor), array.dtype), array.shape)
    array = array if isinstance(array, Scaled) else computed(array)
    if isinstance(array, Scaled):
        return Scaled(array.array, (*array.factors, broadcast))
    made = Scaled(array, (broadcast,))
    return made.computed() if array.nbytes <= _SMALL else made


def viewed(array: Array, view: Callable[[np.ndarray], np.ndarray]) -> Array:
    """Applies ``view`` to an array or a lazy constant."""
    return array.viewed(view) if isinstance(array, Lazy) else view(array)


def memory_of(array: Array) -> Hashable:
    """Returns a key that is equal for two views of the same elements in the same memory."""
    if isinstance(array, Lazy):
        return array.memory()
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def computed(array: Array) -> np.ndarray:
    """Returns an array unchanged, a lazy constant computed."""
    return array.computed() if isinstance(array, Lazy) else array


def _narrow(factor: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Casts the factor to ``dtype`` if this is exact, so that the product is rounded only once."""
    with np.errstate(all="ignore"):
        narrow = factor.astype(dtype)
    return narrow if np.array_equal(narrow, factor) else factor.astype(np.float64)
