"""Describes what a program has to feed to a written file, and what it gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import InternalGraph, QParams, TensorNode
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.symbolic.dims import example as example_size
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.passes.image_edges import images_of
from tmconvert.targets.written_model import TensorInfo


class FedTensor(NamedTuple):
    """An input or output of a written file.

    ``source_layout`` is that in the model, where the file has another one. ``low`` and ``high`` are the real
    values that the integers of a quantized tensor can represent, or those of the example input that the model
    records; None where there are none.
    """

    tensor: TensorInfo
    source_layout: str = ""
    low: float | None = None
    high: float | None = None
    is_example: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            **self.tensor.to_json(),
            "source_layout": self.source_layout or None,
            "range": None if self.low is None or self.is_example else [self.low, self.high],
            "example_range": [self.low, self.high] if self.is_example else None,
        }

    @property
    def text(self) -> str:
        """Returns ``int8[1,32,32,3]  NHWC (NCHW in the model), real = 0.0184 * (q + 14), -2.1 to 2.6``."""
        tensor, about = self.tensor, []
        if tensor.layout:
            changed = f" ({self.source_layout} in the model)" if self.source_layout else ""
            about.append(f"{tensor.layout}{changed}")
        if len(tensor.scale) == 1:
            about.append(quantization_text(tensor.scale[0], tensor.zero_point[0]))
        if self.low is not None:
            word = "example" if self.is_example else "range"
            about.append(f"{word} {self.low:.4g} to {self.high:.4g}")
        return f"{tensor.type_text}  {', '.join(about)}" if about else tensor.type_text


def quantization_text(scale: float, zero_point: int) -> str:
    """Returns ``real = 0.0184 * (q + 14)``."""
    shifted = f"(q {'-' if zero_point > 0 else '+'} {abs(zero_point)})" if zero_point else "q"
    return f"real = {scale:.6g} * {shifted}"


def fed_tensors(
    graph: TargetGraph,
    source: InternalGraph,
    layouts: tuple[Sequence[bool], Sequence[bool]],
    examples: Sequence[np.ndarray] | None,
) -> tuple[list[FedTensor], list[FedTensor]]:
    """Returns inputs and outputs of a graph to write.

    ``source`` is the normalized graph, ``layouts`` are which inputs and outputs are stored channels-last,
    ``examples`` the recorded example inputs.
    """
    images = images_of(source)
    nodes = [node for node in source.inputs if isinstance(node, TensorNode)]
    arrays = examples if examples is not None and len(examples) == len(graph.inputs) else None
    inputs = [
        _fed(name, value, flag, images.get(node.name, ""), None if arrays is None else arrays[number])
        for number, (name, value, flag, node) in enumerate(
            zip(graph.input_names, graph.inputs, layouts[0], nodes, strict=False)
        )
    ]
    outputs = [
        _fed(name, value, flag, images.get(node.name, ""), None)
        for name, value, flag, node in zip(
            graph.output_names, graph.outputs, layouts[1], source.outputs, strict=False
        )
    ]
    return inputs, outputs


def _fed(name: str, value: Value, is_last: bool, layout: str, example: np.ndarray | None) -> FedTensor:
    shape = tuple(str(extent) if isinstance(extent, Dim) else int(extent) for extent in value.shape)
    layout = "NHWC" if is_last else layout
    info = TensorInfo(name, value.dtype.name, shape, layout, example=tuple(map(example_size, value.shape)))
    fed = FedTensor(info, "NCHW" if is_last else "")
    stored = value.quantization
    if stored is not None and len(stored.scale) == 1:
        scale = float(stored.scale[0])
        point = 0 if stored.zero_point is None else int(stored.zero_point[0])
        ends = np.iinfo(value.dtype)
        return fed._replace(
            tensor=info._replace(scale=(scale,), zero_point=(point,)),
            low=(ends.min - point) * scale,
            high=(ends.max - point) * scale,
        )
    if value.qparams is not None and not _is_per_channel(value.qparams):
        scale, point = value.qparams.scale[0], value.qparams.zero_point[0]
        low, high = ((end - point) * scale for end in (value.qparams.quant_min, value.qparams.quant_max))
        return fed._replace(low=float(low), high=float(high))
    if example is None or not example.size or example.dtype.kind not in "fiu":
        return fed
    low, high = float(example.min()), float(example.max())
    return fed._replace(low=low, high=high, is_example=True) if math.isfinite(high - low) else fed


def _is_per_channel(qparams: QParams) -> bool:
    return len(qparams.scale) != 1
