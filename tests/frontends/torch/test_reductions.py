"""Reductions over axes: their types, axes, kept axes, and torch.max and torch.min in all their meanings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .harness import check

X = torch.tensor([[[1.5, -2.0, 0.25], [4.0, 3.0, -1.0]], [[0.0, 7.5, -6.0], [2.0, -3.0, 5.0]]])
INTS = (X * 4).long()
BYTES = torch.tensor([[0, 200, 100], [0, 250, 7]], dtype=torch.uint8)
BOOLS = torch.tensor([[False, True, True], [False, False, True]])
NANS = torch.tensor([[float("nan"), 1.0, 2.0], [3.0, float("nan"), 5.0]])

SUMS: list[Callable[..., Any]] = [
    lambda x: (
        x.sum(),
        x.sum(0),
        x.sum(-1, keepdim=True),
        torch.sum(x, (0, 1)),
        x.sum(dim=[]),
        x.sum(axis=1),
    ),
    lambda x: (x.prod(), x.prod(0), torch.prod(x, -1, keepdim=True)),
    lambda x: (
        x.sum(dtype=torch.float64),
        x.prod(0, dtype=torch.float32),
        torch.mean(x, 0, dtype=torch.float32),
    ),
    lambda x: (x.all(), x.any(), x.all(0), x.any(-1, keepdim=True), torch.any(x, dim=(0, 1)), x.all(dim=())),
    lambda x: (x.count_nonzero(), torch.count_nonzero(x, 0), torch.count_nonzero(x, dim=(0, 1))),
    lambda x: (x.amax(), x.amin(0), torch.amax(x, (0, -1), keepdim=True), x.max(), x.min()),
    lambda x: (x.max(0), torch.min(x, -1, keepdim=True), x.max(dim=1).values, torch.max(input=x, dim=0)[1]),
    lambda x: (torch.max(x, x * 0), x.min(other=x * 0), torch.aminmax(x), torch.aminmax(x, dim=1)),
    lambda x: (x.sum(0, True), x.amax(dim=-1, keepdims=True), x.nansum(0)),
]


@pytest.mark.parametrize("case", range(len(SUMS)))
@pytest.mark.parametrize(
    "x", [X, INTS, INTS.int(), BYTES, BOOLS], ids=["float32", "int64", "int32", "uint8", "bool"]
)
def test_of_every_type(case: int, x: torch.Tensor) -> None:
    check(SUMS[case], x)


@pytest.mark.parametrize("x", [torch.tensor(3.0), torch.tensor(3)], ids=["float32", "int64"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (
            x.sum(),
            x.sum(0),
            x.sum(-1, keepdim=True),
            x.prod(),
            x.any(),
            x.all(0),
            x.amax(),
            x.amax(0),
        ),
        lambda x: (
            x.max(),
            x.max(0),
            x.min(-1, keepdim=True),
            x.argmax(),
            x.argmin(0),
            torch.count_nonzero(x),
        ),
    ],
)
def test_of_tensors_without_axes(function: Callable[..., Any], x: torch.Tensor) -> None:
    check(function, x)


def test_places() -> None:
    check(lambda x: (x.argmax(), x.argmin(1), x.argmax(-1, keepdim=True), torch.argmax(x, keepdim=True)), X)
    check(lambda x: (x.argmax(), x.argmin(dim=0)), INTS)


def test_means_and_spread() -> None:
    check(lambda x: (x.mean(), x.mean((0, 2)), x.mean(1, keepdim=True), x.mean(dim=[]), x.logsumexp(1)), X)
    check(
        lambda x: (x.var(), x.var(0), x.var(False), x.var((0, 1), unbiased=False), x.var(2, correction=2)), X
    )
    check(lambda x: (x.std(), x.std(-1, keepdim=True), torch.std(x, 0, False), x.std(dim=(0, 1, 2))), X)
    check(lambda x: (torch.var_mean(x, 1), torch.std_mean(x, dim=(0, 2), keepdim=True, correction=0)), X)


def test_nan() -> None:
    check(lambda x: (x.nansum(), x.nansum(1), x.nanmean(), torch.nanmean(x, 0, keepdim=True)), NANS)


def test_the_mean_of_integers_is_an_error_of_torch() -> None:
    with pytest.raises(RuntimeError):
        check(lambda x: x.mean(), INTS)
