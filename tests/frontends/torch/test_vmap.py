"""torch.vmap of functions, modules and indices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import agrees, check

X = torch.linspace(-2, 3, 6).reshape(2, 3)
LINEAR = torch.nn.Linear(3, 4)

FUNCTIONS = {
    "elementwise": lambda x: torch.vmap(lambda row: row * 2 + 1)(x),
    "numbers": lambda x: torch.vmap(lambda row: row.sum() / row.numel())(x),
    "two": lambda x: torch.vmap(torch.dot)(x, x + 1),
    "axes": lambda x: torch.vmap(lambda column: column.softmax(0), in_dims=1, out_dims=1)(x),
    "one of two": lambda x: torch.vmap(lambda row, all: row @ all.T, in_dims=(0, None))(x, x * 2),
    "a module": lambda x: torch.vmap(LINEAR)(x),
    "around it": lambda x: torch.vmap(lambda row: row + x.mean(0))(x).relu(),
    "several results": lambda x: torch.vmap(lambda row: (row.max(), row.cumsum(0)))(x),
    "indices": lambda x: torch.vmap(lambda i: torch.vmap(lambda j: x[i, j] > i - j)(torch.arange(3)))(
        torch.arange(2)
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check(FUNCTIONS[name], X, opsets=(13, 17))


@pytest.mark.parametrize(
    "function",
    [
        FUNCTIONS["axes"],
        lambda x: torch.vmap(lambda row: torch.stack([row, row * 2], 1).flatten())(x),
        lambda x: torch.vmap(lambda row: torch.outer(row, row).flatten())(x),
        lambda x: torch.vmap(lambda row: F.pad(row, (1, 1)).reshape(-1, 1))(x),
    ],
    ids=["axes", "interleaved", "squares", "padded"],
)
def test_sizes_stay_open(function: Callable[[torch.Tensor], torch.Tensor], tmp_path: Path) -> None:
    model = tmconvert.trace(function, X, dynamic_shapes={"x": {0: "batch", 1: "n"}})
    tmconvert.to_onnx(model, tmp_path / "model.onnx")
    for shape in ((1, 4), (3, 7)):
        agrees(function, tmp_path, torch.randn(shape))


def test_a_look_at_data_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="reads the data of a tensor"):
        tmconvert.trace(lambda x: torch.vmap(lambda row: row * int(x.sum()))(x), X)


def test_nothing_of_torch_stays_changed() -> None:
    before = torch._functorch.apis.vmap_impl
    tmconvert.trace(FUNCTIONS["two"], X)
    assert torch._functorch.apis.vmap_impl is before


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows_of_fixed_sizes(name: str) -> None:
    window = getattr(torch, f"{name}_window")
    check(lambda x: torch.vmap(lambda row: row * window(8))(x), torch.randn(3, 8))


def test_random_numbers_are_no_constants(tmp_path: Path) -> None:
    def drawn(x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(lambda row: row * torch.rand(8), randomness="same")(x)

    with pytest.raises(UnsupportedError, match="random"):
        tmconvert.to_onnx(drawn, tmp_path / "m.onnx", example_inputs=[torch.randn(3, 8)])
