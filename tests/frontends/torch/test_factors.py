"""Matrices taken apart, and equations: small ones are written out, larger ones a loop of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert
from tmconvert.verification.compare import check as check_close

from .harness import arrays, check, run_onnx

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


@pytest.mark.filterwarnings("ignore:torch.qr is deprecated")
@pytest.mark.parametrize("shape", SHAPES)
def test_reflections(shape: tuple[int, ...]) -> None:
    def factors(x: torch.Tensor) -> Any:
        modes = [linalg.qr(x, mode) for mode in ("reduced", "complete", "r")]
        return torch.geqrf(x), modes, torch.qr(x, some=False)

    x = randn(*shape)
    check(factors, x, opsets=(9, 20), tolerance=1e-3, **both(x))


@pytest.mark.parametrize("shape", [(5, 5), (7, 5), (3, 6), (2, 7, 4), (2, 5, 0)])
def test_products_of_reflections(shape: tuple[int, ...]) -> None:
    def products(x: torch.Tensor, tau: torch.Tensor, y: torch.Tensor) -> Any:
        ways = [(left, transpose) for left in (True, False) for transpose in (True, False)]
        turned = {True: y, False: y.mT}
        return [torch.ormqr(x, tau, turned[left], left, transpose) for left, transpose in ways]

    *batch, rows, columns = shape
    tau, y = randn(*batch, min(rows, columns)), randn(*batch, rows, 3)
    if columns <= rows:
        check(linalg.householder_product, randn(*shape), tau, tolerance=1e-3)
        check(linalg.householder_product, randn(*shape), tau[..., :2], tolerance=1e-3)
    check(products, randn(*shape), tau, y, tolerance=1e-3)


def test_columns_that_are_0_already() -> None:
    x = torch.tensor([[0.0, 1, 2], [0, 0, 3], [0, 0, -4], [0, 0, 0]])
    check(torch.geqrf, x, second=(x.flip(0),))
    check(torch.geqrf, torch.eye(6), second=(1e-30 * randn(6, 6),))
    check(lambda x: linalg.qr(x).R, 1e30 * randn(5, 3), tolerance=1e-3)


@pytest.mark.parametrize("driver", ["gels", "gelsy", None])
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 3), (7, 5), (5, 7), (2, 4, 3), (2, 3, 4), (0, 3), (3, 0), (6, 6)]
)
def test_least_squares(shape: tuple[int, ...], driver: str | None) -> None:
    *batch, rows, _ = shape
    a, b = randn(*shape), randn(*batch, rows, 2)
    check(lambda a, b: linalg.lstsq(a, b, driver=driver), a, b, second=(a.flip(-1), b), tolerance=1e-3)
    if rows != shape[-1]:
        check(
            lambda a, b: linalg.lstsq(a, b[..., 0], driver=driver),
            a,
            b,
            second=(a.flip(-1), b),
            tolerance=1e-3,
        )


@pytest.mark.parametrize("shape", [(7, 5), (5, 7), (2, 4, 6)])
def test_least_squares_of_less_rank(shape: tuple[int, ...], tmp_path: Path) -> None:
    """As by singular values; what torch's gelsy finds depends on memory that it has not written."""
    *batch, rows, _ = shape
    a, b = randn(*shape), randn(*batch, rows, 2)
    a[..., 2], a[..., 4] = a[..., 0] + a[..., 1], 0
    traced = tmconvert.trace(lambda a, b: linalg.lstsq(a, b)[::2], a, b)
    tmconvert.to_onnx(traced, tmp_path / "model.onnx", verify=False)
    for matrix in (a, a.flip(-1), 0 * a):
        given = [matrix.numpy(), b.numpy()]
        wanted = arrays(linalg.lstsq(matrix, b, driver="gelsd")[::2])
        for found in (list(traced(*given)), run_onnx(tmp_path / "model.onnx", given)):
            check_close(found, wanted, ["solution", "rank"], tolerances=[1e-3, 1e-3])


@pytest.mark.parametrize("shape", SQUARES)
def test_exponentials(shape: tuple[int, ...]) -> None:
    x = randn(*shape)
    scales = torch.arange(1, 1 + max(shape[0], 1)).reshape(-1, *[1] * (len(shape) - 1))
    check(torch.matrix_exp, x * scales / max(shape[-1], 1), second=(x / 9,), tolerance=1e-4)


@pytest.mark.parametrize("shape", SQUARES)
def test_symmetric_matrices(shape: tuple[int, ...]) -> None:
    def solved(x: torch.Tensor, b: torch.Tensor) -> Any:
        LD, pivots, info = linalg.ldl_factor_ex(x)
        return LD, pivots, info, linalg.ldl_solve(LD, pivots, b)

    *batch, rows, _ = shape
    x, b = randn(*shape), randn(*batch, rows, 2)
    hollow = (x + x.mT) * (1 - torch.eye(rows))  # blocks of two rows
    larger = [x + x.mT + 3 * torch.eye(rows), hollow + torch.eye(rows) / 9]
    for first, second in (larger, reversed(larger)):
        check(solved, first, b, second=(second, -b), tolerance=1e-2)


def test_symmetric_matrices_of_zeros() -> None:
    x = torch.diag(torch.tensor([2.0, 0, 1, 0, 0, 4]))
    check(linalg.ldl_factor_ex, x, second=(x.flip(0, 1),))
    hollow = torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    check(linalg.ldl_factor_ex, torch.stack([hollow, hollow.flip(0, 1), 0 * hollow, torch.eye(3)]))
