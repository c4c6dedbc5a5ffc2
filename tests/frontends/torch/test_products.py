"""Sums of products in every form that torch takes."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from .harness import check

A, B, C = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(5)


@pytest.mark.parametrize(
    "equation, operands",
    [
        ("bij,bjk->bik", (A, B)),
        ("bij, bjk", (A, B)),
        ("...ij,...jk,k->i...", (A, B, C)),
        ("...j,jk", (A, B[0])),
        ("ii->i", (torch.randn(4, 4),)),
        ("zA,zB", (torch.randn(2, 3), torch.randn(2, 4))),
        ("ij,ij->i", (torch.randn(1, 4), torch.randn(3, 4))),
        ("...,...->...", (torch.randn(2, 1), torch.randn(1, 3))),
        ("...i,...i", (torch.randn(4, 1, 3), torch.randn(5, 3))),
    ],
)
def test_einsum(equation, operands):
    check(lambda *x: torch.einsum(equation, *x), *operands)


def test_einsum_of_a_list_and_of_lists_of_axes():
    check(lambda x, y: torch.einsum("bij,bjk->bki", [x, y]), A, B)
    check(lambda x, y: torch.einsum(x, [0, 1, 2], y, [0, 2, 3], [3, 0, 1]), A, B)
    check(lambda x, y: torch.einsum(x, [Ellipsis, 1, 2], y, [Ellipsis, 2, 3]), A, B)


def test_products_that_are_added_by_name():
    x, y = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    check(lambda b, x, y: b.baddbmm(batch1=x, batch2=y, beta=0.5, alpha=2), torch.randn(2, 3, 5), x, y)
    check(lambda b, x, y: torch.addmm(b, x, mat2=y), torch.randn(3, 5), x[0], y[0])
    check(lambda b, x, y: torch.addmv(b, mat=x, vec=y), torch.randn(3), x[0], y[0, :, 0])


def test_products_of_groups_of_rows():
    ends = torch.tensor([2, 2, 4, 5], dtype=torch.int32)
    others = torch.tensor([0, 1, 1, 5], dtype=torch.int32)
    rows, weights = torch.randn(5, 8), torch.randn(4, 8, 4)
    check(lambda x, w, e: F.grouped_mm(x, w, offs=e), rows, weights, ends, second=(rows, weights, others))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float32])
def test_running_sums(dtype):
    x = torch.tensor([[1, 0, 1], [1, 1, 1]]).to(dtype)
    check(lambda x: (x.cumsum(-1), torch.cumprod(x, dim=0), x.cumsum(0, dtype=torch.float32)), x)
    check(lambda x: torch.cumsum(x, 0), x[0, 0])


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_differences_of_neighbours(dtype):
    x = torch.tensor([[1, 0, 5, 2], [1, 1, 7, 0]]).to(dtype)
    check(lambda x: (torch.diff(x), x.diff(2, 0), x.diff(dim=0, prepend=x[:1])), x)
    check(lambda x: x.diff(n=3, append=x[:, :2], prepend=x), x)


def test_windows_larger_than_the_image():
    x = torch.randn(1, 2, 3, 5)
    check(lambda x: F.avg_pool2d(x, 7, ceil_mode=True), x)
    check(lambda x: F.avg_pool2d(x, 7, padding=1, ceil_mode=True), x)
    check(lambda x: F.max_pool2d(x, 7, ceil_mode=True), x)


@pytest.mark.parametrize("own", [0, 1])
def test_what_was_padded_counts_in_the_maximum(own):
    """ONNX Runtime merges Pad and MaxPool as if the padding were less than everything."""
    check(lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2, padding=own), torch.randn(1, 2, 8, 8) - 3)


def test_einsum_of_two_types() -> None:
    """Torch promotes the operands where nothing is summed."""
    x = torch.randn(2, 3)
    for other in (torch.tensor([[True, False], [True, True]]), torch.tensor([[3, -4], [5, 6]])):
        check(lambda a, b: torch.einsum("qb,bt->qbt", a, b), other, x, tflite=other.dtype == torch.bool)
