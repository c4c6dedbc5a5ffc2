"""A sample of the random programs with open sizes of ``benchmarks/open_sizes.py``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[3] / "benchmarks" / "open_sizes.py"


# What becomes of the first 40 programs; one that stays open is right at the example's and six other sizes.
FIXED = frozenset((0, 5, 9, 11, 12, 17, 24, 30, 37))
IN_A_RANGE = frozenset((8, 15, 29))


def expected(seed: int) -> str:
    return "fixed" if seed in FIXED else "in a range" if seed in IN_A_RANGE else "open"


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 10, 20, 30])
def test_what_becomes_of_programs_with_open_sizes(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("open_sizes", PATH)
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "open_sizes", generator)  # as if it was imported
    spec.loader.exec_module(generator)
    assert len(generator.OTHERS) >= 6
    seeds = range(first, first + 10)
    found = {seed: generator.outcome(seed, tmp_path) for seed in seeds}
    unexpected = {seed: each for seed, each in found.items() if each[0] != expected(seed)}
    assert not unexpected


@pytest.mark.parametrize("first", [0, 6, 12, 18])
def test_what_becomes_of_programs_with_nested_inputs(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(PATH.parent))
    generator = importlib.import_module("open_sizes_nested")
    found = {seed: generator.outcome(seed, tmp_path) for seed in range(first, first + 6)}
    allowed = ("open", "in a range", "no program", "fixed", "partly fixed")
    assert not {seed: each for seed, each in found.items() if each[0] not in allowed}
    assert sum(kind == "open" for kind, _ in found.values()) >= 3
