"""Lazily scaled constants: computed when read, and in blocks of rows when written.

Scales are folded into weights. Computed at once, the scaled weights would be a second copy of the model in
memory, which is read only once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

# Bytes. Of smaller arrays the product is made at once.
_SMALL = 1 << 16


class Scaled:
    """``array`` times ``factors``, each of its shape (as broadcast views), rounded once to its dtype.

    It has an array's ``shape``, ``dtype``, ``size``, ``nbytes``, ``flags`` and ``ndim``.
    """

    __slots__ = ("_computed", "array", "factors")

    def __init__(self, array: np.ndarray, factors: tuple[np.ndarray, ...]) -> None:
        self.array = array
        self.factors = factors
        self._computed: np.ndarray | None = None

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
        return self.array.ndim

    @property
    def size(self) -> int:
        return self.array.size

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    def viewed(self, view: Callable[[np.ndarray], np.ndarray]) -> Array:
        """Applies ``view`` to the product, such as a permutation or a slice of rows."""
        if self._computed is None:
            array, *factors = map(view, (self.array, *self.factors))
            # a factor that had to be copied would be as large as the array
            if all(map(np.may_share_memory, factors, self.factors)):
                return Scaled(array, tuple(factors))
        return view(self.computed())

    def computed(self) -> np.ndarray:
        """Returns the product as a contiguous array, which is cached."""
        if self._computed is None:
            made = np.empty(self.shape, self.dtype)
            self.compute(made)
            self._computed = made
        return self._computed

    def compute(self, out: np.ndarray) -> None:
        """Writes the product to ``out``, contiguous, of the same shape and dtype."""
        array, (*others, last) = self.array, self.factors
        with np.errstate(all="ignore"):  # a channel that overflows here did so before
            for factor in others:
                array = np.multiply(array, factor, dtype=np.float64)
            if not others and not array.flags.c_contiguous:  # in the order of the result it is faster
                out[...] = array
                array = out
            precise = {} if last.dtype == array.dtype else {"dtype": np.float64}
            np.multiply(array, last, out=out, casting="unsafe", **precise)  # cast in small pieces


Array = np.ndarray | Scaled


def scaled(array: Array, factor: Any) -> Array:
    """Multiplies ``array`` by a broadcastable factor, as if in float64."""
    broadcast = np.broadcast_to(_narrow(np.asarray(factor), array.dtype), array.shape)
    if isinstance(array, Scaled):
        return Scaled(array.array, (*array.factors, broadcast))
    made = Scaled(array, (broadcast,))
    return made.computed() if array.nbytes <= _SMALL else made


def viewed(array: Array, view: Callable[[np.ndarray], np.ndarray]) -> Array:
    """Applies ``view`` to an array or a product."""
    return array.viewed(view) if isinstance(array, Scaled) else view(array)


def memory_of(array: Array) -> Hashable:
    """Returns a key that is equal for two views of the same elements in the same memory."""
    if isinstance(array, Scaled):
        return tuple(map(memory_of, (array.array, *array.factors)))
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def computed(array: Array) -> np.ndarray:
    """Returns an array unchanged, a product computed."""
    return array.computed() if isinstance(array, Scaled) else array


def _narrow(factor: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Casts the factor to ``dtype`` if this is exact, so that the product is rounded only once."""
    with np.errstate(all="ignore"):
        narrow = factor.astype(dtype)
    return narrow if np.array_equal(narrow, factor) else factor.astype(np.float64)
