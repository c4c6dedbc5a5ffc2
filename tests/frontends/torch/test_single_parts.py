"""Operators that give a list, of one part only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from .test_sizes import exported

PARTS = {
    "rows": lambda x: torch.stack([row.sum() for row in x]),
    "unbind": lambda x: x.unbind(0)[0] * 2,
    "split": lambda x: torch.split(x, 5)[0] * 2,
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("shapes", [None, {"x": {1: "n"}}])
def test_a_tensor_of_one_row(name: str, shapes: Any, tmp_path: Path) -> None:
    report = exported(PARTS[name], (torch.randn(1, 6),), shapes, tmp_path)
    assert report.outputs
