"""Complex numbers: their real and imaginary parts are tensors of their own."""

from __future__ import annotations

from typing import NoReturn

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import static_ints
from tmconvert.frontends.tflite.adapters.values import PREFIX
from tmconvert.ir.complex_values import Complex

OPERATORS = Table(PREFIX)


@OPERATORS.add("RFFT2D")
def rfft2d(g, x, fft_length):
    """Transforms the last two axes, of ``fft_length`` elements; the last to non-negative frequencies."""
    height, width = static_ints(g, fft_length, "the length of RFFT2D")
    real, imag = g.call("tm::fft", x, None, width, -1, onesided=True)
    if height != 1 or g.type(x).shape[-2] != 1:
        real, imag = g.call("tm::fft", real, imag, height, -2)
    return Complex(real, imag)


@OPERATORS.add("REAL")
def real(g, x):
    return _parts(x).real


@OPERATORS.add("IMAG")
def imag(g, x):
    return _parts(x).imag


@OPERATORS.add("COMPLEX_ABS")
def complex_abs(g, x):
    parts = _parts(x)
    squares = [g.call("aten::square", part) for part in (parts.real, parts.imag)]
    return g.call("aten::sqrt", g.call("aten::add", *squares))


def _parts(x) -> Complex:
    return x if isinstance(x, Complex) else _refuse()


def _refuse() -> NoReturn:
    raise Refusal("the operand is not complex")
