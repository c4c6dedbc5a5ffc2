"""Python loops that end on data become loops of the file, whose number of rounds the data tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import run_onnx

X = torch.linspace(-2, 3, 20).reshape(5, 4)
OTHERS = [X * 10, X * 0.01, -X, X.flip(0) * 3]


class Decoder(nn.Module):
    """Greedy decoding with an end token, which stops where all rows have ended."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.cell, self.head = nn.Embedding(7, 4), nn.GRUCell(4, 4), nn.Linear(4, 7)

    def forward(self, x: torch.Tensor) -> Any:
        token = torch.zeros(x.shape[0], dtype=torch.long)
        done, tokens = token > 0, [token]
        while not done.all() and len(tokens) < 10:
            x = self.cell(self.embedding(token), x)
            token = self.head(x).argmax(-1)
            tokens.append(token)
            done = done | (token == 3)
        return torch.stack(tokens, 1)


class Inner(nn.Module):
    """A loop in a module that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def shrink(self, x: torch.Tensor, most: float) -> torch.Tensor:
        while x.norm() > most:
            x = self.layer(x) * 0.3
        return x

    def forward(self, x: torch.Tensor) -> Any:
        return self.shrink(self.other(x), 1.0), self.shrink(x + 3, 2.0)


def fixed_point(x: torch.Tensor) -> Any:
    for _ in range(12):
        y = torch.cos(x)
        if (y - x).abs().max() < 0.05:
            break
        x = y * 0.9 + 0.1
    return x, y


def limited(x: torch.Tensor) -> torch.Tensor:
    error, count = x.abs().max(), 0
    while error > 0.1 and count < 20:
        y = x * 0.7 + 0.001 * count
        error, x, count = (y - x).abs().max(), y, count + 1
    return x


def written(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for t in range(x.shape[0]):
        if x[t].sum() > 5:
            break
        out[t] = x[t].exp()
    return out


def with_branches(x: torch.Tensor) -> torch.Tensor:
    while x.norm() > 1:
        x = torch.cumsum(x, 0) * 0.1 if x.sum() > 0 else -x * 0.7
    return x @ x.T if x.max() > 0.2 else (x * 3).sin() @ x.T


def in_a_side(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        while x.norm() > 1:
            x = x * 0.5
    return x


def grown(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for _ in range(10):
        x = x * 0.6
        rows.append(x.sum(0))
        if x.norm() < 1:
            break
    return torch.stack(rows)


LOOPS = [Decoder().eval(), Inner().eval(), fixed_point, limited, written, with_branches, in_a_side, grown]


@pytest.mark.parametrize("function", LOOPS, ids=lambda each: getattr(each, "__name__", type(each).__name__))
def test_loops_that_end_on_data(function: Any, tmp_path: Path) -> None:
    traced = tmconvert.trace(function, X)
    files = [tmp_path / "model.onnx", tmp_path / "model.tflite"]
    assert tmconvert.to_onnx(traced, files[0]).verified and tmconvert.to_tflite(traced, files[1]).verified
    assert onnx.load(files[0]).ByteSize() < 12000
    for x in OTHERS:
        with torch.no_grad():
            expected = function(x)
        for path in files:
            made = tmconvert.run(path, [x.numpy()]).values()
            for one, two in zip(made, expected if isinstance(expected, tuple) else [expected], strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_a_loop_over_an_open_size_that_data_ends(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        total = x[0] * 0
        for t in range(x.shape[0]):
            total = total + x[t]
            if total.sum() > 3:
                break
        return total

    traced = tmconvert.trace(function, torch.randn(9, 4), dynamic_shapes={"x": {0: "n"}})
    tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert "Loop" in {node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node}
    for size in (1, 2, 5, 30):
        x = torch.randn(size, 4)
        (made,) = run_onnx(tmp_path / "model.onnx", [x.numpy()])
        np.testing.assert_allclose(made, function(x), rtol=1e-4, atol=1e-5)


class Breaking(Decoder):
    """Greedy decoding that breaks out of a loop of most steps."""

    def forward(self, x: torch.Tensor) -> Any:
        token, tokens = torch.zeros_like(x[:, 0], dtype=torch.long), []
        for _ in range(12):
            x = self.cell(self.embedding(token), x)
            token = self.head(x).argmax(-1)
            tokens.append(token)
            if (token == 3).all():
                break
        return torch.stack(tokens, 1)


@pytest.mark.parametrize("model", [Decoder(), Breaking()], ids=["while", "break"])
def test_rows_of_a_loop_that_data_ends_have_an_open_batch(model: nn.Module, tmp_path: Path) -> None:
    """What collects the tokens has as many columns as the batch has sequences."""
    files = [tmp_path / "model.onnx", tmp_path / "model.tflite"]
    traced = tmconvert.trace(model.eval(), X, dynamic_shapes={"x": {0: "batch"}})
    assert tmconvert.to_onnx(traced, files[0]).verified and tmconvert.to_tflite(traced, files[1]).verified
    for batch in (1, 2, 9):
        x = torch.randn(batch, 4) * 3
        for path in files:
            (made,) = tmconvert.run(path, [x.numpy()]).values()
            np.testing.assert_array_equal(made, model(x))


def longer(x: torch.Tensor) -> torch.Tensor:
    rows = []
    while x.norm() > 1:
        x = x * 0.5
        rows.append(x)
    return torch.stack(rows)


def counted(x: torch.Tensor) -> torch.Tensor:
    count = 0
    while x.norm() > 1:
        x, count = x * 0.5, count + 1
    return x.reshape(-1)[count:]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (longer, "a list grows in a loop without a largest number of rounds"),
        (counted, "number of its rounds"),
    ],
)
def test_loops_that_are_refused(function: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.trace(function, X * 1000)
    assert caught.value.code == "TM2011"
    assert any(reason in text for _, text in caught.value.notes), caught.value.notes
