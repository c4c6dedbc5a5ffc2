"""A sample of the random programs with open sizes of ``benchmarks/open_sizes.py``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

PATH = Path(__file__).parents[3] / "benchmarks" / "open_sizes.py"


# What becomes of the first 40 programs; one that stays open is right at the example's and six other sizes.
FIXED = frozenset((4, 11, 19, 23, 27, 30, 33, 36))
IN_A_RANGE = frozenset((3,))
NO_PROGRAM = frozenset((17, 24, 26))  # PyTorch itself raises an error


def expected(seed: int) -> str:
    kinds = {"fixed": FIXED, "in a range": IN_A_RANGE, "no program": NO_PROGRAM}
    return next((kind for kind, seeds in kinds.items() if seed in seeds), "open")


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


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 6, 12, 18])
def test_what_becomes_of_programs_with_nested_inputs(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(PATH.parent))
    generator = importlib.import_module("open_sizes_nested")
    found = {seed: generator.outcome(seed, tmp_path) for seed in range(first, first + 6)}
    allowed = ("open", "in a range", "no program", "fixed", "partly fixed")  # never wrong
    assert not {seed: each for seed, each in found.items() if each[0] not in allowed}
    assert sum(kind == "open" for kind, _ in found.values()) >= 2


SUM = {"past": {0: "past"}, "x": {0: "rows"}}
AT_LEAST: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "a branch": (lambda x: x * 2 if x.shape[0] > 2 else x * 3, r"past\+rows > 2 only.* past = 1, rows = 1"),
    "an axis of 1": (lambda x: x.squeeze(), r"past\+rows > 1 only.* past = 0, rows = 1"),
    "half": (lambda x: x.chunk(2)[-1], "only: the model computes something else at past = 0, rows = 1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_LEAST)
def test_sums_of_sizes_are_tried_where_they_are_least(name: str, tmp_path: Path) -> None:
    function, message = AT_LEAST[name]

    def joined(past: torch.Tensor, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return function(torch.cat([past, x]) * mask[:, None])

    inputs = torch.rand(3, 4), torch.rand(4, 4), torch.rand(7)
    options = {"example_inputs": inputs, "dynamic_shapes": {**SUM, "mask": {0: "past+rows"}}}
    with pytest.raises(UnsupportedError, match=message):
        tmconvert.to_onnx(joined, tmp_path / "model.onnx", **options)
    report = tmconvert.to_onnx(joined, tmp_path / "model.onnx", accept_range=True, **options)
    assert report.ranges


@pytest.mark.slow
def test_sums_of_sizes_that_compute_the_same_have_no_range(tmp_path: Path) -> None:
    def joined(past: torch.Tensor, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([past, x]) * mask[:, None]
        return joined[: min(joined.shape[0], 1)].cumsum(0)

    inputs = torch.rand(3, 4), torch.rand(4, 4), torch.rand(7)
    shapes = {**SUM, "mask": {0: "past+rows"}}
    report = tmconvert.to_onnx(joined, tmp_path / "model.onnx", example_inputs=inputs, dynamic_shapes=shapes)
    assert not report.ranges
