"""Inputs with sums of sizes, in ``bench``, ``run`` and ``--usage``: what is suggested fits the file."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tests.cli.runner import run
from tests.inspection.test_usage import executed
from tmconvert.errors import UsageError, VerificationError
from tmconvert.ir.symbolic.chosen_sizes import chosen_sizes, shape_at


class Decoder(torch.nn.Module):
    def forward(self, x: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept: torch.Tensor = torch.cat([past, x], 1)[:, 2:] * mask[:, 2:, None]
        return kept


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("open")
    shapes = {"x": {1: "seq"}, "past": {1: "past"}, "mask": {1: "past+seq"}}
    arrays = torch.rand(1, 3, 4), torch.rand(1, 5, 4), torch.rand(1, 8)
    model = tmconvert.trace(Decoder().eval(), *arrays, dynamic_shapes=shapes)
    model.save(folder / "m.tm")
    tmconvert.to_onnx(model, folder / "m.onnx", verify=False, accept_range=True)
    tmconvert.to_tflite(model, folder / "m.tflite", verify=False, accept_range=True)
    return folder


@pytest.mark.parametrize("name", ["m.onnx", "m.tflite"])
def test_inputs_that_run_suggests_fit(folder: Path, name: str) -> None:
    outcome = run("run", folder / name)
    assert outcome.status == 2
    arguments = re.findall(r"-i '([^']*)'", outcome.stderr)
    assert len(arguments) == 3
    outcome = run("run", folder / name, *(part for each in arguments for part in ("-i", each)))
    assert outcome.status == 0, outcome.stderr


@pytest.mark.parametrize("name", ["m.onnx", "m.tflite"])
def test_programs_run(folder: Path, name: str) -> None:
    for program in (run("inspect", folder / name, "--usage", "python").stdout, _report(folder, name)):
        assert "(1, 0, 4)\n" not in executed(program)[1]


def _report(folder: Path, name: str) -> str:
    convert = tmconvert.to_onnx if name == "m.onnx" else tmconvert.to_tflite
    return convert(folder / "m.tm", folder / f"again_{name}", verify=False, accept_range=True).usage("python")


def test_bench_says_its_sizes_and_takes_others(folder: Path) -> None:
    first, second = tmconvert.bench(folder / "m.onnx", folder / "m.tflite", seconds=0.01)
    sizes = {name: shape[1] for name, shape in first.shapes.items()}
    assert sizes["mask"] == sizes["x"] + sizes["past"] and second.shapes == first.shapes
    (found,) = tmconvert.bench(folder / "m.onnx", seconds=0.01, sizes={"past": 7})
    assert found.shapes["past"] == (1, 7, 4) and found.shapes["mask"][1] == 7 + found.shapes["x"][1]
    texts = [part for size in ("1,2,4", "1,6,4", "1,8") for part in ("-i", f"float32[{size}]")]
    outcome = run("bench", folder / "m.tflite", *texts, "--seconds", "0.01")
    assert "inputs: x[1,2,4], past[1,6,4], mask[1,8]" in outcome.stdout
    outcome = run("bench", folder / "m.onnx", "--size", "past=3", "--seconds", "0.01", "--json")
    assert outcome.json["files"][0]["shapes"]["past"] == [1, 3, 4]


def test_bench_refuses_sizes(folder: Path) -> None:
    path = folder / "m.onnx"
    with pytest.raises(UsageError, match="called 'batch'") as caught:
        tmconvert.bench(path, sizes={"batch": 2})
    assert "seq, past" in str(caught.value)
    with pytest.raises(UsageError, match="TM6002"):
        tmconvert.bench(path, inputs=[np.zeros(1)], sizes={"past": 2})
    with pytest.raises(UsageError, match="TM6003"):
        tmconvert.bench(path, inputs=[np.zeros(1, np.float32)])
    unfit = [np.zeros(shape, np.float32) for shape in ((1, 2, 4), (1, 3, 4), (1, 9))]
    with pytest.raises(VerificationError, match="TM4002"):
        tmconvert.bench(path, inputs=unfit)
    assert "no file names its sizes" in run("bench", folder / "m.tflite", "--size", "past=2").stderr


@pytest.mark.parametrize(
    ("shapes", "ranges", "given", "expected"),
    [
        ([("b", "p+s")], [], {}, {"b": 1, "p": 1, "s": 1}),
        ([("p-2", "p+s")], [], {}, {"p": 3, "s": 1}),
        ([("h", "w")], ["h >= 7", "h*2 == w*3"], {}, {"h": 9, "w": 6}),
        ([("h", "w")], ["h == w"], {"w": 5}, {"h": 5, "w": 5}),
        ([("n",)], ["n >= 5000"], {}, {"n": 5000}),
        ([("batch size", "?", "")], ["in other words"], {}, {"batch size": 1, "?": 1}),
        ([("n",)], ["n > 3", "n < 2"], {}, {"n": 1}),
        ([("h", "floor(8/(h-1))")], ["floor64(truediv64(h,0)) >= 1"], {}, {"h": 2}),
        ([("h", "floor(8/(h-1))")], [], {"h": 1}, {"h": 1}),
        ([("floor64(truediv64(h,0))",)], [], {}, {"floor64(truediv64(h,0))": 1}),
    ],
)
def test_chosen_sizes(
    shapes: list[tuple[str, ...]], ranges: list[str], given: dict[str, int], expected: dict[str, int]
) -> None:
    assert chosen_sizes(shapes, ranges, given) == expected
    assert all(isinstance(extent, int) for shape in shapes for extent in shape_at(shape, expected))


def test_many_sizes_take_time_in_proportion() -> None:
    start = time.process_time()
    chosen_sizes([(f"a{number}", f"a{number}+b{number}") for number in range(500)])
    assert time.process_time() - start < 5
