"""Sizes that stay open, and those that the module fixes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.verification.compare import check as check_close

from .harness import arrays, run_onnx


def exported(function: Any, inputs: tuple[torch.Tensor, ...], shapes: Any, path: Path) -> Any:
    """The report, after the file has been compared with torch at the sizes of three more inputs."""
    traced = tmconvert.trace(function, *inputs, dynamic_shapes=shapes)
    return tmconvert.to_onnx(traced, path / "model.onnx")


def agrees(function: Any, path: Path, *inputs: torch.Tensor) -> None:
    with torch.no_grad():
        wanted = arrays(function(*inputs))
    found = run_onnx(path / "model.onnx", [tensor.numpy() for tensor in inputs])
    check_close(found, wanted, [str(number) for number in range(len(wanted))])


OPEN = [
    (lambda x: x.reshape(x.shape[0] * x.shape[1], -1) * x.shape[1], (2, 3, 4), {0: "b", 1: "t"}),
    (lambda x: x.view(x.size(0), -1).sum(1, keepdim=True).expand(-1, x.size(1)), (2, 3, 4), {0: "b"}),
    (lambda x: x + torch.arange(x.shape[1])[:, None], (2, 3, 4), {0: "b", 1: "t"}),
    (lambda x: x[:, : x.shape[1] // 2], (2, 6), {0: "b", 1: "t"}),
    (lambda x: F.pad(x, (0, x.shape[1] - 1)), (2, 6), {1: "t"}),
    (lambda x: F.interpolate(x, scale_factor=2), (1, 2, 4, 6), {0: "b", 2: "h", 3: "w"}),
    (
        lambda x: F.interpolate(x, size=(x.shape[2] * 2, math.ceil(x.shape[3] / 2)), mode="bilinear"),
        (1, 2, 4, 6),
        {2: "h", 3: "w"},
    ),
    (lambda x: torch.cat([x, x.new_zeros(x.shape[0], 2)], 1), (2, 3), {0: "b", 1: "t"}),
    (lambda x: torch.triu(torch.ones(x.shape[1], x.shape[1]), 1) * x.sum(), (2, 4), {1: "t"}),
    (lambda x: x.unflatten(1, (-1, 2)).mean(1) / math.sqrt(4), (2, 6), {0: "b"}),
    (lambda x: F.softmax(x @ x.transpose(1, 2) / x.shape[-1], -1), (2, 3, 4), {0: "b", 1: "t"}),
    (lambda x: torch.stack([x, torch.full_like(x, 2.0)]).flatten(0, 1), (1, 3), {0: "b"}),
    (lambda x: torch.linalg.inv(x @ x.mT / 9 + torch.eye(5)), (2, 5, 3), {0: "b"}),
    (lambda x: torch.linalg.slogdet(x.mT @ x / 9 + torch.eye(5)), (3, 5), {0: "n"}),
    (
        lambda x: torch.linalg.solve(x[:, None] * x / 99 + torch.eye(x.shape[0]), x),
        (6,),
        {0: "rows"},
    ),
]


@pytest.mark.parametrize(("function", "shape", "axes"), OPEN)
def test_sizes_that_stay_open(function: Any, shape: tuple[int, ...], axes: Any, tmp_path: Path) -> None:
    inputs = (torch.randn(shape),)
    report = exported(function, inputs, {"x": axes}, tmp_path)
    assert not [note for note in report.notes if "fixed" in note], report.notes
    for factor, more in ((1, 0), (2, 0), (3, 2)):
        sizes = [extent * factor + more * 2 if axis in axes else extent for axis, extent in enumerate(shape)]
        agrees(function, tmp_path, torch.randn(sizes))


def test_a_size_of_one_in_the_example_is_no_reason_to_fix_it(tmp_path: Path) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * y).squeeze() if x.shape[0] == 1 else x * y

    inputs = (torch.randn(1, 3), torch.randn(1, 3))
    report = exported(function, inputs, {"x": {0: "batch"}, "y": {0: "batch"}}, tmp_path)
    assert report.outputs[0]["shape"] == ["batch", 3]
    agrees(function, tmp_path, torch.randn(5, 3), torch.randn(5, 3))


def fixed(function: Any, shape: tuple[int, ...], axes: Any) -> tuple[dict[int, str], str]:
    traced = tmconvert.trace(function, torch.randn(shape), dynamic_shapes={"x": axes})
    assert traced.dynamic_shapes is not None
    return traced.dynamic_shapes["x"], " ".join(traced.notes)


def loops(x: torch.Tensor) -> torch.Tensor:
    for step in range(x.shape[1]):
        x = x + step
    return x


def picks(x: torch.Tensor) -> torch.Tensor:
    return x * {4: 2, 8: 3}.get(int(x.shape[1]), 5)


@pytest.mark.parametrize("function", [loops, picks])
def test_what_python_makes_a_number_of_is_fixed_with_the_line(function: Any) -> None:
    axes, notes = fixed(function, (2, 4), {0: "b", 1: "t"})
    assert axes == {0: "b"}
    line = function.__code__.co_firstlineno
    assert "t is fixed at 4" in notes
    assert any(f"{__file__}:{line + more}" in notes for more in (1, 2)), notes


def test_a_module_that_takes_one_size_only() -> None:
    linear = nn.Linear(4, 2)
    axes, notes = fixed(lambda x: linear(x), (2, 4), {0: "b", 1: "t"})
    assert axes == {0: "b"}
    assert "t is fixed at 4: the module fails at other sizes" in notes


def test_ways_taken_by_size_are_assumptions(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 3 else x * 3

    report = exported(function, (torch.randn(5, 2),), {"x": {0: "b"}}, tmp_path)
    assert report.notes == ["assumed of the sizes: b >= 4"]


def test_other_sizes_need_to_be_asked_for_when_tracing(tmp_path: Path) -> None:
    traced = tmconvert.trace(nn.Linear(4, 2), torch.randn(2, 4))
    with pytest.raises(UsageError, match="traced without leaving them open"):
        tmconvert.to_onnx(traced, tmp_path / "m.onnx", dynamic_shapes={"input": {0: "b"}})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": {0: "b"}}, "has no input 'y'"),
        ({"x": {2: "b"}}, "has no axis 2"),
        ({"x": {0: "s", 1: "s"}}, "s is 2 and 3 in the example"),
    ],
)
def test_sizes_that_do_not_fit(shapes: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tmconvert.trace(lambda x: x, torch.randn(2, 3), dynamic_shapes=shapes)


def test_the_container_keeps_open_sizes(tmp_path: Path) -> None:
    traced = tmconvert.trace(lambda x: x * 2, torch.randn(2, 3), dynamic_shapes={"x": {0: "b"}})
    traced.save(tmp_path / "m.tm")
    loaded = tmconvert.load(tmp_path / "m.tm")
    assert loaded.dynamic_shapes == {"x": {0: "b"}}
    assert tmconvert.to_onnx(loaded, tmp_path / "m.onnx").outputs[0]["shape"] == ["b", 3]
    assert np.array_equal(loaded.example.inputs[0], traced.example.inputs[0])


def test_ways_taken_by_a_size_that_data_tells_are_assumptions(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        found = x[x > 0]
        if found.numel() == 0:
            return found
        rows = found.reshape(-1, 1) * 2
        return (rows + 1 if rows.shape[0] < 100 else rows).sum(1)

    traced = tmconvert.trace(function, torch.tensor([1.0, -1, 2]))
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert report.notes == ["assumed of the sizes: found_1 != 0, found_1 < 100"]
    agrees(function, tmp_path, torch.tensor([1.0, 3, 2]))


def found_steps(x: torch.Tensor) -> torch.Tensor:
    for step in range(x[x > 0.5].shape[0]):
        x = x + step
    return x


def found_number(x: torch.Tensor) -> torch.Tensor:
    return x * int(x[x > 0.5].shape[0])


@pytest.mark.parametrize("function", [found_steps, found_number])
def test_plain_numbers_of_sizes_that_data_tells_are_refused(function: Any) -> None:
    x = torch.tensor([1.0, 2.0, -3.0, 0.1])
    with pytest.raises(UnsupportedError, match="a plain number of a size that only the data tells") as caught:
        tmconvert.trace(function, x)
    assert caught.value.code == "TM2011"
    traced = tmconvert.trace(function, x, freeze_control_flow=True)
    assert "decided by the example inputs" in traced.notes[0]
