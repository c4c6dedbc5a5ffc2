"""Records of layer types: class ``Layer``, and helpers that several definitions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.formats.caffe.net import NetLayer

Shape = tuple[int, ...]
Shapes = Callable[[NetLayer, list[Shape]], list[Shape]]
Run = Callable[[NetLayer, list[np.ndarray]], list[np.ndarray]]
# multiply-accumulates, from the shapes of bottoms and weights and from those of tops
Macs = Callable[[Sequence[Shape], Sequence[Shape]], int]


@dataclass(frozen=True)
class Layer:
    """The record of a layer type.

    ``shapes`` computes the shapes of the tops from those of the bottoms, or raises ValueError; ``run`` the
    arrays, float32. A type has both or none of them.
    """

    shapes: Shapes | None = None
    run: Run | None = None
    # ---- the file
    # the least and the largest number of bottoms and of tops; None: no limit
    bottoms: tuple[int, int | None] = (1, 1)
    tops: tuple[int, int | None] = (1, 1)
    overwrites: bool = False  # its bottom may be its top: it reads no element after it wrote it
    parameters: str | None = None  # the field of LayerParameter with its attributes
    is_of_fork: bool = False  # BVLC Caffe does not have it
    trains: bool = False  # only training and testing have it
    is_spatial: bool = False  # channels of its bottoms are axis 1, images after them
    macs: Macs | None = None
    # ---- quantization
    keeps_qparams: bool = False  # results have the QParams of the operand, as they consist of its elements
    clamps_at_zero: bool = False
    weight_axis: int | None = None  # of the output channels of weights that are quantized


def same_shape(layer: NetLayer, bottoms: list[Shape]) -> list[Shape]:
    return [bottoms[0]]


def elementwise(function: Callable[[Any, np.ndarray], Any], **facts: Any) -> Layer:
    """A layer that computes each element of its one top from one of its bottom.

    ``function`` receives the parameters and the bottom.
    """

    def run(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
        return [np.asarray(function(layer.parameters, bottoms[0]), np.float32)]

    return Layer(same_shape, run, overwrites=True, **facts)


def axis_of(axis: int, rank: int) -> int:
    """Returns a non-negative axis. Raises ValueError."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for a blob of {rank} axes")
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
