"""Numbers and branches of sizes that data tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import agrees


def test_ways_taken_by_a_size_that_data_tells_are_assumptions(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        found = x[x > 0]
        if found.numel() == 0:
            return found
        rows = found.reshape(-1, 1) * 2
        return (rows + 1 if rows.shape[0] < 100 else rows).sum(1)

    traced = tmconvert.trace(function, torch.tensor([1.0, -1, 2]))
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert report.notes == ["the file is valid for these sizes: found_1 != 0, found_1 < 100"]
    agrees(function, tmp_path, torch.tensor([1.0, 3, 2]))


def found_steps(x: torch.Tensor) -> torch.Tensor:
    for step in range(x[x > 0.5].shape[0]):
        x = x + step
    return x


def found_number(x: torch.Tensor) -> torch.Tensor:
    return x * int(x[x > 0.5].shape[0])


def test_plain_numbers_of_sizes_that_data_tells_stay_sizes_or_are_refused(tmp_path: Path) -> None:
    x = torch.tensor([1.0, 2.0, -3.0, 0.1])
    assert tmconvert.to_onnx(tmconvert.trace(found_number, x), tmp_path / "model.onnx").verified
    agrees(found_number, tmp_path, torch.tensor([1.0, 3.0, 2.0, 0.9]))
    with pytest.raises(UnsupportedError, match="a data-dependent size, to a plain value") as caught:
        tmconvert.trace(found_steps, x)
    assert caught.value.code == "TM2011"
    traced = tmconvert.trace(found_steps, x, freeze_control_flow=True)
    assert "decided by the example inputs" in traced.notes[0]


def longer_row(x: torch.Tensor) -> torch.Tensor:
    first, second = x[0][x[0] > 0], x[1][x[1] > 0]
    return first * 2 if first.shape[0] >= second.shape[0] else second * 3


def many_found(x: torch.Tensor) -> torch.Tensor:
    """The other side needs more positive elements than the example has."""
    found = x[torch.nonzero(x > 0)[:, 0]]
    return found * 2 if found.shape[0] > 3 else found


def test_a_side_that_more_elements_take_is_looked_for() -> None:
    with pytest.raises(UnsupportedError, match="something else if data-dependent sizes differ") as caught:
        tmconvert.trace(many_found, torch.tensor([1.0, -1, 2, 3]))
    assert caught.value.code == "TM2011"


def nothing_found(x: torch.Tensor) -> torch.Tensor:
    found = x[x > 0]
    return x if found.numel() == 0 else found * 2


@pytest.mark.parametrize(
    ("function", "x"),
    [(longer_row, torch.tensor([[1.0, 2, 3], [1, 2, -3]])), (nothing_found, torch.tensor([1.0, 2]))],
)
def test_branches_on_sizes_that_data_tells_are_refused(function: Any, x: torch.Tensor) -> None:
    with pytest.raises(
        UnsupportedError, match=r"data-dependent sizes differ: .*test_found_branches.py:\d+"
    ) as caught:
        tmconvert.trace(function, x)
    assert caught.value.code == "TM2011"
    traced = tmconvert.trace(function, x, freeze_control_flow=True)
    assert "decided by the example inputs" in traced.notes[0]


def test_the_largest_of_sizes_that_data_tells(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        rows = [x[row][x[row] > 0] for row in range(3)]
        longest = max(each.shape[0] for each in rows)
        shortest = min(4, *[each.shape[0] for each in rows])
        filled = torch.zeros(3, longest)
        for row, each in enumerate(rows):
            filled[row, : each.shape[0]] = each
        return filled * shortest

    x = torch.tensor([[1.0, 2, 3, 4], [1, 2, 3, -4], [1, -2, -3, -4]])
    report = tmconvert.to_onnx(tmconvert.trace(function, x), tmp_path / "model.onnx")
    assert report.notes == []
    for other in (x, x.flip(0), x[[1, 2, 0]], x[[2, 2, 2]], torch.ones(3, 4)):
        agrees(function, tmp_path, other)
