"""Traced graphs that are edited under the names of torch.fx, compared with what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tmconvert
from tmconvert.ir import InternalGraph, TracedModule
from tmconvert.ir.tree import leaves

X = torch.linspace(-1, 1, 12).reshape(3, 4)


def traced(function: Callable[..., Any], *inputs: Any) -> tuple[TracedModule, InternalGraph]:
    tm = tmconvert.trace(function, *(inputs or (X,)))
    assert tm.graph is not None
    return tm, tm.graph


def check(tm: TracedModule, expected: Any, *inputs: Any, rtol: float = 1e-7) -> None:
    assert tm.graph is not None
    tm.graph.lint()
    result = tm(*(value.numpy() for value in inputs or (X,)))
    for mine, theirs in zip(
        result if isinstance(result, tuple) else (result,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    ):
        np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=rtol, atol=1e-6)


def flat(tree: object) -> list[np.ndarray]:
    """Returns the arrays of a result, in order."""
    return [leaf for leaf in leaves(tree) if isinstance(leaf, np.ndarray)]
