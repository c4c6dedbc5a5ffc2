"""Functions of complex tensors that are made of sums, products, logarithms and exponential functions."""

from __future__ import annotations

import math
from typing import Any

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.elementwise.complex import COMPLEX as OF_COMPLEX
from tmconvert.frontends.torch.adapters.elementwise.complex import (
    abs_,
    angle,
    exp,
    is_complex,
    log,
    made,
    multilinear,
    polar,
    terms,
)
from tmconvert.frontends.torch.adapters.reductions.order import ATEN as REAL_ORDER
from tmconvert.frontends.torch.adapters.reductions.sums import ATEN as REAL
from tmconvert.ir.complex_values import Complex
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

COMPLEX = Table()
add, sub, mul, div = (OF_COMPLEX[name] for name in ("add", "sub", "mul", "div"))


# ---- sums of products


def _declare_added(name: str, *names: str, product: str) -> None:
    """Declares beta * input + alpha * product, with complex numbers as factors."""

    def adapter(g, input, *given, beta=1, alpha=1, **named):
        factors = *given, *(named[each] for each in names[len(given) :])
        multiplied = _multiplied(g, product, *factors)
        return add(g, input if beta == 1 else mul(g, input, beta), multiplied, alpha=alpha)

    COMPLEX.add(name)(adapter)


def _multiplied(g: Emitter, product: str, *factors) -> Any:
    def of_real(g, first, second):
        if product == "outer":
            return g.call("aten::outer", first, second)
        result = g.call("aten::matmul", first, second)
        return g.call("aten::sum", result, [0], False) if product == "sum of bmm" else result

    return multilinear(of_real)(g, *factors) if any(map(is_complex, factors)) else of_real(g, *factors)


_declare_added("addmm", "mat1", "mat2", product="mm")
_declare_added("addmv", "mat", "vec", product="mv")
_declare_added("addr", "vec1", "vec2", product="outer")
_declare_added("addbmm", "batch1", "batch2", product="sum of bmm")
_declare_added("baddbmm", "batch1", "batch2", product="bmm")


COMPLEX.add("lerp")(lambda g, input, end, weight: add(g, input, mul(g, weight, sub(g, end, input))))


@COMPLEX.add("addcmul")
def addcmul(g, input, tensor1, tensor2, *, value=1):
    return add(g, input, mul(g, tensor1, tensor2), alpha=value)


@COMPLEX.add("addcdiv")
def addcdiv(g, input, tensor1, tensor2, *, value=1):
    return add(g, input, div(g, tensor1, tensor2), alpha=value)


# ---- hyperbolic functions


@COMPLEX.add("tanh")
def tanh(g, input):
    """tanh(a + ib) by tanh(a) and tan(b), which do not overflow for large a."""
    ((a, b),) = terms(g, input)
    height, slope = a.tanh(), b.call("tan")
    size = height * height * slope * slope + 1
    return made(g, height * (slope * slope + 1) / size, slope * (-(height * height) + 1) / size)


@COMPLEX.add("tan")
def tan(g, input):
    rotated = tanh(g, mul(g, input, 1j))
    return mul(g, rotated, -1j)


@COMPLEX.add("sinh")
def sinh(g, input):
    ((a, b),) = terms(g, input)
    return made(g, a.sinh() * b.cos(), a.cosh() * b.call("sin"))


@COMPLEX.add("cosh")
def cosh(g, input):
    ((a, b),) = terms(g, input)
    return made(g, a.cosh() * b.cos(), a.sinh() * b.call("sin"))


@COMPLEX.add("sigmoid", "special_expit")
def sigmoid(g, input):
    """The logistic function as that of tanh, which does not overflow."""
    return add(g, mul(g, tanh(g, mul(g, input, 0.5)), 0.5), 0.5)


COMPLEX.add("silu")(lambda g, input, inplace=False: mul(g, input, sigmoid(g, input)))


# ---- logarithms and the exponential function


def _declare_log(name: str, base: float) -> None:
    def adapter(g: Emitter, input: Complex) -> Any:
        return mul(g, log(g, input), 1 / math.log(base))

    COMPLEX.add(name)(adapter)


_declare_log("log2", 2)
_declare_log("log10", 10)


COMPLEX.add("log1p", "special_log1p")(lambda g, input: log(g, add(g, input, 1)))
COMPLEX.add("exp2", "special_exp2")(lambda g, input: exp(g, mul(g, input, math.log(2))))
COMPLEX.add("rsqrt")(lambda g, input: OF_COMPLEX["reciprocal"](g, OF_COMPLEX["sqrt"](g, input)))


# ---- along an axis


for _name, _of_angles in {"prod": "sum", "cumprod": "cumsum"}.items():

    def _product(g: Emitter, input, *args, _names=(_name, _of_angles), **named) -> Any:
        """The product of the absolute values, at the sum of the angles."""
        pairs = zip(_names, (abs_(g, input), angle(g, input)), strict=True)
        return polar(g, *(REAL[name](g, part, *args, **named) for name, part in pairs))

    COMPLEX[_name] = _product


@COMPLEX.add("logcumsumexp")
def logcumsumexp(g, input, dim):
    """The logarithm of sums of exponentials, which are divided by those of the real parts: none overflows.

    Angles are those of ``angle``; torch returns some that are a turn further.
    """
    ((a, b),) = terms(g, input)

    def summed(logarithms: Term) -> Term:
        return Term(g, REAL_ORDER["logcumsumexp"](g, logarithms.value, dim))

    scale = summed(a)

    def part(wave: Term) -> Term:
        positive, negative = ((summed(a + each.clamp(0).log()) - scale).exp() for each in (wave, -wave))
        return positive - negative

    real, imag = part(b.cos()), part(b.sin())
    return made(g, scale + real.hypot(imag).log(), imag.atan2(real))
