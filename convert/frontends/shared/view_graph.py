"""The graph that `tmconvert view` draws: nodes, tensors and modules, of any kind of model."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tmconvert.ir.types import DTYPE_NAMES

Path = tuple[str, ...]


@dataclass
class ViewTensor:
    """A tensor. ``type`` is a text such as ``f32[1,3,224,224]``, ``qparams`` has the quantization parameters
    as in the page.

    ``values`` are those of a constant, and ``channel_axis`` is the axis by whose channels those of quantized
    weights are counted. ``notes`` are facts about a constant by name: why its values are ``missing``, how it
    is ``stored``.
    """

    name: str
    type: str = "?"
    values: np.ndarray | None = None
    qparams: Mapping[str, Any] | None = None
    channel_axis: int | None = None
    notes: dict[str, str] = field(default_factory=dict)
    producer: int = -1


@dataclass
class ViewNode:
    """A node: an operator or a call.

    ``module`` is the path of the module that it is drawn in; ``inputs`` and ``outputs`` are indices of
    tensors, -1 for an input left out. ``mark`` is "float", "transpose" or "quantize" for a node that stands
    out, or empty. ``sources`` are the names of the nodes of the source model that it computes.
    """

    name: str
    type: str
    module: Path
    inputs: list[int]
    outputs: list[int]
    attributes: dict[str, str] = field(default_factory=dict)
    source: str = ""
    mark: str = ""
    sources: list[int] = field(default_factory=list)


@dataclass
class ViewGraph:
    """A graph with its modules; ``classes`` has the class of a module, by its path.

    ``summary`` is a list of labels and texts. ``inputs`` and ``outputs`` are indices of tensors.
    ``is_default`` states whether an operator of a type, without an attribute, takes a value for it.
    """

    title: str
    kind: str
    nodes: list[ViewNode] = field(default_factory=list)
    tensors: list[ViewTensor] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    classes: dict[Path, str] = field(default_factory=dict)
    summary: list[tuple[str, str]] = field(default_factory=list)
    is_default: Callable[[str, str, str], bool] = lambda type, attribute, text: False

    def add_tensor(self, tensor: ViewTensor) -> int:
        """Appends a tensor, and returns its index."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def add_node(self, node: ViewNode) -> int:
        """Appends a node, which produces its outputs, and returns its index."""
        self.nodes.append(node)
        for index in node.outputs:
            self.tensors[index].producer = len(self.nodes) - 1
        return len(self.nodes) - 1

    def producers(self, node: ViewNode) -> list[int]:
        """Returns the nodes that compute the inputs of a node."""
        found = (self.tensors[index].producer for index in node.inputs if index >= 0)
        return [index for index in dict.fromkeys(found) if index >= 0]


def qparams_record(
    dtype: str, scale: Iterable[float], zero_point: Iterable[int], axis: int | None = None, most: int = 64
) -> dict[str, Any]:
    """Returns quantization parameters for the page: at most ``most`` scales, with their count and range, and
    a checksum of all where there are more. Nine digits tell each float32 from others.

    >>> qparams_record("int8", [0.5], [3])
    {'type': 'int8', 'count': 1, 'scale': [0.5], 'zero': [3]}
    """
    scales, zeros = [float(f"{value:.9g}") for value in scale], [int(value) for value in zero_point]
    if not any(zeros):
        zeros = zeros[:1]
    record: dict[str, Any] = {
        "type": dtype,
        "count": len(scales),
        "scale": scales[:most],
        "zero": zeros[:most],
    }
    if len(scales) > most:
        record["checksum"] = zlib.crc32(repr((scales, zeros)).encode())
    if len(scales) > 1:
        record |= {"axis": axis, "least": min(scales), "largest": max(scales)}
    return record


def value_text(value: object, most: int = 160) -> str:
    """Returns an attribute as a text of at most ``most`` characters."""
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def type_text(dtype: str, shape: Sequence[object] | None) -> str:
    """Returns ``f32[1,10]``; ``?`` in place of what is not known."""
    name = DTYPE_NAMES.get(dtype, dtype or "?")
    if shape is None:
        return f"{name}[?]" if dtype else "?"
    return f"{name}[{','.join(map(str, shape))}]"
