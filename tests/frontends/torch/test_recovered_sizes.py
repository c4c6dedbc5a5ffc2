"""Sizes that autograd passes on in C++ stay dynamic: files with gradients run at other sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.sizes.size_rules import Observation, SizeRule, rules_of
from tmconvert.frontends.torch.tracing.sizes.validate_dynamic_shapes import Symbol


class Gradient(nn.Module):
    """A function of ``x`` and its gradient."""

    def __init__(self, energy: Callable[[torch.Tensor], torch.Tensor], *parts: nn.Module) -> None:
        super().__init__()
        self.energy, self.parts = energy, nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = self.energy(x)
            (gradient,) = torch.autograd.grad(energy.sum(), x)
        return energy.detach(), gradient


class Within(nn.Module):
    """The gradient is taken in a submodule, whose input is no input of the model."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        energy, gradient = self.inner(x * 2)
        return energy + 1, gradient


def _mlp() -> Gradient:
    first, second = nn.Linear(3, 8), nn.Linear(8, 1)
    return Gradient(lambda x: second(torch.tanh(first(x))).mean(1), first, second)


def _image() -> Gradient:
    conv = nn.Conv2d(2, 3, 3, padding=1)
    return Gradient(lambda x: F.relu(conv(x)).mean((2, 3)).sum(1), conv)


CASES = {
    "two symbols": (_mlp, (4, 5, 3), {0: "b", 1: "t"}),
    "two symbols of one": (_mlp, (1, 1, 3), {0: "b", 1: "t"}),
    "an image": (_image, (2, 2, 6, 6), {0: "b", 2: "h", 3: "w"}),
    "one row more": (
        lambda: Gradient(lambda x: torch.cat([x, x[:1] * 2]).pow(3).cumsum(0).sum(1)),
        (4, 3),
        {0: "n"},
    ),
    "a submodule": (lambda: Within(_mlp()), (2, 5, 3), {0: "b", 1: "t"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_gradients_at_other_sizes(name: str, tmp_path: Path):
    make, shape, axes = CASES[name]
    torch.manual_seed(0)
    model = make().eval()
    report = tmconvert.to_onnx(
        model, tmp_path / "m.onnx", example_inputs=(torch.randn(shape),), dynamic_shapes={"x": axes}
    )
    assert report.verified
    assert report.inputs[0]["shape"] == [axes.get(axis, size) for axis, size in enumerate(shape)]
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for more in (1, 2, 7):
        x = torch.randn([size + more * (axis in axes) for axis, size in enumerate(shape)])
        for actual, expected in zip(session.run(None, {"x": x.numpy()}), model(x), strict=True):
            np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_autograd_that_does_something_else_at_one(tmp_path: Path):
    """The gradient of broadcasting is a sum, but for a single row, which is not broadcast."""
    model = Gradient(lambda x: ((x - x.mean(0, keepdim=True)) ** 2).mean())
    with pytest.raises(UnsupportedError, match="would be valid for n >= 2 only"):
        tmconvert.to_onnx(
            model, tmp_path / "m.onnx", example_inputs=(torch.randn(4, 3),), dynamic_shapes={"x": {0: "n"}}
        )


N, M = Symbol("n", (("x", 0),), 4), Symbol("m", (("x", 1),), 5)


@pytest.mark.parametrize(
    ("example", "observed", "rule"),
    [
        (4, {(N, 8): 8, (N, 12): 12, (N, 5): 5}, SizeRule(1, ("n",), 0)),
        (12, {(N, 8): 24, (N, 5): 15}, SizeRule(3, ("n",), 0)),
        (5, {(N, 8): 9, (N, 5): 6}, SizeRule(1, ("n",), 1)),
        (20, {(N, 8): 40, (N, 5): 25, (M, 10): 40, (M, 6): 24}, SizeRule(1, ("n", "m"), 0)),
        (2, {(N, 8): 4, (N, 5): 2}, SizeRule(1, ("n",), 0, 2)),
        (80, {(N, 8): 320, (N, 5): 125, (M, 6): 96}, SizeRule(1, ("n", "n", "m"), 0)),
        (9, {(N, 8): 13, (M, 10): 14}, None),  # n + m
        (4, {(N, 8): 4, (N, 5): 4}, None),  # a constant
    ],
)
def test_rules(example: int, observed: dict[tuple[Symbol, int], int], rule: SizeRule | None):
    place = (0, 0)
    observations = [Observation(symbol, size, {place: number}) for (symbol, size), number in observed.items()]
    assert rules_of({place: example}, observations) == ({} if rule is None else {place: rule})


@pytest.mark.parametrize(
    ("numbers", "rule"),
    [
        ((7, 14, 19, 23), SizeRule(1, ("int #1",), 0)),
        ((15, 29, 39, 47), SizeRule(2, ("int #1",), 1)),
        ((2, 4, 6, 7), SizeRule(1, ("int #1",), 0, 3)),
        ((9, 15, 21, 24), SizeRule(3, ("int #1",), 0, 3, True)),
        ((21, 56, 114, 115), SizeRule(1, ("int #0", "int #1"), 0)),
        ((1, 2, 9, 9), None),
    ],
)
def test_rules_of_conversions(numbers: tuple[int, ...], rule: SizeRule | None):
    place, sizes = (0, 0), ((3, 7), (4, 14), (6, 19), (5, 23))
    runs = [{"int #0": first, "int #1": second, "int #2": second} for first, second in sizes]
    rules = [
        Observation(N, size, {place: number}, run)
        for size, number, run in zip((8, 12, 5), numbers[1:], runs[1:], strict=True)
    ]
    assert rules_of({place: numbers[0]}, rules, runs[0]) == ({} if rule is None else {place: rule})


def test_numbers_of_calls_that_are_not_always_there():
    assert rules_of({(0, 0): 4}, [Observation(N, 8, {(0, 0): 8}), Observation(N, 5, {})]) == {}


def test_calls_of_one_size_hide_no_rule_of_another():
    """As many rounds as ``m``, and ``n`` in each of them."""
    runs = [Observation(N, size, {(0, 0): size}) for size in (8, 5)]
    runs.append(Observation(M, 6, {(0, 0): 3}, makes_other_calls=True))
    assert rules_of({(0, 0): 4}, runs) == {(0, 0): SizeRule(1, ("n",), 0)}
