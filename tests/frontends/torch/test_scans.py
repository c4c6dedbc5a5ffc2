"""Scans of logarithmic depth over an open size are loops in the file, where a loop computes the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.frontends.torch.tracing.special import scans

from .harness import run_onnx

SIZES = ((1, 1), (2, 2), (3, 3), (1, 5), (3, 17), (1, 40))
Pair = tuple[torch.Tensor, torch.Tensor]


def associative_scan(operator: Callable[..., Any], elems: Any, axis: int = 1, reverse: bool = False) -> Any:
    if reverse:
        made = associative_scan(operator, [each.flip(axis) for each in elems], axis)
        return type(elems)(each.flip(axis) for each in made)
    count, step = elems[0].shape[axis], 1
    while step < count:
        made = operator(
            [each.narrow(axis, 0, count - step) for each in elems],
            [each.narrow(axis, step, count - step) for each in elems],
        )
        firsts = [each.narrow(axis, 0, step) for each in elems]
        elems = type(elems)(torch.cat(pair, axis) for pair in zip(firsts, made, strict=True))
        step *= 2
    return elems


class Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, x: torch.Tensor) -> Any:
        return associative_scan(combined, (a, x))[1]


class Largest(torch.autograd.Function):
    """No linear recurrence, though both operands have the shape of the result."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, x: torch.Tensor) -> Any:
        step = 1
        while step < x.shape[1]:
            x = torch.cat([x[:, :step], torch.maximum(x[:, step:], a[:, step:] * x[:, :-step])], 1)
            step *= 2
        return x


def combined(one: Pair, two: Pair) -> Pair:
    return two[0] * one[0], two[0] * one[1] + two[1]


def of_spectra(x: torch.Tensor) -> torch.Tensor:
    spectra = torch.fft.fft(x, dim=2)
    return associative_scan(combined, (torch.polar(torch.sigmoid(x), x), spectra))[1].real


def of_samples(x: torch.Tensor) -> Any:
    return torch.vmap(lambda one: associative_scan(combined, (torch.sigmoid(one), one), axis=0)[1])(x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "an operator": lambda x: associative_scan(combined, (torch.sigmoid(x), x))[1] * 2,
    "from the end": lambda x: associative_scan(combined, (torch.sigmoid(x), x), reverse=True),
    "complex": of_spectra,
    "samples": of_samples,
    "an autograd.Function": lambda x: Recurrence.apply(torch.sigmoid(x), x),  # type: ignore[no-untyped-call]
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_scans_are_loops(name: str, tmp_path: Path) -> None:
    function, path = FUNCTIONS[name], tmp_path / "model.onnx"
    traced = tmconvert.trace(function, torch.randn(2, 8, 4), dynamic_shapes={"x": {0: "n", 1: "t"}})
    tmconvert.to_onnx(traced, path)
    for size in SIZES:
        x = torch.randn(*size, 4)
        expected = function(x)
        found = run_onnx(path, [x.numpy()])
        for mine, own in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
            np.testing.assert_allclose(mine, own.numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_no_recurrence_is_no_loop() -> None:
    def forward(x: torch.Tensor) -> Any:
        return Largest.apply(torch.sigmoid(x), x)  # type: ignore[no-untyped-call]

    for example in (torch.randn(2, 8, 4), torch.zeros(2, 8, 4)):  # zeros are what a recurrence makes of zeros
        traced = tmconvert.trace(forward, example, dynamic_shapes={"x": {1: "t"}})
        assert "torch.scan" not in str(traced.graph)  # it is valid for the sizes with as many levels


def test_the_functions_are_afterwards_what_they_were() -> None:
    code = associative_scan.__code__
    tmconvert.trace(FUNCTIONS["an operator"], torch.randn(2, 4, 3), dynamic_shapes={"x": {1: "t"}})
    assert associative_scan.__code__ is code
    assert not [name for name in globals() if name.startswith(scans.NAME) and name != scans.NAME]


def test_static_scans_keep_their_levels() -> None:
    traced = tmconvert.trace(FUNCTIONS["an operator"], torch.randn(2, 64, 3))
    assert "torch.scan" not in str(traced.graph)
