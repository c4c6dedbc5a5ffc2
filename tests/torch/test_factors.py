"""Matrices taken apart, and equations: small ones are written out, larger ones a loop of the file."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .harness import check

linalg = torch.linalg
SHAPES = [(1, 1), (2, 3), (3, 2), (4, 4), (5, 7), (7, 5), (10, 10), (2, 6, 6), (2, 1, 5, 3), (0, 3), (3, 0)]
SQUARES = [(1, 1), (3, 3), (10, 10), (2, 6, 6), (2, 1, 5, 5), (0, 0), (0, 5, 5), (2, 0, 0)]


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def regular(*shape: int) -> torch.Tensor:
    """Matrices that have an inverse, however their elements are reordered."""
    return randn(*shape) + 0.1


def both(tensor: torch.Tensor) -> dict[str, Any]:
    return {"second": (tensor.flip(-1),)}


def positive(*shape: int) -> torch.Tensor:
    x = randn(*shape)
    return x @ x.mT + torch.eye(shape[-1])


@pytest.mark.parametrize("shape", SHAPES)
def test_elimination(shape: tuple[int, ...]) -> None:
    def factors(x: torch.Tensor) -> Any:
        LU, pivots, info = linalg.lu_factor_ex(x)
        return LU, pivots, info, linalg.lu(x), torch.lu_unpack(LU, pivots, unpack_data=False)[0]

    x = randn(*shape)
    check(factors, x, opsets=(9, 20), tolerance=1e-4, **both(x))


def test_pivots_that_are_0() -> None:
    matrices = [
        [[0.0, 1, 2], [0, 2, 3], [0, 4, 5]],
        [[0, 1, 2], [3, 0, 1], [1, 1, 0]],
        [[1, 2, 3], [2, 4, 6], [1, 1, 1]],
        [[2, 1, 1], [-2, 1, 1], [2, -1, 5]],  # of equal elements the first
    ]
    x = torch.tensor(matrices)
    check(linalg.lu_factor_ex, x, second=(x.flip(0),))
    larger = torch.block_diag(torch.eye(4), x[0])
    check(lambda x: (linalg.lu_factor_ex(x), linalg.inv_ex(x).info), larger, second=(larger.flip(0),))
    check(lambda x: linalg.inv_ex(x), torch.ones(2, 2), second=(torch.eye(2),))
    check(linalg.solve_ex, torch.zeros(2, 2), torch.ones(2, 2))


@pytest.mark.filterwarnings("ignore:torch.lu_solve is deprecated")
@pytest.mark.parametrize("shape", SQUARES)
def test_equations(shape: tuple[int, ...]) -> None:
    *batch, rows, _ = shape

    def solved(a: torch.Tensor, b: torch.Tensor) -> Any:
        LU, pivots = linalg.lu_factor(a)
        return (
            [linalg.lu_solve(LU, pivots, b, adjoint=adjoint) for adjoint in (False, True)],
            [linalg.lu_solve(LU, pivots, b.mT, left=False, adjoint=adjoint) for adjoint in (False, True)],
            (linalg.solve(a, b), linalg.solve_ex(a, b.mT, left=False), linalg.inv(a), linalg.inv_ex(a)),
            (torch.lu_solve(b, LU, pivots), linalg.solve(a, b[..., 0])),
        )

    a, b = regular(*shape) + 2 * torch.eye(rows), randn(*batch, rows, 2)
    check(solved, a, b, second=(a.flip(-1), b), tolerance=1e-3)


def test_solutions_of_a_batch_and_of_one() -> None:
    a, b = regular(2, 6, 6), randn(6, 3)
    check(
        lambda a, b: (linalg.solve(a, b.expand(2, 6, 3)), linalg.solve(a[0], b)), a, b, second=(a.flip(-1), b)
    )
    check(lambda a, b: linalg.solve_triangular(a, b, upper=True), a + 3 * torch.eye(6), b, tolerance=1e-3)


@pytest.mark.parametrize("shape", SQUARES)
def test_determinants(shape: tuple[int, ...]) -> None:
    x = regular(*shape)
    functions = (torch.det, torch.slogdet, torch.logdet)
    check(lambda x: [function(x) for function in functions], x, **both(x), opsets=(9, 20), tolerance=1e-3)


def test_large_determinants() -> None:
    x = 100 * regular(40, 40)
    check(torch.slogdet, x, **both(x), tolerance=1e-3)


@pytest.mark.parametrize("shape", SQUARES)
def test_triangles(shape: tuple[int, ...]) -> None:
    def solved(a: torch.Tensor, b: torch.Tensor) -> Any:
        return [
            linalg.solve_triangular(a, b if left else b.mT, upper=upper, left=left, unitriangular=one)
            for upper in (False, True)
            for left in (False, True)
            for one in (False, True)
        ]

    *batch, rows, _ = shape
    a = randn(*shape) / rows + torch.eye(rows)
    b = randn(*batch, rows, 2)
    check(solved, a, b, second=(a.mT, -b), tolerance=1e-3)


@pytest.mark.parametrize("shape", SQUARES)
def test_cholesky(shape: tuple[int, ...]) -> None:
    def factors(x: torch.Tensor) -> Any:
        lower = linalg.cholesky(x)
        b = x[..., :2]
        return (
            (lower, linalg.cholesky(x, upper=True), linalg.cholesky_ex(x).info),
            (torch.cholesky_solve(b, lower), torch.cholesky_solve(b, lower.mT, upper=True)),
            (torch.cholesky_inverse(lower), torch.cholesky_inverse(lower.mT, upper=True)),
        )

    x = positive(*shape)
    check(factors, x, second=(x + torch.eye(shape[-1]),), tolerance=1e-3)


def test_a_matrix_that_is_not_positive() -> None:
    x = positive(2, 6, 6)
    x[1, 3, 3] = -1
    check(lambda x: linalg.cholesky_ex(x).info, x, second=(x.flip(0),))
    check(lambda x: linalg.cholesky_ex(x, upper=True).info, x[:, :4, :4])
    half = x[0].triu()  # only one half is read
    check(lambda x: (linalg.cholesky(x, upper=True), linalg.cholesky(x.mT)), half, second=(half * 2,))


def test_tensors() -> None:
    a = regular(2, 6, 3, 4) + 0
    check(lambda a: linalg.tensorinv(a, 2), a, tolerance=1e-2, **both(a))
    check(
        lambda a, b: linalg.tensorsolve(a.permute(0, 2, 1, 3), b, dims=(0, 2)),
        a.reshape(2, 6, 3, 4),
        randn(3, 4),
        tolerance=1e-2,
        second=(a.flip(-1), randn(3, 4)),
    )
