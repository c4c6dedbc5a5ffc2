"""Elementwise arithmetic with torch's promotion of types."""

from __future__ import annotations

import torch

from .harness import check


def test_numbers_do_not_promote_tensors() -> None:
    check(lambda x: (x + 1, x * 2.5, 3 - x, x / 2), torch.arange(6, dtype=torch.int32).reshape(2, 3))


def test_tensors_without_axes_do_not_promote_those_with() -> None:
    check(lambda x, y: x + y, torch.randn(3, dtype=torch.float32), torch.tensor(2.0, dtype=torch.float64))
