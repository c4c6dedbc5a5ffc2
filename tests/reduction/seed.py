"""A plugin that makes the conversion of one op fail: the environment's SEED is ``KIND OP``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from tmconvert.symbolics.registry import catalogue

KIND, NAME = os.environ["SEED"].split()


def _wrong(symbolic: Callable[..., Any], g: Any, **arguments: Any) -> Any:
    """Lowers the op of another first operand: the shapes of results are stated by the symbolic."""
    name, x = next(iter(arguments.items()))
    return symbolic(g, **{**arguments, name: g.op("Add", x, g.op("Tanh", x))})


SEEDS: dict[str, Callable[..., Any]] = {
    "refuse": lambda symbolic, g, **arguments: g.refuse(f"{NAME} has a seeded refusal"),
    "crash": lambda symbolic, g, **arguments: int("no number"),
    "abort": lambda symbolic, g, **arguments: os.abort(),
    "wrong": _wrong,
}
for version, function in catalogue()[NAME].symbolics["onnx"].items():
    seeded = functools.wraps(function)(functools.partial(SEEDS[KIND], function))
    catalogue()[NAME].symbolics["onnx"][version] = seeded
