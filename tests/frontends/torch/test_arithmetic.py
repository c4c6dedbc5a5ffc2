"""Elementwise arithmetic, comparisons, logic and conversions, with torch's promotion of types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tmconvert

from .harness import check

INTS = torch.tensor([[-7, -3, 0], [2, 5, 9]])
SMALL = torch.tensor([[1, -2, 3], [4, 2, -1]])  # no zero: a divisor
FLOATS = torch.tensor([[-2.5, -0.5, 0.0], [0.5, 1.5, 3.25]])
BOOLS = torch.tensor([[True, False, True], [False, False, True]])
BYTES = torch.tensor([[0, 3, 250], [17, 128, 255]], dtype=torch.uint8)

NUMBERS: list[Callable[..., Any]] = [
    lambda x: (x + 1, x * 2.5, 3 - x, x / 2, x - 1, 2 * x, 1 + x),
    lambda x: (torch.add(x, 2, alpha=3), torch.sub(x, x, alpha=2), torch.rsub(x, 4), x.add(x, alpha=-1)),
    lambda x: (x // 2, x % 3, x // -2, x % -3, torch.fmod(x, 3), torch.remainder(x, 2.5), x.fmod(-2)),
    lambda x: [torch.div(x, 2, rounding_mode=mode) for mode in (None, "floor", "trunc")],
    lambda x: (x**2, x**3, x**0, x**2.0, torch.pow(2, x.abs()), 2 ** x.float(), x.float_power(2)),
    lambda x: (torch.square(x), torch.abs(x), -x, +x, x.sign(), abs(x), x.sgn(), x.positive()),
    lambda x: (
        x.clamp(0),
        x.clamp(max=2),
        x.clip(-1.5, 2),
        torch.clamp(x, -1, 1),
        x.clamp_min(1),
        x.clamp_max(1),
    ),
    lambda x: (x == 2, x != 2, x < 2, x <= 2.5, x > 2, x >= 2, torch.less(x, 1), torch.greater_equal(x, x)),
    lambda x: (torch.logical_not(x), x.logical_and(x > 1), torch.logical_or(x, x), x.logical_xor(x < 0)),
    lambda x: (
        x.float(),
        x.double(),
        x.half(),
        x.int(),
        x.bool(),
        x.to(torch.float64),
        x.to("cpu"),
        x.long(),
    ),
    lambda x: (x.type(torch.int32), x.type("torch.DoubleTensor"), x.type_as(x.float()), x.to(x.double())),
    lambda x: (x.type(torch.FloatTensor), x.to(dtype=torch.int16), x.to("cpu", torch.float64), x.to(float)),
    lambda x: (
        torch.where(x > 0, x, 0),
        torch.where(x > 0, 1.0, 0.0),
        x.where(x > 0, -1.5),
        torch.where(x > 0, 1, x),
    ),
    lambda x: (torch.isnan(x), x.isinf(), torch.isfinite(x), x.signbit(), torch.isposinf(x), x.isneginf()),
    lambda x: (
        torch.maximum(x, x * 0),
        torch.minimum(x, x * 2),
        torch.fmax(x, x + 1),
        torch.fmin(x, x.float()),
    ),
    lambda x: (torch.nan_to_num(x), x.floor(), x.ceil(), x.trunc(), x.round(), torch.fix(x)),
    lambda x: (torch.isin(x, torch.tensor([2, 5])), torch.isin(x, torch.tensor([2]), invert=True)),
    lambda x: (torch.heaviside(x, x), torch.isclose(x, x + 1, atol=0.1), torch.addcmul(x, x, x, value=2)),
    lambda x: (
        x + torch.tensor(2),
        x * torch.tensor(2.0),
        x + torch.tensor([1.0, 2, 3], dtype=torch.float64),
    ),
    lambda x: (torch.add(input=x, other=1), torch.mul(x, other=2), torch.eq(x, other=1)),
]


@pytest.mark.parametrize("case", range(len(NUMBERS)))
@pytest.mark.parametrize("x", [INTS, INTS.int(), FLOATS], ids=["int64", "int32", "float32"])
def test_of_one_tensor_and_numbers(case: int, x: torch.Tensor) -> None:
    check(NUMBERS[case], x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (
            x.exp(),
            x.log(),
            x.sqrt(),
            x.rsqrt(),
            x.reciprocal(),
            1 / x,
            2.0 / x,
            x.sigmoid(),
            x.tanh(),
        ),
        lambda x: (
            x.sin(),
            x.cos(),
            x.tan(),
            x.asin(),
            torch.arccos(x),
            x.atan(),
            x.sinh(),
            x.cosh(),
            x.asinh(),
        ),
        lambda x: (
            x.exp2(),
            x.expm1(),
            x.log2(),
            x.log10(),
            x.log1p(),
            torch.deg2rad(x),
            x.rad2deg(),
            x.sinc(),
        ),
        lambda x: (
            x.erf(),
            torch.special.erfc(x),
            x.lgamma(),
            torch.special.expit(x),
            torch.special.log1p(x),
        ),
        lambda x: (
            x.atan2(x),
            torch.xlogy(x, x),
            torch.xlogy(2, x),
            torch.copysign(x, -1),
            torch.logaddexp(x.float(), x.float()),
        ),
        lambda x: (x.angle(), torch.real(x), x.conj(), torch.isreal(x), torch.ldexp(x, torch.tensor(2))),
    ],
)
@pytest.mark.parametrize("x", [INTS, BYTES, FLOATS, BOOLS], ids=["int64", "uint8", "float32", "bool"])
def test_functions_of_integers_are_floats(function: Callable[..., Any], x: torch.Tensor) -> None:
    check(function, x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x + y, x - y, x * y, x / y, x // y, x % y, torch.maximum(x, y), x.fmod(y)),
        lambda x, y: (x == y, x < y, x >= y, torch.where(x > y, x, y), torch.max(x, y), x.min(y)),
        lambda x, y: [torch.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc")],
        lambda x, y: (x.clamp(min=y), x.clamp(y, y + 1), torch.clip(x, max=y)),
        lambda x, y: (x.add_(1), x.mul_(y), x),
    ],
)
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (INTS, SMALL),
        (FLOATS, SMALL),
        (INTS.int(), SMALL.to(torch.int64)),
        (FLOATS.double(), SMALL.float()[0]),
        (FLOATS.half(), torch.tensor(2.0)),
        (INTS.to(torch.int8), torch.tensor(3)),
    ],
    ids=["ints", "float-int", "int32-int64", "float64-float32", "float16-scalar", "int8-scalar"],
)
def test_of_two_tensors(function: Callable[..., Any], x: torch.Tensor, y: torch.Tensor) -> None:
    check(function, x, y)


def test_logic_of_bools() -> None:
    check(lambda x, y: (x + y, x * y, x & y, x | y, x ^ y, ~x, x < y, x >= y, x == y), BOOLS, BOOLS.flip(0))
    check(
        lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), x.sign(), x.square(), x + 1, x * 2.0, x**2),
        BOOLS,
        ~BOOLS,
    )
    check(lambda x: (x & True, True | x, x ^ False, x.logical_not(), torch.bitwise_not(x)), BOOLS)


def test_bits_of_integers() -> None:
    function = lambda x, y: (x & y, x | y, x ^ y, ~x, x << 2, x >> 1, 1 << y, x & 3, 3 | x, x ^ 1)  # noqa: E731
    check(function, INTS, SMALL.abs(), opsets=(18,))
    check(lambda x: (x & 7, x | 1, x ^ 5, ~x, x >> 3), BYTES, opsets=(18,))


def test_integers_beyond_the_type_wrap_around() -> None:
    check(lambda x: (x + (-1), x * 300), BYTES)


def test_integer_powers() -> None:
    check(lambda x: (torch.pow(x, -x.abs()), x**2, 3 ** x.abs()), INTS)
    check(lambda x: (x.pow(-2), x**-1, x**0.5, 0.5**x), FLOATS.abs() + 1)


def test_truth_of_nan() -> None:
    x = torch.tensor([float("nan"), 0.0, -0.0, 1.0])
    check(lambda x: (x.bool(), x.logical_not(), torch.where(x.bool(), 1, 2), x.any(), x.all()), x)


def test_floats_to_integers_are_cut() -> None:
    check(lambda x: (x.int(), x.long(), x.to(torch.int8), x.short()), torch.tensor([-2.7, -0.5, 0.5, 2.7]))


def test_three_operands() -> None:
    x, y, z = FLOATS, FLOATS.flip(0), FLOATS + 1
    check(lambda x, y, z: (torch.lerp(x, y, 0.25), x.lerp(y, z), torch.addcmul(x, y, z, value=0.5)), x, y, z)
    check(lambda x, y, z: (torch.addcdiv(x, y, z, value=2), x.addcmul_(y, z)), x, y, z.abs() + 1)


def test_lerp_from_the_nearer_end() -> None:
    x, y = torch.tensor([1e8, 3.0, -1e9]), torch.tensor([1.0, 2.0, 1e-3])
    weights = torch.tensor([1.0, 1.0, 0.0])
    check(lambda x, y, w: (x.lerp(y, 1.0), x.lerp(y, 0.0), x.lerp(y, w)), x, y, weights, tolerance=0)


def test_places_in_line() -> None:
    def written(x: torch.Tensor) -> Any:
        x += 1
        x *= 2
        x.clamp_(min=0).sqrt_().neg_()
        x //= 2
        return x.masked_fill_(x > 5, 0.0), x

    check(written, FLOATS)


def test_round_to_places() -> None:
    x = torch.tensor([0.125, 2.5, -3.14159, 1234.5])
    check(lambda x: (x.round(decimals=2), torch.round(x, decimals=-2), x.round()), x)


def test_special_functions() -> None:
    x = torch.tensor([0.1, 0.5, 0.9, 0.25])
    check(lambda x: (torch.special.ndtri(x), x.logit(), torch.special.logit(x, eps=0.2), x.erfinv()), x)
    check(
        lambda x: (x.digamma(), x.polygamma(1), torch.polygamma(2, x), torch.special.multigammaln(x + 2, 2)),
        x,
    )
    check(lambda x: (torch.special.entr(x), torch.special.xlog1py(x, x), x.i0(), torch.special.i1e(x)), x)


def test_numbers_do_not_equal_none() -> None:
    check(lambda x: x + 1 if (x == None) is False else x, FLOATS)  # noqa: E711


def test_sums_of_exponentials_of_infinities() -> None:
    x = torch.tensor([-torch.inf, -torch.inf, 0.0, torch.inf, torch.inf, 1.0])
    y = torch.tensor([-torch.inf, 1.0, -torch.inf, torch.inf, -torch.inf, 2.0])
    check(lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y)), x, y, second=(y, x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.rsqrt(),
        lambda x: x.pow(-0.5).masked_fill(x == 0, 0),
        lambda x: (x.pow(-0.5) == float("inf"), (x + 1.5).rsqrt(), x.clamp(min=0.25).rsqrt()),
    ],
)
def test_inverse_root_of_zero_in_tflite(function: Callable[..., torch.Tensor]) -> None:
    """LiteRT's own operator makes NaN of zero; degrees of nodes without edges are zero."""
    check(function, torch.tensor([[0.0, 1, 2, 4], [3, 0, 0.5, 1]]), tflite=True)


# ---- the sign of zeros

ZEROS = torch.tensor([-0.0, 0.0, 1.0, -1.0, float("inf"), -3.0])
NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "x + 0": lambda x: 1.0 / (x + 0.0),
    "0 + x": lambda x: 1.0 / (0.0 + x),
    "x - -0": lambda x: 1.0 / (x - (-0.0)),
    "x + -0": lambda x: 1.0 / (x + (-0.0)),
    "x - 0": lambda x: 1.0 / (x - 0.0),
    "0 - x": lambda x: 1.0 / (0.0 - x),
    "x * 1": lambda x: 1.0 / (x * 1.0),
    "x / 1": lambda x: 1.0 / (x / 1.0),
    "x ** 1": lambda x: 1.0 / x**1,
    "twice": lambda x: 1.0 / (x + 0.0 + 0.0),
    "1 - 1": lambda x: 1.0 / (x + 1.0 - 1.0),
    "after a product": lambda x: 1.0 / (x * 2.0 + 0.0),
    "zeros": lambda x: 1.0 / (torch.zeros(6) + x),
    "views": lambda x: 1.0 / torch.cat([(x + 0.0).reshape(2, 3).t().flatten(), x]),
    "atan2": lambda x: torch.atan2(-x[:4] * 2 + 0.0, torch.tensor([-1.0, -1.0, 2.0, 3.0])),
    "copysign": lambda x: torch.copysign(torch.ones(6), x * 2 + 0.0),
    "pow": lambda x: (x * 2.0 + 0.0) ** -1,
    "odd power": lambda x: 1.0 / (x * 2.0 + 0.0) ** 3,
    "tensor of powers": lambda x: 1.0 / (x * 2.0 + 0.0) ** torch.tensor([1.0, 2, 3, 2, 1, 2]),
    "clamp": lambda x: 1.0 / x.clamp(min=float("-inf")),
}


@pytest.mark.parametrize("name", NEUTRAL)
def test_neutral_elements_keep_the_sign_of_zeros(name: str) -> None:
    check(NEUTRAL[name], ZEROS, tflite=name not in ("0 - x",))


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: torch.softmax(x * 2 + torch.zeros(6), 0), ["Mul", "Softmax"]),
        (lambda x: 1 / ((x * 2 + 0.0) ** 2 + 0.1), ["Mul", "Pow", "Add", "Div"]),
        (lambda x: 1 / (x * 2 + 0.0 + 0.1), ["Mul", "Add", "Div"]),
    ],
)
def test_zeros_are_not_added_where_no_sign_is_seen(function: Any, operators: list[str]) -> None:
    model = tmconvert.to_onnx(function, example_inputs=[torch.rand(6)]).model
    assert [node.op_type for node in model.graph.node] == operators


def test_neutral_elements_keep_the_element_type() -> None:
    for numbers in (torch.tensor([1, 2]), torch.tensor([True, False])):
        check(lambda x: (x + 0.0, x * 1.0, x / 1, x**1, x + 0, x * 1), numbers)
