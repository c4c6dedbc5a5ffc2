"""What the data says the number of: places, classes, runs, elements in bins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.ir.tree import leaves

from .harness import check

M = torch.tensor([[0.0, 2, -1, 0], [3, 0, 0, 4], [0, 0, 0.5, 0]])
HALF = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 0], [2, 2, 2, 2]])


@pytest.mark.parametrize("number", [torch.tensor(2.0), torch.tensor(0), torch.tensor(True)])
def test_places_in_a_tensor_without_axes(number: torch.Tensor) -> None:
    def places(x: torch.Tensor) -> Any:
        more = torch.nonzero_static(x, size=2), torch.nonzero(x, as_tuple=True)
        return x.nonzero(), torch.argwhere(x), *more

    for given in (number, torch.zeros_like(number)):
        check(places, given, opsets=(17,), second=(number,))


STATIC: dict[str, Callable[[torch.Tensor], Any]] = {
    "fewer": lambda x: torch.nonzero_static(x, size=2),
    "more": lambda x: torch.nonzero_static(x, size=9),
    "filled": lambda x: x.nonzero_static(size=6, fill_value=7),
    "none": lambda x: torch.nonzero_static(x, size=0),
    "a row": lambda x: torch.nonzero_static(x.flatten() > 0, size=5, fill_value=-3),
    "a cube": lambda x: torch.nonzero_static(x.reshape(2, 3, 2), size=4),
    "of no elements": lambda x: torch.nonzero_static(x[:0], size=2),
    "integers": lambda x: torch.nonzero_static(x.long(), size=3),
}


@pytest.mark.parametrize("form", STATIC)
def test_so_many_places(form: str) -> None:
    check(STATIC[form], M, opsets=(9, 13, 20), second=(HALF,))


N = torch.tensor([4, 1, 3, 1, 0])
FEWER = torch.tensor([1, 1, 0, 2, 1])
CLASSES: dict[str, Callable[[torch.Tensor], Any]] = {
    "counts": lambda n: torch.bincount(n),
    "at least": lambda n: (n.bincount(minlength=4), torch.bincount(input=n, minlength=9)),
    "weights": lambda n: (torch.bincount(n, n.float() + 0.5), torch.bincount(n, n, minlength=7)),
    "of bytes": lambda n: torch.bincount(n.to(torch.uint8)),
    "of none": lambda n: (torch.bincount(n[:0], minlength=3), torch.bincount(n[:0])),
    "codes": lambda n: (F.one_hot(n), F.one_hot(n.reshape(5, 1), -1) * 2, F.one_hot(n[0])),
    "codes that are used": lambda n: F.one_hot(n).float() @ F.one_hot(n, -1).float().T,
    "histogram of counts": lambda n: torch.bincount(n).float().softmax(0),
}


@pytest.mark.parametrize("form", CLASSES)
def test_classes(form: str) -> None:
    check(CLASSES[form], N, opsets=(9, 17) if "codes" in form else (17,), second=(FEWER,))


@pytest.mark.slow
def test_splits_by_places_in_the_data(tmp_path: Path) -> None:
    x = torch.arange(24.0).reshape(4, 6)

    def split(x: torch.Tensor, ends: torch.Tensor) -> Any:
        first, *others = torch.tensor_split(x, ends, 1)
        return first * 2, *others, *x.tensor_split(ends[:2])

    for ends in ([2, 3, 5], [0, 9, 9], [-4, -2, -9], [5, 1, 3]):
        second = (x + 1, torch.tensor([1, 4, 4]))
        check(split, x, torch.tensor(ends), opsets=(11, 17), second=second)
    with pytest.raises(UnsupportedError, match="the number of parts"):
        tmconvert.to_onnx(tmconvert.trace(torch.tensor_split, x, torch.tensor(2)), tmp_path / "model.onnx")


ROWS = torch.tensor([[1.0, 2, 0], [1, 2, 0], [0, 5, 0], [1, 2, 0], [-1, 5, 0]])
ALIKE = torch.tensor([[2.0, 2, 2], [2, 2, 2], [2, 2, 2], [-3, 2, 2], [-3, 2, 2]])
ASKED = {"return_inverse": True, "return_counts": True}
SLICES: dict[str, Callable[[torch.Tensor], Any]] = {
    "rows": lambda x: torch.unique(x, dim=0, **ASKED),
    "columns": lambda x: (x.unique(dim=-1), torch.unique(x, False, dim=1, return_counts=True)),
    "planes": lambda x: x.reshape(5, 1, 3).unique(dim=2, return_inverse=True),
    "integers": lambda x: (x.int().unique(dim=0), x.to(torch.uint8).unique(dim=1), (x > 1).unique(dim=0)),
    "a vector": lambda x: torch.unique(x[:, 0], dim=0, **ASKED),
    "no rows": lambda x: torch.unique(x[:0], dim=0, **ASKED),
    "runs of rows": lambda x: torch.unique_consecutive(x, dim=0, **ASKED),
    "runs of columns": lambda x: (x.unique_consecutive(dim=-1), x.unique_consecutive(True, dim=1)),
    "runs of planes": lambda x: x.reshape(5, 1, 3).unique_consecutive(dim=0, return_counts=True),
    "runs of integers": lambda x: ((x > 1).unique_consecutive(dim=0), x.long().unique_consecutive(dim=0)),
    "runs in a vector": lambda x: torch.unique_consecutive(x[:, 0], dim=-1, **ASKED),
    "one row": lambda x: torch.unique_consecutive(x[:1], dim=0, **ASKED),
    "no runs": lambda x: torch.unique_consecutive(x[:0], dim=0, **ASKED),
    "used": lambda x: x.unique(dim=0).mean(0) + x.unique_consecutive(dim=0).sum(),
}


@pytest.mark.parametrize("form", SLICES)
def test_slices(form: str) -> None:
    check(SLICES[form], ROWS, second=(ALIKE,))


def test_of_an_exported_program() -> None:
    class Slices(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            more = torch.unique_consecutive(x), torch.unique_consecutive(x, return_inverse=True, dim=1)
            return torch.unique(x), *torch.unique(x, return_counts=True, dim=0), *more

    check(torch.export.export(Slices(), (ROWS,)).module(), ROWS, second=(ALIKE,))
    traced = tmconvert.trace(torch.export.export(Slices(), (ROWS,)), ROWS)
    for found, wanted in zip(leaves(traced(ROWS.numpy())), leaves(Slices()(ROWS)), strict=True):
        assert np.array_equal(found, wanted)


def test_results_of_aten_that_are_not_asked_for() -> None:
    def function(x: torch.Tensor) -> Any:
        runs = torch.ops.aten.unique_consecutive(x, True), torch.ops.aten.unique_dim_consecutive(x, 1)
        return torch._unique(x), torch._unique2(x, return_counts=True), *runs, torch.ops.aten.unique_dim(x, 0)

    check(function, ROWS, second=(ALIKE,))


NUMBERS_ONLY: dict[str, Callable[[torch.Tensor], Any]] = {
    "of a mask": lambda x: x / x[x > 0].shape[0],
    "of places": lambda x: x.sum() / (x > 0).nonzero().size(0),
    "of runs": lambda x: x + 2 * torch.unique_consecutive(x).numel() - len(x.unique()),
    "in a new size": lambda x: torch.zeros(x[x > 0].shape[0] + 1),
}


@pytest.mark.parametrize("function", NUMBERS_ONLY.values(), ids=NUMBERS_ONLY)
def test_sizes_of_tensors_that_nothing_else_uses(function: Callable[..., Any]) -> None:
    check(function, M, opsets=(11, 17), second=(M.roll(1) + 0.5,))


@pytest.mark.parametrize("loss", [F.huber_loss, F.l1_loss, F.mse_loss])
def test_two_counts_that_are_one(loss: Any) -> None:
    """The sizes of both operands are the same symbol: nothing is left to compare."""
    check(lambda x: loss(torch.unique(x), torch.unique(x).flip(0)), torch.tensor([1.0, 3.0, 2.0, 1.0]))


def _scattered(x: torch.Tensor) -> torch.Tensor:
    rows = torch.combinations(x)[0:3]
    return rows.scatter(0, torch.zeros(1, 2, dtype=torch.long), 5.0)


def _written(x: torch.Tensor) -> torch.Tensor:
    rows = torch.combinations(x).clone()
    rows[0:3] = 5.0
    return rows


@pytest.mark.parametrize("function", [_scattered, _written])
def test_a_slice_of_a_count_that_turns_out_to_be_known(function: Any) -> None:
    """The mask of ``combinations`` is a constant, which shows only when it is decomposed."""
    check(function, torch.rand(6))


@pytest.mark.slow
def test_a_decomposition_may_be_the_first_thing_that_a_process_traces() -> None:
    """PyTorch imports its compiler then, which checks the signatures of constructors."""
    code = (
        "import torch, tmconvert, torch.nn.functional as F\n"
        "class Loss(torch.nn.Module):\n"
        "    def forward(self, x): return F.huber_loss(x, x * 2)\n"
        "tmconvert.trace(Loss(), torch.randn(3)); print('traced')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "traced", found.stderr
