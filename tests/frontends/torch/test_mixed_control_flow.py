"""Branches on data and on sizes, and loops, one in the other: right on all sides and at all sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import tmconvert
from benchmarks.control_flow import SIZES, difference, litert_runner, onnx_runner

W = torch.linspace(-1, 1, 16).reshape(4, 4).sin()
Function = Callable[[torch.Tensor], Any]


def one_after_the_other(x: torch.Tensor) -> Any:
    y, total = x.flip(1), x.mean(0)
    for number in range(12):
        if x[0, number % 4] > number / 4 - 1.5:
            y = torch.softmax(y @ W, -1)
            if y[0, 0] > 0.25:
                y = y.cumsum(1)
        else:
            total = (total @ W).tanh()
    return y, total


def using_each_other(x: torch.Tensor) -> Any:
    """Whether the second branch uses the first shows only where both are taken."""
    y = z = x
    if x[0, 0] > 9:
        y = x.softmax(-1)
    if x[0, 1] > 9:
        z = y
    if x[0, 2] > 9:
        z = z.cumsum(0)
    if x[0, 3] > 9:
        y = y.flip(1)
    return z * 2, y


def branch_in_a_loop(x: torch.Tensor) -> Any:
    state = x.mean(0)
    for row in x:
        if row.sum() > 0:
            continue
        state = (state @ W).tanh() + row if state.sum() > 0 else state * 0.5 - row
    return state


def loop_in_a_branch(x: torch.Tensor) -> Any:
    state = x.mean(0)
    if x.sum() > 0:
        for row in x:
            state = (state @ W).tanh() + row
    else:
        state = state - 1
    return state


def size_in_a_side(x: torch.Tensor) -> Any:
    y = x.flip(1)
    if x.sum() > 0:
        return x - y
    if x.shape[0] % 2 == 0:
        return torch.softmax(x, 0) - y
    return y.cumsum(0)


def counted(x: torch.Tensor) -> Any:
    number = 0
    if (x > 1).any():
        number += 1
    if x.shape[0] > 4:
        number += 2
    return x + W[number], x.mean(0) - number


def grown(x: torch.Tensor) -> Any:
    state, rows = x.mean(0), x[:1]
    for row in x:
        state = (state @ W).tanh() + row + rows[-1]
        rows = torch.cat([rows, state.unsqueeze(0)])
    return rows, state


def sizes_after_a_loop(x: torch.Tensor) -> Any:
    """The recordings of both sides have as many rounds, since the loops before them differ in length else."""
    n, state = len(x), x.mean(0)
    for row in x:
        state = state * 0.5 + row
    if n > 6:
        state = state * n
    elif n > 3:
        for t in range(n):
            state = state - x[t] * 0.3
    else:
        x = x * state
    return state, x


def sizes_in_each_round(x: torch.Tensor) -> Any:
    n, t, state = len(x), 0, x.mean(0)
    while t < n:
        if n > 3 and n % 2 == 1:
            break
        state = (state @ W).tanh() + x[t]
        t += 1
    return state


def loop_at_small_sizes(x: torch.Tensor) -> Any:
    state = x.mean(0)
    for t in range(len(x)):
        if 2 * len(x) > 9:
            continue
        state = state * 0.5 + x[t]
    return state


def until(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    n, t, state = x.size(0), 0, x.mean(0)
    while t < n:
        if bool(state.max() < x[t].min()):
            break
        state = ((x[t] @ w) + state).tanh()
        t += 1
    return state


def scripted() -> Function:
    script = torch.jit.script(until)
    return lambda x: script(x, W)


def inputs() -> list[list[torch.Tensor]]:
    drawn = [torch.randn(size, 4) for size in SIZES for _ in range(2)]
    return [[x * factor] for x in drawn for factor in (1.0, -20.0)]


PROGRAMS: list[Function] = [
    *(one_after_the_other, using_each_other, branch_in_a_loop, loop_in_a_branch),
    *(size_in_a_side, counted, grown, sizes_after_a_loop, sizes_in_each_round),
    loop_at_small_sizes,
]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("function", [*PROGRAMS, None])
def test_all_sides_at_all_sizes(function: Function | None, tmp_path: Path) -> None:
    function = function or scripted()
    traced = tmconvert.trace(function, torch.randn(5, 4), dynamic_shapes={"x": {0: "n"}})
    for write, runner, name in (
        (tmconvert.to_onnx, onnx_runner, "m.onnx"),
        (tmconvert.to_tflite, litert_runner, "m.tflite"),
    ):
        assert write(traced, tmp_path / name).verified
        assert not difference(function, runner(tmp_path / name), inputs())


def test_equal_rounds_are_a_loop_on_request(tmp_path: Path) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        state, rows = x[0], []
        for t in range(40):
            state = (state @ W).tanh() + x[t]
            rows.append(state)
        return torch.stack(rows)

    x, nodes = torch.randn(40, 4), {}
    for rolls in (False, True):
        path = tmp_path / f"{rolls}.onnx"
        report = tmconvert.to_onnx(forward, path, example_inputs=(x,), roll_loops=rolls)
        assert report.verified
        nodes[rolls] = [node.op_type for node in onnx.load(path).graph.node]
    assert {"Loop", "Scan"}.isdisjoint(nodes[False]) and not {"Loop", "Scan"}.isdisjoint(nodes[True])
    assert len(nodes[True]) < len(nodes[False])
