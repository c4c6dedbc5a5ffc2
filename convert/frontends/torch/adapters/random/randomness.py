"""Random functions: all of them computed from uniform and normal numbers in float32.

A conversion accepts them with ``allow_random`` only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import (
    DEFAULT,
    cast,
    constant,
    dtype_called,
    is_tensor,
    static_int,
    static_ints,
    varargs,
)
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.formulas import Term

ATEN, METHODS = Table(), Table()

Generator = Any  # torch.Generator, whose numbers no file can repeat

WITHOUT_FORMULA = "poisson binomial standard_gamma _standard_gamma _sample_dirichlet _fused_dropout"
TINY = float(np.finfo(np.float32).tiny)
BELOW_ONE = 1 - 2.0**-23  # times this, no part of a sum is rounded up to the whole
MOST_INTEGERS = 1 << 24  # that a float32 between 0 and 1 tells apart


def _declare_refusal(name: str) -> None:
    def adapter(g, *args, **kwargs):
        raise Refusal(
            f"{name} makes random numbers for which runtimes have no operator",
            "make them outside of the model, and pass them as an input",
        )

    ATEN.add(name)(adapter)


for _name in WITHOUT_FORMULA.split():
    _declare_refusal(_name)


def uniform_numbers(g, size):
    """Returns uniform numbers in [0, 1), in float32."""
    return g.call("tm::random_uniform", static_ints(g, size), g.stream())


def normal_numbers(g, size):
    """Returns numbers of the standard normal distribution, in float32."""
    return g.call("tm::random_normal", static_ints(g, size), g.stream())


def exponential_numbers(g, size):
    """Returns numbers of the exponential distribution with mean 1, in float32, all above 0."""
    drawn = Term(g, uniform_numbers(g, size))
    return (-(drawn.call("maximum", TINY).call("log"))).call("maximum", TINY).value


def chosen(g, size, probability):
    """Returns booleans that are true with a probability, a number or a tensor."""
    drawn = uniform_numbers(g, size)
    given = cast(g, probability, DEFAULT) if is_tensor(probability) else constant(g, probability, DEFAULT)
    return g.call("aten::lt", drawn, given)


# ---- rand, randn, and their relatives


def _dtype(dtype, default) -> np.dtype:
    made = np.dtype(default) if dtype is None else dtype_called(dtype)
    if made.kind == "c":
        raise Refusal("complex random numbers are not supported", "make two real ones, and torch.complex")
    return made


def _declare(name: str, numbers: Any) -> None:
    """``randn(2, 3)``, ``randn((2, 3))`` and ``randn_like(x)``."""

    def made(g, *size, dtype=None, **options):
        sizes = options["size"] if "size" in options else varargs(size)
        return cast(g, numbers(g, sizes), _dtype(dtype, DEFAULT))

    def made_like(g, input, *, dtype=None, **options):
        type_ = g.type(input)
        return cast(g, numbers(g, list(type_.shape)), _dtype(dtype, type_.dtype))

    ATEN.add(name)(made)
    ATEN.add(f"{name}_like")(made_like)


_declare("rand", uniform_numbers)
_declare("randn", normal_numbers)


def _integers(g, size, least, end, dtype):
    low, high = static_int(g, least), static_int(g, end)
    if not 0 < high - low <= MOST_INTEGERS:
        raise Refusal(
            f"random integers from {low} to {high} are more than a float32 tells apart",
            "make them outside of the model, and pass them as an input",
        )
    scaled = (Term(g, uniform_numbers(g, size)) * float(high - low)).call("floor")
    below = scaled.call("minimum", float(high - low - 1))  # a product may be rounded up
    return cast(g, g.call("aten::add", cast(g, below.value, np.int64), g.constant(low, np.int64)), dtype)


@ATEN.add("randint")
def randint(g, *bounds, size=None, low=0, high=None, dtype=None, **options):
    """``randint(high, size)`` and ``randint(low, high, size)``."""
    given = list(bounds)
    if size is None:
        size = given.pop()
    if high is None:
        high = given.pop()
    return _integers(g, size, given[0] if given else low, high, _dtype(dtype, np.int64))


@ATEN.add("randint_like")
def randint_like(g, input, *bounds, low=0, high=None, dtype=None, **options):
    """``randint_like(x, high)`` and ``randint_like(x, low, high)``."""
    given, type_ = list(bounds), g.type(input)
    if high is None:
        high = given.pop()
    return _integers(g, list(type_.shape), given[0] if given else low, high, _dtype(dtype, type_.dtype))


@ATEN.add("randperm")
def randperm(g, n, *, dtype=None, **options):
    """A permutation: the order of ``n`` uniform numbers."""
    drawn = uniform_numbers(g, [n])
    return cast(g, g.call("aten::sort", drawn, 0, False)[1], _dtype(dtype, np.int64))


# ---- of given parameters


def _parameter(g: Emitter, value: Any) -> Any:
    return cast(g, value, DEFAULT) if is_tensor(value) else constant(g, float(value), DEFAULT)


def _scaled(g, numbers, mean, scale):
    product = g.call("aten::mul", numbers, _parameter(g, scale))
    return g.call("aten::add", product, _parameter(g, mean))


@ATEN.add("normal")
def normal(g, mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, **options):
    """``normal(mean, std)`` of tensors or a tensor and a number; of two numbers with a size."""
    tensors = [each for each in (mean, std) if is_tensor(each)]
    if size is None:
        size = list(np.broadcast_shapes(*(g.type(each).shape for each in tensors)))
    default = g.type(tensors[0]).dtype if tensors else DEFAULT
    return cast(g, _scaled(g, normal_numbers(g, size), mean, std), _dtype(dtype, default))


@ATEN.add("bernoulli")
def bernoulli(g, input, p=None, *, generator=None):
    """Zeros and ones: of the probabilities ``input``, or all of the probability ``p``."""
    type_ = g.type(input)
    made = chosen(g, list(type_.shape), input if p is None else p)
    return cast(g, made, type_.dtype)


@ATEN.add("multinomial")
def multinomial(g, input, num_samples, replacement=False, *, generator=None):
    """Indices with probabilities in proportion to the weights in the rows of ``input``.

    Without replacement they are those of the largest log(weight) + Gumbel noise, which is what drawing one
    after the other gives. With replacement an index is the number of cumulative sums that are not above a
    uniform part of the whole sum.
    """
    weights, count = Term(g, cast(g, input, DEFAULT)), static_int(g, num_samples)
    shape = list(weights.type.shape)
    if not replacement:
        noise = Term(g, exponential_numbers(g, shape)).call("log")
        ranked = g.call("aten::topk", (weights.call("maximum", 0.0).call("log") - noise).value, count, -1)
        return cast(g, ranked[1], np.int64)
    sums = g.call("aten::cumsum", weights.value, -1)
    whole = g.call("aten::slice", sums, -1, shape[-1] - 1, shape[-1], 1)
    part = Term(g, uniform_numbers(g, [*shape[:-1], count])) * BELOW_ONE
    drawn = g.call("aten::mul", part.value, whole)
    passed = g.call(
        "aten::le",
        g.call("aten::reshape", sums, [*shape[:-1], 1, shape[-1]]),
        g.call("aten::reshape", drawn, [*shape[:-1], count, 1]),
    )
    return g.call("aten::sum", cast(g, passed, np.int64), [-1], False)


# ---- in-place forms


def _filling(function: Any) -> Any:
    """Returns the adapter that draws numbers of the shape and type of its operand."""

    def filled(g: Emitter, x, *args, generator: Generator = None, **more) -> Any:
        type_ = g.type(x)
        return cast(g, function(g, list(type_.shape), *args, **more), type_.dtype)

    return filled


@METHODS.add("normal_")
@ATEN.add("normal_functional")
@_filling
def normal_(g, size, mean=0.0, std=1.0):
    return _scaled(g, normal_numbers(g, size), mean, std)


@ATEN.add("uniform")
@_filling
def uniform(g, size, low=0.0, high=1.0, **words):
    """``from`` and ``to`` are torch's words for the bounds."""
    low, high = words.pop("from", low), words.pop("to", high)
    return _scaled(g, uniform_numbers(g, size), low, high - low)


@METHODS.add("bernoulli_")
@_filling
def bernoulli_(g, size, p=0.5):
    return chosen(g, size, p)


@ATEN.add("exponential")
@_filling
def exponential(g, size, lambd=1.0):
    return _scaled(g, exponential_numbers(g, size), 0.0, 1 / lambd)


@ATEN.add("geometric")
@_filling
def geometric(g, size, p):
    """The number of trials to the first success."""
    trials = Term(g, exponential_numbers(g, size)) * (-1 / np.log1p(-float(p)))
    return trials.call("ceil").call("maximum", 1.0).value


@ATEN.add("cauchy")
@_filling
def cauchy(g, size, median=0.0, sigma=1.0):
    angle = (Term(g, uniform_numbers(g, size)) - 0.5) * float(np.pi)
    return _scaled(g, angle.call("tan").value, median, sigma)


@ATEN.add("log_normal")
@_filling
def log_normal(g, size, mean=1.0, std=2.0):
    return g.call("aten::exp", _scaled(g, normal_numbers(g, size), mean, std))


@ATEN.add("random")
@_filling
def random(g, size, *bounds, **words):
    """``random_(to)`` and ``random_(from, to)``; without bounds the range is that of the type."""
    given = [*(words[name] for name in ("from", "to") if name in words), *bounds]
    if not given:
        raise Refusal("random_ without bounds has more numbers than a float32 tells apart", "pass bounds")
    low, high = (0, *given)[-2:]
    return _integers(g, size, low, high, np.int64)
