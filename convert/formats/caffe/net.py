"""A Caffe net as represented in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class NetLayer:
    """One layer: ``parameters`` is the message of its own attributes (None where its type has none).

    ``blobs`` are its weights, empty where only the text was read. ``line`` is where it begins in the text.
    ``shared`` are the names of blobs that several layers have, empty for a blob of its own.
    """

    name: str
    type: str
    bottoms: list[str]
    tops: list[str]
    parameters: Any = None
    blobs: list[np.ndarray] = field(default_factory=list)
    line: int = 0
    shared: list[str] = field(default_factory=list)


@dataclass
class Net:
    """Layers in the order in which they run. Inputs are layers of type "Input"."""

    name: str
    layers: list[NetLayer]

    def inputs(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """(blob, shape) of each input."""
        for layer in self.layers:
            if layer.type == "Input":
                yield from zip(layer.tops, input_shapes(layer), strict=True)


def input_shapes(layer: NetLayer) -> Sequence[tuple[int, ...]]:
    """The shapes of an Input's tops: one each, or one for all."""
    shapes = [tuple(shape.dim) for shape in layer.parameters.shape]
    return shapes * len(layer.tops) if len(shapes) == 1 else shapes


def blob_name(layer: str, number: int) -> str:
    """Returns the generated name of a Caffe layer's blob, which has none."""
    return f"{layer}_{('weight', 'bias')[number] if number < 2 else f'blob_{number}'}"
