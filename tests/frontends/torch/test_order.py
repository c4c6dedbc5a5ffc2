"""Order, order statistics, and what accumulates along an axis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert

from .harness import check

X = torch.tensor([[1.5, -2.0, 0.25, 7.0], [4.0, 3.0, -1.0, 6.5], [0.0, 7.5, -6.0, 2.5]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (
            x.sort(),
            torch.sort(x, 0, descending=True),
            x.sort(dim=-1, stable=True)[1],
            torch.msort(x),
        ),
        lambda x: (x.argsort(), torch.argsort(x, dim=0, descending=True), x.argsort(stable=True)),
        lambda x: (x.topk(2), torch.topk(x, 1, dim=0), x.topk(3, largest=False).values, x.topk(k=2, dim=-2)),
        lambda x: (
            x.kthvalue(2),
            torch.kthvalue(x, 1, 0, True),
            x.median(),
            x.median(1),
            x.median(0, keepdim=True),
        ),
        lambda x: (x.cumsum(0), torch.cumsum(x, dim=-1), x.cumprod(1), x.cumsum(1, dtype=torch.float64)),
        lambda x: (x.cummax(0), torch.cummin(x, -1), torch.diff(x), x.diff(n=2, dim=0)),
    ],
)
@pytest.mark.parametrize("x", [X, (X * 4).long(), (X * 4).int()], ids=["float32", "int64", "int32"])
def test_of_floats_and_integers(function: Callable[..., Any], x: torch.Tensor) -> None:
    check(function, x)


def test_of_floats() -> None:
    check(lambda x: (x.quantile(0.3), x.quantile(torch.tensor([0.0, 0.5]), dim=1, keepdim=True)), X)
    check(lambda x: (torch.quantile(x, 0.5, keepdim=True, interpolation="lower"), x.logcumsumexp(0)), X)
    nans = torch.where(X > 6, torch.nan, X)
    check(lambda x: (x.nanmedian(), torch.nanmedian(x, 1), torch.nanquantile(x, 0.25, 0)), nans)


def test_most_frequent() -> None:
    check(
        lambda x: (x.mode(), torch.mode(x, 0, keepdim=True)),
        torch.tensor([[1, 2, 2, 3], [5, 5, 4, 4], [7, 1, 7, 2]]),
    )


def test_of_bools_and_scalars() -> None:
    check(lambda x: (x.sort(), x.cumsum(0)), torch.tensor([True, False, True]))
    check(
        lambda x: (x.sort(), x.cumsum(0), x.median(), x.kthvalue(1), x.topk(1), x.cummax(0)),
        torch.tensor(2.5),
    )


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((4, 6), 0), ((2, 4, 6, 10), 1), ((2, 3, 5), 1), ((2, 3, 5), 2)])
def test_quantiles_along_any_axis_in_tflite(
    shape: tuple[int, ...], dim: int, keepdim: bool, tmp_path: Path
) -> None:
    """Reshapes of one result from several shapes do not go behind what takes them together."""

    class Quantile(torch.nn.Module):
        def forward(self, x):
            return torch.quantile(x, 0.3, dim=dim, keepdim=keepdim)

    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    assert tmconvert.to_tflite(Quantile(), tmp_path / "m.tflite", example_inputs=(x,)).verified
