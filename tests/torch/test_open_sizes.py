"""A sample of the random programs with open sizes of ``benchmarks/open_sizes.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "open_sizes.py"


@pytest.mark.parametrize("first", [0, 20])
def test_no_program_is_wrong_at_another_size(first: int, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("open_sizes", PATH)
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    found = [generator.outcome(seed, tmp_path) for seed in range(first, first + 20)]
    wrong = [each for each in found if each[0] in ("WRONG", "does not run", "defect")]
    assert not wrong
    assert any(kind == "open" for kind, _ in found)
