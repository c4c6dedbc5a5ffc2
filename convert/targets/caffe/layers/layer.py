"""The definition of a layer type: shapes of its tops, and its computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.targets.caffe.net import NetLayer

Shape = tuple[int, ...]
Shapes = Callable[[NetLayer, list[Shape]], list[Shape]]
Run = Callable[[NetLayer, list[np.ndarray]], list[np.ndarray]]


@dataclass(frozen=True)
class Layer:
    """A layer by its definition.

    ``shapes`` gives the shapes of the tops from those of the bottoms, or raises ValueError; ``run`` the
    arrays, float32. ``bottoms`` and ``tops`` are the least and largest numbers of these (None: no limit).
    A layer that ``overwrites`` may have its bottom as its top: it reads no element after it wrote it.
    """

    shapes: Shapes
    run: Run
    bottoms: tuple[int, int | None] = (1, 1)
    tops: tuple[int, int | None] = (1, 1)
    overwrites: bool = False


def same_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    return [bottoms[0]]


def elementwise(function: Callable[[Any, np.ndarray], Any]) -> Layer:
    """A layer that computes each element of its one top from one of its bottom; gets the parameters, too."""

    def run(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(function(layer.parameters, bottoms[0]), np.float32)]

    return Layer(same_shape, run, overwrites=True)


def axis_of(axis: int, rank: int) -> int:
    """Returns a non-negative axis. Raises ValueError."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a blob of {rank} axes")
    return axis % rank


def spatial(parameters: Any, name: str, count: int, default: int | None) -> list[int]:
    """The numbers of a window: ``kernel_h`` and ``kernel_w``, or ``kernel_size`` once or for each axis.

    ``name`` is that of the repeated field: "kernel_size", "pad", "stride", "dilation".
    """
    short = name.removesuffix("_size")
    named = {field.name for field in parameters.DESCRIPTOR.fields}
    if f"{short}_h" in named and (parameters.HasField(f"{short}_h") or parameters.HasField(f"{short}_w")):
        return [getattr(parameters, f"{short}_h"), getattr(parameters, f"{short}_w")]
    given: Any = getattr(parameters, name)
    if isinstance(given, int):
        given = [given] if parameters.HasField(name) or default is None else []
    values: Sequence[int] = list(given) or ([] if default is None else [default])
    if len(values) == 1:
        values = list(values) * count
    if len(values) != count or (default is None and not all(values)):
        raise ValueError(
            f"{name} is missing" if not any(values) else f"{len(values)} numbers of {name} for {count} axes"
        )
    return list(values)
