"""Bessel functions, zeta, incomplete gamma functions and orthogonal polynomials, against torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.symbolics.ops.special.orthogonal_polynomials import TABLE
from tmconvert.symbolics.registry import catalogue

from .harness import check, run_onnx

INF, NAN = float("inf"), float("nan")
UNARY = [
    *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "airy_ai", "modified_bessel_k0"),
    *("modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
]
POLYNOMIALS = list(TABLE)
BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
LINE = torch.cat(
    [
        torch.linspace(-12, 12, 481),
        torch.logspace(-8, 4, 100),
        -torch.logspace(-8, 4, 100),
        torch.tensor([0, -0.0, INF, -INF, NAN, 1e-40, 1e6, 1e20, 1e38, 5, 2.09, -2.09, 2, 103.892, 104, 90]),
    ]
)
HALF_LINE = torch.cat(
    [
        torch.linspace(0, 30, 31),
        torch.logspace(-6, 5, 30),
        torch.tensor([INF, NAN, -1, 199, 201, 999, 1001, 1e10, 1e20]),
    ]
)
PLACES = torch.cat(
    [torch.linspace(-3, 3, 25), torch.linspace(-1, 1, 15), torch.tensor([0, -0.0, 10, -10, 100, 1e-8, INF])]
)
DEGREES = torch.tensor([-3, -1, -0.5, 0, 0.7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 20, 31, 130, INF, NAN, 1e30])


def compare(
    name: str, function: Callable[..., Any], *given: torch.Tensor, rtol: float, atol: float = 0
) -> None:
    """The reference kernel, element by element."""
    result = catalogue()[f"aten::{name}"].evaluate([tensor.numpy() for tensor in given], {})
    expected = function(*given).numpy()
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)


def special(name: str) -> Callable[..., Any]:
    return getattr(torch.special, name)


@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str, dtype: torch.dtype) -> None:
    x = LINE.to(dtype)
    rtol, atol = (1e-5, 2e-7) if dtype == torch.float32 else (1e-12, 1e-13)
    compare(f"special_{name}", special(name), x, rtol=rtol, atol=atol)
    check(special(name), x[x.isfinite() & (x.abs() > 0.01) & (x.abs() < 1000)])
    check(special(name), x)


@BOTH
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma(name: str, dtype: torch.dtype) -> None:
    function = getattr(torch, name)
    a = HALF_LINE.to(dtype)[:, None]
    near = a * torch.linspace(0.5, 1.5, 21).to(dtype)
    atol = 2e-6 if dtype == torch.float32 else 1e-9
    for x in (a.T, near):
        compare(name, function, a.expand(torch.broadcast_shapes(a.shape, x.shape)), x, rtol=1e-5, atol=atol)
    check(function, a[::3], a.T, second=(a[::3].flip(0), a.T))


def test_incomplete_gamma_of_halves() -> None:
    x = torch.tensor([0.5, 1, 2, 40], dtype=torch.float16)
    check(lambda x: torch.igamma(x, x + 1), x)


@pytest.mark.slow
@BOTH
def test_zeta(dtype: torch.dtype) -> None:
    x = torch.tensor([0.5, 1, 1 + 1e-5, 1.01, 1.5, 2, 2.5, 3, 7, 30, 100, INF, NAN, -INF], dtype=dtype)
    q = torch.cat([torch.linspace(0, 30, 61), torch.logspace(-4, 2, 20), torch.tensor([INF, NAN])]).to(dtype)
    left = torch.tensor([-0.5, -1, -2.25, -7.75, -100.5, -INF], dtype=dtype)
    rtol = 1e-5 if dtype == torch.float32 else 1e-12
    compare("special_zeta", torch.special.zeta, x[:, None], q, rtol=rtol, atol=1e-30)
    compare("special_zeta", torch.special.zeta, x[:9, None], left, rtol=1e-4, atol=1e-7)
    check(torch.special.zeta, x[:11, None], q[1:], second=(x[:11, None], q.flip(0)[1:]))
    check(torch.special.zeta, x[:9, None], left)


@BOTH
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_given_degrees(name: str, dtype: torch.dtype) -> None:
    x, n = PLACES.to(dtype)[:, None], DEGREES.to(dtype)
    compare(f"special_{name}", special(name), x, n, rtol=1e-3 if dtype == torch.float32 else 1e-9, atol=1e-4)
    x = x[x.abs() < 4][:, None]
    check(special(name), x, n[:16], second=(x.flip(0), n.flip(0)[:16]))
    check(special(name), x, n)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_degrees_that_are_constant_make_no_loop(name: str, tmp_path: Path) -> None:
    x = PLACES[PLACES.abs() < 4]
    traced = check(lambda x: (special(name)(x, 5), special(name)(x, n=torch.arange(-1, 9)[:, None])), x)
    path = tmp_path / "model.onnx"
    tmconvert.to_onnx(traced, path, verify=False)
    assert b"Loop" not in path.read_bytes()
    tmconvert.to_onnx(tmconvert.trace(lambda x: special(name)(x, 40), x), path, verify=False)
    assert b"Loop" in path.read_bytes()
    tmconvert.to_tflite(traced, tmp_path / "model.tflite")


@pytest.mark.parametrize("name", ["chebyshev_polynomial_t", "laguerre_polynomial_l"])
def test_polynomials_take_numbers_and_integers(name: str) -> None:
    whole = torch.tensor([-1, 0, 1, 2, 7, 12])
    check(lambda n: (special(name)(0.3, n), special(name)(2, n), special(name)(n, n)), whole)
    check(lambda x: special(name)(x, 2.9), whole)
    check(lambda x, n: special(name)(x, n), torch.tensor(0.4), torch.tensor(9))
    check(lambda x, n: special(name)(x, n), torch.zeros(3, 0), torch.ones(3, 1))


@pytest.mark.parametrize("function", [torch.igamma, torch.igammac, torch.special.zeta])
def test_nothing_of_nothing(function: Callable[..., Any]) -> None:
    check(function, torch.zeros(3, 0), torch.ones(3, 1), opsets=(7, 17))


@pytest.mark.slow
def test_other_names_and_forms() -> None:
    x = torch.tensor([0.5, 1.5, 3.0])
    check(lambda x: (torch.special.gammainc(x, x + 1), torch.special.gammaincc(x, other=x), x.igamma(x)), x)
    check(lambda x: (x.clone().igamma_(x), x.igammac(x * 2), torch.special.zeta(x, 2), x), x)
    check(lambda x: (torch.special.zeta(2.5, x), torch.special.zeta(x + 1, other=x)), x)
    check(
        lambda n: (special("bessel_j0")(n), special("airy_ai")(n), torch.special.zeta(n, n)), torch.arange(6)
    )


@pytest.mark.slow
def test_open_sizes(tmp_path: Path) -> None:
    """Loops over tensors whose sizes are symbols."""
    traced = tmconvert.trace(
        lambda x: (torch.igamma(x, x + 1), torch.special.hermite_polynomial_h(x, x * 3)),
        torch.rand(4, 3),
        dynamic_shapes={"x": {0: "size"}},
    )
    tmconvert.to_onnx(traced, tmp_path / "model.onnx", verify=False)
    for count in (1, 6):
        x = torch.rand(count, 3)
        results = run_onnx(tmp_path / "model.onnx", [x.numpy()])
        expected = torch.igamma(x, x + 1), torch.special.hermite_polynomial_h(x, x * 3)
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-4, atol=1e-6)
