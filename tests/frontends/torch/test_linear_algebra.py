"""Products of matrices and tensors, norms, and linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from .harness import check


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (
            x @ y,
            torch.mm(x, y),
            x.matmul(y),
            x[0] @ y,
            x @ y[:, 0],
            x[0] @ y[:, 0],
            x[0].dot(y[:, 1]),
        ),
        lambda x, y: (torch.mv(x, y[:, 0]), torch.outer(x[0], y[0]), x[0].ger(y[1]), torch.vdot(x[0], x[1])),
        lambda x, y: (torch.addmm(x[:, :1], x, y, beta=2, alpha=0.5), torch.addmv(x[:, 0], x, y[:, 0])),
        lambda x, y: (
            torch.einsum("ij,jk->ik", x, y),
            torch.einsum("ij,jk", [x, y]),
            torch.einsum("ij->j", x),
        ),
        lambda x, y: (torch.einsum("...j,jk->...k", x, y), torch.einsum(x, [0, 1], y, [1, 2], [2, 0])),
        lambda x, y: (
            torch.einsum("ij,jk,lk->il", x, y, y),
            torch.einsum("ij,kl", x, y),
            torch.einsum("...->", x),
        ),
        lambda x, y: (
            torch.tensordot(x, y, 1),
            torch.tensordot(x, y, dims=([1], [0])),
            torch.tensordot(x, y, 0),
        ),
        lambda x, y: (
            torch.inner(x, y.T),
            torch.kron(x, y),
            torch.linalg.vecdot(x, y.T[:2]),
            x.T.__rmatmul__(y.T),
        ),
        lambda x, y: (
            torch.cdist(x, y.T),
            torch.cdist(x, y.T, p=1.0),
            torch.dist(x, x + 1, 3),
            torch.trace(x @ y),
        ),
        lambda x, y: (torch.linalg.multi_dot([x, y, y.T]), torch.matrix_power(x @ x.T, 3), x.mT @ x),
        lambda x, y: (torch.linalg.cross(x[:, :3], y.T[:2, :3]), torch.cross(x[:, :3], y.T[:2, :3], dim=1)),
    ],
)
def test_products(function: Callable[..., Any]) -> None:
    check(function, randn(2, 4), randn(4, 3))


def test_batches() -> None:
    x, y = randn(3, 2, 4), randn(3, 4, 5)
    check(
        lambda x, y: (torch.bmm(x, y), torch.baddbmm(x[:, :, :1], x, y), torch.addbmm(x[0, :, :1], x, y)),
        x,
        y,
    )
    check(
        lambda x, y: (torch.einsum("bij,bjk->bik", x, y), torch.einsum("...ij,...jk->...ik", x[0], y)), x, y
    )
    check(lambda x, y: torch.einsum("bij,bjk->bk", x[:1], y), x, y)


def test_integers() -> None:
    x = torch.arange(6).reshape(2, 3)
    check(
        lambda x: (
            x @ x.T,
            torch.einsum("ij,kj->ik", x, x),
            x.outer(x[0]) if x.ndim == 1 else x[0].outer(x[1]),
        ),
        x,
    )


def test_norms() -> None:
    check(
        lambda x: (
            x.norm(),
            x.norm(dim=1),
            x.norm(1, 0, True),
            torch.norm(x, p="fro", dim=(0, 1)),
            x.norm(p=3),
        ),
        randn(2, 3, 4),
    )
    check(
        lambda x: [
            torch.linalg.vector_norm(x, p, dim=-1) for p in (0, 1, 2, 2.5, float("inf"), -float("inf"))
        ],
        randn(3, 4),
    )
    check(
        lambda x: [torch.linalg.matrix_norm(x, p) for p in ("fro", 1, -1, float("inf"), -float("inf"))],
        randn(2, 3, 4),
    )
    check(
        lambda x: (
            torch.linalg.norm(x),
            torch.linalg.norm(x, dim=(0, 2)),
            torch.linalg.norm(x, 1, dim=(1, 2), keepdim=True),
        ),
        randn(2, 3, 4),
    )
    check(
        lambda x: (F.normalize(x), F.normalize(x, p=1.0, dim=-1), F.normalize(x, dim=0, eps=1.0)), randn(2, 3)
    )
    check(
        lambda x, y: (
            F.cosine_similarity(x, y),
            F.cosine_similarity(x, y[0], dim=-1),
            F.pairwise_distance(x, y),
        ),
        randn(2, 3),
        randn(3, 2).T,
    )


def test_sums_with_products() -> None:
    x, y, z = torch.arange(6).reshape(2, 3), torch.arange(12).reshape(3, 4), torch.arange(4)
    check(
        lambda x, y, z: (
            torch.addmm(z, x, y, beta=2, alpha=3),
            torch.addmv(z[:2], x, y[:, 0], beta=0.2, alpha=1.6),
        ),
        x,
        y,
        z,
    )
    check(lambda x: torch.addmm(x, x[:, :0], x[:0], beta=0.5), randn(3, 3))


@pytest.mark.slow
def test_equations() -> None:
    a, b = randn(2, 3, 3) + 3 * torch.eye(3), randn(2, 3, 3)
    solve = torch.linalg.solve_triangular
    check(
        lambda a, b: (solve(a, b, upper=True), solve(a, b, upper=False, left=False, unitriangular=True)),
        a,
        b,
        second=(a.flip(0), b),
    )
    check(
        lambda a, b: (torch.linalg.solve(a, b, left=False), torch.linalg.solve_ex(a, b)),
        a,
        b,
        second=(a.flip(0), b),
    )
    check(
        lambda a: torch.linalg.tensorsolve(a.reshape(3, 3), a[:, 0, 0]),
        randn(3, 3, 1) + torch.eye(3)[..., None],
        second=(torch.eye(3)[..., None] + 1,),
    )


def test_axes_of_one_element_in_a_sum() -> None:
    check(
        lambda x, y: (torch.tensordot(x, y, ([0], [1])), torch.tensordot(y, x[:, :1], ([1], [1]))),
        randn(1, 4),
        randn(3, 2),
    )


def test_covariance() -> None:
    x, w = randn(3, 5), torch.tensor([1, 2, 0, 1, 3])
    check(
        lambda x, w: (
            x.cov(),
            torch.cov(x, correction=0, fweights=w),
            torch.cov(x, aweights=w * 0.5),
            x[0].cov(),
        ),
        x,
        w,
    )
    check(lambda x: torch.corrcoef(x), x)


@pytest.mark.slow
def test_matrices() -> None:
    x = randn(2, 3, 3) + 3 * torch.eye(3)
    check(
        lambda x: (torch.det(x), torch.linalg.inv(x), x.inverse(), torch.logdet(x), torch.linalg.slogdet(x)),
        x,
        second=(x.flip(0),),
    )
    check(
        lambda x: (torch.linalg.solve(x, x[:, :, :2]), torch.linalg.solve(x, x[:, 0]), x.matrix_power(3)),
        x,
        second=(x.flip(0),),
    )
    check(lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3)), x)
    check(
        lambda x: (torch.cholesky_inverse(x), torch.cholesky_solve(x[:, :, :2], x, upper=True)),
        x,
        tolerance=1e-3,
    )
