"""Elements that are sorted into bins or lie in segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .harness import check

X = torch.tensor([[0.1, 0.9, 2.0], [-1.0, 0.5, 0.5], [3.0, 3.0, 1.0], [0.0, float("inf"), 2.5]])
WEIGHTS = torch.arange(12.0).reshape(4, 3) / 4
EDGES = torch.tensor([-1.0, 0.0, 0.5, 0.75, 3.0])
HISTOGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "of its own range": lambda x: torch.histogram(x.clamp(max=4), 5),
    "of a range": lambda x: torch.histogram(x, bins=4, range=(0.0, 2.0)),
    "of a range of nothing": lambda x: torch.histogram(x, 3, range=(0.5, 0.5)),
    "of one number": lambda x: torch.histogram(x[:0].sum() + torch.ones(3), 4),
    "of no numbers": lambda x: torch.histogram(x[:0], 4),
    "by edges": lambda x: torch.histogram(x, EDGES, weight=WEIGHTS),
    "by edges of the data": lambda x: x.histogram(x[:, 2].sort()[0], density=True),
    "densities": lambda x: torch.histogram(x, 3, range=(-1.0, 3.0), weight=WEIGHTS, density=True),
    "doubles": lambda x: torch.histogram(x.double(), 7, range=(-1.0, 3.0)),
    "of points": lambda x: torch.histogramdd(x, [2, 3, 4], range=(-1.0, 3.0, 0.0, 1.0, 0.0, 3.0)),
    "of points and one number": lambda x: torch.histogramdd(x[:3], 3),
    "of points by edges": lambda x: torch.histogramdd(x[:, 1:], [EDGES, EDGES[1:]], weight=WEIGHTS[:, 0]),
    "densities of points": lambda x: torch.histogramdd(x[:3, :2].reshape(3, 1, 2), [3, 2], density=True),
    "counts": lambda x: torch.histc(x, 4, -1, 3),
}


@pytest.mark.parametrize("form", HISTOGRAMS)
def test_histograms(form: str) -> None:
    check(HISTOGRAMS[form], X, second=(X.flip(1) * 0.75,))


DATA = torch.tensor([[1.0, -2], [3, 0.5], [-1, 4], [2, 2], [0.5, -3]])
LENGTHS, OTHERS = torch.tensor([2, 0, 3, 0]), torch.tensor([0, 1, 1, 3])


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
def test_segments(reduce: str) -> None:
    def segments(x: torch.Tensor, lengths: torch.Tensor) -> Any:
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        return (
            torch.segment_reduce(x, reduce, lengths=lengths),
            torch.segment_reduce(x[:, 0], reduce, lengths=lengths, initial=2),
            torch.segment_reduce(x, reduce, offsets=offsets.int(), axis=0, initial=-1.5),
            torch.segment_reduce(x.T, reduce, lengths=torch.stack([lengths, lengths.flip(0)]), axis=1),
            torch.segment_reduce(x, reduce, offsets=offsets[1:], unsafe=True, initial=0.5),
        )

    check(segments, DATA, LENGTHS, opsets=(11, 20), second=(DATA.flip(0), OTHERS))
