"""Data-dependent sizes that go through convolutions, pooling and slices from the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tmconvert

from .harness import check

X = torch.randn(1, 2, 8, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([True, True, False, True, True, False, True, True])
CONV, BACK = nn.Conv1d(2, 3, 3, padding=1), nn.ConvTranspose1d(2, 3, 4, 2, 1)


def _written_rows(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """A row of all elements and one of some, in the rows of a tensor that both fit."""
    some = x[0, 0][mask]
    rows = torch.zeros(2, int(mask.sum()) + 2, dtype=x.dtype)
    rows[0, : some.shape[0]] = some
    rows[1, 1 : some.shape[0] + 1] = 2.0
    return rows


def _frames(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    some = x[0, 0][mask]
    return F.pad(some, (0, -some.shape[0] % 4)).unfold(0, 4, 4)


def _waves(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    some = x[:, :, mask].repeat(1, 2, 1)[:, :3]
    return torch.istft(torch.polar(some.exp(), some), 4, 2, 4, torch.ones(4))


FOUND: dict[str, Callable[..., Any]] = {
    "convolution": lambda x, mask: CONV(x[:, :, mask]),
    "transposed convolution": lambda x, mask: BACK(x[:, :, mask]),
    "pooling": lambda x, mask: F.max_pool1d(x[:, :, mask], 2),
    "vocoder": lambda x, mask: BACK(F.leaky_relu(CONV(x[:, :, mask])[:, :2])),
    "slices from the end": lambda x, mask: x[0, 0][mask][1:] - x[0, 0][mask][:-1],
    "a padded list": lambda x, mask: nn.utils.rnn.pad_sequence(
        [x[0, 0][mask], x[0, 1], x[0, 1][mask][:2]], batch_first=True, padding_value=1.0
    ),
    "written rows": _written_rows,
    "frames": _frames,
    "waves": _waves,
    "a range that falls": lambda x, mask: (
        torch.arange(x[0, 0][mask].shape[0] - 1, -x[0, 0][mask].shape[0], -1.0)[:, None] * x[0].sum()
    ),
    "last ones": lambda x, mask: x[0, 0][mask][-2:],
    "one size of two masks": lambda x, mask: x.mT[:, mask & True][0].view(x.mT[:, mask & True].shape[1], -1),
    "windows": lambda x, mask: F.unfold(x[:, :, mask][:, :, None].expand(-1, -1, 2, -1), 2, stride=2),
}


@pytest.mark.parametrize("name", FOUND)
def test_sizes_of_masks(name: str) -> None:
    fewer = MASK & (torch.arange(8) > 1)
    check(FOUND[name], X, MASK, second=(X * 2, fewer), tflite=name in ("vocoder", "written rows"))


def test_repeated_elements_are_convolved(tmp_path: Path) -> None:
    def expanded(x: torch.Tensor, durations: torch.Tensor) -> torch.Tensor:
        return CONV(x.repeat_interleave(durations, 2))

    x = torch.randn(1, 2, 4)
    traced = check(expanded, x, torch.tensor([1, 3, 2, 2]), second=(x, torch.tensor([2, 0, 5, 1])))
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert any("found_1" in note for note in report.notes)


def test_positions_of_one_mask_select_by_those_of_another() -> None:
    """Their numbers are equal, or the selection fails: later uses rely on it."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        rows, _ = torch.where(x > 0)
        _, columns = torch.where(x <= 0)
        return x[rows, columns]

    x = torch.tensor([[1.0, -1.0, 2.0, -2.0], [1.0, -3.0, -4.0, 3.0]])
    check(forward, x, second=[-x], tflite=True)
