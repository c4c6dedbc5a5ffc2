"""Python loops over an open size become loops of the file, which are right at every size."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import run_onnx

Function = Callable[[torch.Tensor], Any]


class Cells(torch.nn.Module):
    """A recurrent cell, and a head in each round."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = torch.nn.GRUCell(3, 5), torch.nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> Any:
        h, outs = x.new_zeros(x.shape[1], 5), []
        for t in reversed(range(x.shape[0])):
            h = self.cell(x[t], h)
            outs.append(self.head(h))
        return torch.stack(outs[::-1], 1), h


def written(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0] + 1, 4, 3)
    for t in range(x.shape[0]):
        out[t + 1, :, 1:] = out[t, :, :2] * 0.5 + x[t, :, 1:]
    return out


def counted(x: torch.Tensor) -> torch.Tensor:
    mean = torch.zeros(4, 3)
    for t, row in enumerate(x):
        mean = mean + (row - mean) / (t + 1) + torch.tensor(float(t)) * 0.1
    return mean


def first_otherwise(x: torch.Tensor) -> torch.Tensor:
    total, outs = x[0], [x[0].exp()]
    for t in range(1, x.shape[0]):
        total = total * 0.5 + x[t] - x[t - 1]
        outs.append(total)
    return torch.stack(outs)


def two_before(x: torch.Tensor) -> Any:
    a, b = x.mean(0), x.mean(0) + 1
    for t in range(x.shape[0]):
        a, b = b, (a + b) * 0.5 + x[t]
    return a, b


def several_results(x: torch.Tensor) -> torch.Tensor:
    outs = []
    for row in x:
        outs += [row.sin(), row[:2].cos()]
    return torch.cat(outs, 0)


def chunked(x: torch.Tensor) -> torch.Tensor:
    outs, total = [], 0
    for part in x.flatten(0, 1).split(4):
        total = total + part.sum(0)
        outs.append(total)
    return torch.stack(outs)


def one_after_the_other(x: torch.Tensor) -> torch.Tensor:
    total, states = torch.zeros(4, 3), []
    for row in x:
        total = (total + row).tanh()
        states.append(total)
    for state in reversed(states):
        total = total * 0.5 + state
    return total


def nested(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.stack([(a - b).abs().sum() for b in x]) for a in x])


def every_second(x: torch.Tensor) -> torch.Tensor:
    total = x[0] * 0
    for t in range(0, x.shape[0], 2):
        total = total * 0.5 + x[t]
    return total


def windows(x: torch.Tensor) -> torch.Tensor:
    x = torch.cat([x, x[:1], x[:1]])
    return torch.stack([x[t : t + 3].mean(0) for t in range(len(x) - 2)])


def half_the_rows(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(4, 3)
    for t in range(x.shape[0] // 2):
        total = total * 0.5 + x[2 * t] - x[2 * t + 1]
    return total


def thirds(x: torch.Tensor) -> torch.Tensor:
    x = torch.cat([x, x, x])
    return torch.stack([x[t] * x[t + 1] + x[t + 2] for t in range(0, len(x) - 2, 3)])


def numbers_of_a_counter(x: torch.Tensor) -> Any:
    total, k = torch.zeros(4, 3), 0
    for t in range(x.shape[0]):
        total = total * (1 / (t + 1)) + x[t] * math.sin(t) + x[t] * 0.9**t - math.sqrt(t + 2)
        k = k + 1
    return total + k * 0.1, x * (1 / (k + 1))


def integers_of_a_counter(x: torch.Tensor) -> torch.Tensor:
    total, table = torch.zeros(4, 3), torch.arange(12.0).reshape(4, 3)
    for t in range(x.shape[0]):
        total = total * 0.5 + x[t] * table[t % 4] + (t // 2) - t**2 * 0.01
    return total


def written_by_functions(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0] + 1, 4, 3)
    for t in range(x.shape[0]):
        out = torch.select_scatter(out, x[t] * 2, 0, t)
        out[t : t + 2] += x[t]
        out[t][0] = x[t, 1]
    return out


def growing(x: torch.Tensor) -> Any:
    out, total = x[:1], x.mean(0)
    for t in range(x.shape[0]):
        total = total * 0.5 + x[t] + out.mean(0)
        out = torch.cat([out, total[None]])
    return total + out.sum(0), out


def joined_in_each_round(x: torch.Tensor) -> Any:
    outs: list[torch.Tensor] = []
    total = x[0]
    for t in range(x.shape[0]):
        outs.append(total * 0.9 + x[t])
        total = torch.stack(outs).mean(0)
    return total, torch.stack(outs)


def causal(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[: t + 1].softmax(0).amax(0) + x[t:].sum(0) for t in range(len(x))])


def odd_and_even(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(4, 3)
    for t in range(x.shape[0]):
        total = total * 0.5 + x[t] if t % 2 == 0 else total - x[t]
        if t > 12:
            total = total.exp().softmax(0)
    return total


def complex_state(x: torch.Tensor) -> Any:
    turn, state = torch.polar(torch.tensor(0.9), torch.tensor(0.3)), torch.zeros(4, 3, dtype=torch.complex64)
    rows, spectra = [], torch.fft.fft(x, dim=2)
    for row in spectra:
        state = turn * state + row
        rows.append(state)
    return torch.view_as_real(torch.stack(rows)), state.abs()


LOOPS: list[Function] = [
    *(written, counted, first_otherwise, two_before, several_results, chunked, one_after_the_other),
    *(nested, every_second, windows, half_the_rows, thirds, numbers_of_a_counter, integers_of_a_counter),
    *(written_by_functions, growing, joined_in_each_round, causal, odd_and_even, complex_state),
]


def _agrees(function: Function, path: Path, sizes: tuple[int, ...]) -> None:
    for size in sizes:
        x = torch.randn(size, 4, 3)
        with torch.no_grad():
            expected = function(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for mine, own in zip(run_onnx(path, [x.numpy()]), expected, strict=True):
            np.testing.assert_allclose(mine, own.numpy(), rtol=1e-4, atol=1e-5)


def _converted(function: Function, example: int, path: Path) -> list[str]:
    """Writes a file with the first axis open, and returns its operators."""
    traced = tmconvert.trace(function, torch.randn(example, 4, 3), dynamic_shapes={"x": {0: "n"}})
    assert tmconvert.to_onnx(traced, path).verified
    return [node.op_type for node in onnx.load(path).graph.node]


@pytest.mark.parametrize("function", LOOPS)
def test_loops_are_right_at_every_size(function: Function, tmp_path: Path) -> None:
    operators = _converted(function, 6, tmp_path / "model.onnx")
    assert "Loop" in operators and len(operators) < 40
    _agrees(function, tmp_path / "model.onnx", (1, 2, 3, 6, 11, 30))


@pytest.mark.parametrize("example", [1, 2, 9])
def test_the_size_of_the_example_does_not_matter(example: int, tmp_path: Path) -> None:
    module = Cells().eval()
    assert "Loop" in _converted(module, example, tmp_path / "model.onnx")
    _agrees(module, tmp_path / "model.onnx", (1, 2, 5, 25))


def test_modules_in_a_round_keep_their_names() -> None:
    traced = tmconvert.trace(Cells().eval(), torch.randn(6, 4, 3), dynamic_shapes={"x": {0: "n"}})
    assert {"cell", "head"} <= traced.children.keys()
    assert str(traced.graph).count("torch.scan") == 1


def test_a_size_without_a_round_is_noted() -> None:
    traced = tmconvert.trace(
        lambda x: torch.stack([row.exp() for row in x]), torch.randn(6, 4, 3), dynamic_shapes={"x": {0: "n"}}
    )
    assert any("valid for n >= 1" in note for note in traced.notes)


def kept_from_the_first_row(x: torch.Tensor) -> torch.Tensor:
    state, found = None, []
    for row in x:
        state = row if state is None else state * 0.9 + row
        found.append(state.tanh())
    return torch.stack(found)


def test_rows_of_an_open_size_in_a_loop_without_a_round(tmp_path: Path) -> None:
    path, sizes = tmp_path / "model.onnx", {"x": {0: "n", 1: "m"}}
    traced = tmconvert.trace(kept_from_the_first_row, torch.randn(6, 4, 3), dynamic_shapes=sizes)
    assert tmconvert.to_onnx(traced, path).inputs[0]["shape"] == ["n", "m", 3]
    for rows, columns in ((2, 5), (7, 1)):
        x = torch.randn(rows, columns, 3)
        (found,) = run_onnx(path, [x.numpy()])
        np.testing.assert_allclose(found, kept_from_the_first_row(x).numpy(), rtol=1e-4, atol=1e-5)


def test_loops_in_tflite(tmp_path: Path) -> None:
    traced = tmconvert.trace(Cells().eval(), torch.randn(6, 4, 3), dynamic_shapes={"x": {0: "n"}})
    assert tmconvert.to_tflite(traced, tmp_path / "model.tflite").verified


def counting(x: torch.Tensor) -> torch.Tensor:
    rounds = t = 0
    while t < len(x) // 2:
        t, rounds = t + 1, rounds + 2
    return x * rounds


def test_a_loop_may_only_count(tmp_path: Path) -> None:
    assert "Loop" not in _converted(counting, 6, tmp_path / "model.onnx")
    _agrees(counting, tmp_path / "model.onnx", (3, 9, 40))


def widening(x: torch.Tensor) -> torch.Tensor:
    out = x[0]
    for t in range(1, x.shape[0]):
        out = torch.cat([out.mean(0, keepdim=True), out + x[t, :1]])
    return out


def otherwise_at(condition: Callable[[int, int], bool]) -> Function:
    """Returns a function whose loop does something else in some rounds."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        n, total = x.shape[0], torch.zeros(4, 3)
        for t in range(n):
            total = total * 0.99 + x[t]
            if condition(t, n):
                total = total * 2
        return total

    return forward


REFUSED: dict[Function, str] = {
    widening: "a tensor has another shape in each round",
    lambda x: torch.stack([x[t] * (7**t % 31) for t in range(len(x))]): "a number follows no rule",
    lambda x: torch.stack([x[t - 2] for t in range(len(x))]): "an index is negative in some rounds only",
    otherwise_at(lambda t, n: n - t > 15): "a comparison of sizes comes out otherwise in a longer loop",
    otherwise_at(lambda t, n: 2 * t < n + 20): "a comparison of sizes comes out otherwise in a longer loop",
    otherwise_at(lambda t, n: n - t == 40): "a comparison of sizes comes out otherwise in a longer loop",
    otherwise_at(lambda t, n: float(t) == 200): "",
    otherwise_at(lambda t, n: float(t) > 12): "",
    otherwise_at(lambda t, n: t in {9, 18}): "",
}


@pytest.mark.parametrize("function", REFUSED)
def test_other_loops_are_refused_with_the_reason(function: Function) -> None:
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.trace(function, torch.randn(6, 4, 3), dynamic_shapes={"x": {0: "n"}})
    assert caught.value.code == "TM2031"
    assert REFUSED[function] in str(caught.value)
