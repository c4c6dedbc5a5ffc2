"""Fourier transforms of static sizes: matrix products whose constants grow with n, not with n².

A transform of n = p q elements is q transforms of p elements, a product with the roots of unity ("twiddle
factors"), and p transforms of q elements (Cooley and Tukey). That of a large prime is a circular convolution
(Bluestein). Complex tensors are [batch, 2, n] here, real ones [batch, 1, n].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.ir.emitter import Emitter

Array = np.ndarray
DENSE = 64  # elements of a transform that is one matrix; larger ones are factored
PER_ELEMENT = 16  # elements of a matrix, per element of the whole transform, for a size without factors


def angles(rows: int, columns: int, n: int) -> tuple[Array, Array]:
    """Cosines and sines of 2 pi i j / n, with i j reduced modulo n first.

    Those of quarter turns are exactly 0, 1 and -1, as in PyTorch, where an imaginary part of 0 is exact.
    """
    return _roots(np.outer(np.arange(rows), np.arange(columns)) % n, n)


def _roots(steps: Array, n: int) -> tuple[Array, Array]:
    """Cosines and sines of ``steps`` of n to a turn."""
    turns = steps * (2 * np.pi / n)
    cosines, sines = np.cos(turns), np.sin(turns)
    quarters, remainders = np.divmod(steps * 4, n)
    for table, values in ((cosines, (1.0, 0.0, -1.0, 0.0)), (sines, (0.0, 1.0, 0.0, -1.0))):
        table[remainders == 0] = np.array(values)[quarters[remainders == 0]]
    return cosines, sines


def blocks(
    rows: int, columns: int, n: int, inverse: bool, factor: float | Array
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Returns what multiplies real and imaginary input (row) for real and imaginary result (column)."""
    cosines, sines = (each * factor for each in angles(rows, columns, n))
    negative = 0.0 - sines  # so that no zero is negative
    return ((cosines, sines), (negative, cosines)) if inverse else ((cosines, negative), (sines, cosines))


def transform(
    g: Emitter, x: Any, n: int, count: int, *, inverse: bool, factor: float, is_real: bool = False
) -> Any:
    """Transforms the last axis of ``x`` [batch, parts, at most n], zero-padded to n elements.

    Returns the first ``count`` frequencies times ``factor``; only their real parts for ``is_real``.
    """
    return _Transforms(g, n, inverse).made(x, n, count, factor, is_real)


def has_exact_zeros(n: int) -> bool:
    """Whether frequencies 0 and n / 2 of real numbers have imaginary parts that are exactly 0."""
    return _Transforms(None, n, False).is_factored(n)


class _Transforms:
    """Emits the transforms of which one of ``n`` elements consists."""

    def __init__(self, g: Any, n: int, inverse: bool, dense: int = DENSE) -> None:
        self.g, self.n, self.inverse, self.dense = g, n, inverse, dense
        self.constants: dict[Any, Any] = {}

    def is_factored(self, n: int) -> bool:
        p = _divisor(n)
        return self._is_dense(n) or (p > 1 and self.is_factored(n // p))

    def _is_dense(self, n: int) -> bool:
        return n <= self.dense or (_divisor(n) == 1 and 4 * n * n <= PER_ELEMENT * self.n)

    def made(self, x: Any, n: int, count: int, factor: float, is_real: bool) -> Any:
        if self._is_dense(n):
            return self._dense(x, n, count, factor, is_real)
        p = _divisor(n)
        make = self._convolved if p == 1 else self._factored
        return make(x, n, count, factor, is_real)

    def _dense(self, x: Any, n: int, count: int, factor: float, is_real: bool) -> Any:
        batch, parts, used = self.g.type(x).shape
        matrix = blocks(used, count, n, self.inverse, factor)
        results = 1 if is_real else 2
        whole = self._constant(np.block([list(row[:results]) for row in matrix[:parts]]), x)
        product = self.g.call("aten::matmul", self._reshaped(x, [batch, parts * used]), whole)
        return self._reshaped(product, [batch, results, count])

    def _factored(self, x: Any, n: int, count: int, factor: float, is_real: bool) -> Any:
        """Element i q + j and frequency k + p l: over i by p, the twiddle factors of j k, over j by q."""
        p = _divisor(n)
        q = n // p
        batch, parts, used = self.g.type(x).shape
        rows = -(-used // q)
        if rows * q != used:
            x = self.g.call("aten::pad", x, [0, 0, 0, 0, 0, rows * q - used])
        x = self._permuted(x, [batch, parts, rows, q], [0, 3, 1, 2])
        x = self._dense(self._reshaped(x, [batch * q, parts, rows]), p, p, 1.0, False)
        cosines, sines = angles(q, p, n)
        sines = sines if self.inverse else 0.0 - sines
        x = self._reshaped(x, [batch, q, 2, p])
        x = self._multiplied(x, cosines[:, None], sines[:, None], axis=2)
        x = self._reshaped(self._permuted(x, None, [0, 3, 2, 1]), [batch * p, 2, q])
        x = self.made(x, q, -(-count // p), factor, is_real)
        _, parts, columns = self.g.type(x).shape
        x = self._permuted(x, [batch, p, parts, columns], [0, 2, 3, 1])
        x = self._reshaped(x, [batch, parts, columns * p])
        return x if columns * p == count else self.g.call("aten::slice", x, 2, 0, count)

    def _convolved(self, x: Any, n: int, count: int, factor: float, is_real: bool) -> Any:
        """Computes w_k sum(x_j w_j conj(w)_(k-j)) with w_k = exp(-i pi k² / n): 2 j k = j² + k² - (k-j)².

        The sum is a circular convolution, the inverse transform of a product of two transforms. The inverse
        is the transform of the conjugate, whose constants are those of the first transform.
        """
        _, parts, used = self.g.type(x).shape
        length = _smooth(used + count - 1)
        steps = np.arange(max(used, count, 1), dtype=np.int64) ** 2 % (2 * n)
        cosines, sines = _roots(steps, 2 * n)
        sines = sines if self.inverse else 0.0 - sines
        kernel = np.zeros(length, np.complex128)
        kernel[:count] = (cosines - 1j * sines)[:count]
        kernel[length - used + 1 :] = (cosines - 1j * sines)[1:used][::-1]
        spectrum = np.fft.fft(kernel) * (factor / length)
        first, second = cosines[:used], sines[:used]
        if parts == 1:
            x = self.g.call("aten::mul", x, self._constant(np.stack([first, second]), x))
        else:
            x = self._multiplied(x, first, second, axis=1)
        inner = _Transforms(self.g, length, False, dense=DENSE // 2)
        x = inner.made(x, length, length, 1.0, False)
        x = self._multiplied(x, spectrum.real, 0.0 - spectrum.imag, axis=1, conjugated=True)
        x = inner.made(x, length, count, 1.0, False)
        x = self._multiplied(x, cosines[:count], sines[:count], axis=1, conjugated=True)
        return self.g.call("aten::slice", x, 1, 0, 1) if is_real else x

    def _multiplied(
        self, x: Any, cosines: Array, sines: Array, *, axis: int, conjugated: bool = False
    ) -> Any:
        """Multiplies complex ``x``, or its conjugate, whose parts are on ``axis``, by cosines + i sines."""
        g = self.g
        real, imag = (g.call("aten::slice", x, axis, part, part + 1) for part in (0, 1))
        cosine, sine = self._constant(cosines, x), self._constant(sines, x)
        pairs = ((real, cosine), (imag, sine), (real, sine), (imag, cosine))
        products = [g.call("aten::mul", *pair) for pair in pairs]
        ops = ("aten::add", "aten::sub") if conjugated else ("aten::sub", "aten::add")
        return g.call("aten::cat", [g.call(ops[0], *products[:2]), g.call(ops[1], *products[2:])], axis)

    def _permuted(self, x: Any, shape: list[Any] | None, order: list[int]) -> Any:
        return self.g.call("aten::permute", x if shape is None else self._reshaped(x, shape), order)

    def _reshaped(self, x: Any, shape: list[Any]) -> Any:
        return self.g.call("aten::reshape", x, shape)

    def _constant(self, values: Array, x: Any) -> Any:
        """Returns a constant; equal ones are one node."""
        array = values.astype(self.g.type(x).dtype)
        key = (array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = self.g.constant(array)
        return self.constants[key]


def _divisor(n: int) -> int:
    """Returns the largest divisor up to the root of n; its quotient is even if n is: zeros stay exact."""
    return next(p for p in range(math.isqrt(n), 0, -1) if n % p == 0 and (n % 2 or n // p % 2 == 0))


def _smooth(least: int) -> int:
    """Returns the next number of 2 and one factor of 3 or 5 at most."""
    return min(m << max(0, math.ceil(math.log2(least / m))) for m in (1, 3, 5))
