"""Activations of products with weights of few bits, which ONNX Runtime rounds to 8 bits: it is faster then.

Source: ``accuracy_level`` of MatMulNBits in ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.formats.onnx.messages import messages
from tmconvert.formats.onnx.model import read_whole_model

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

_LEVEL, _INT8 = "accuracy_level", 4


def round_activations(path: Path) -> int:
    """Marks all MatMulNBits of a file so that ONNX Runtime rounds their activations to 8 bits.

    Returns how many there are. The file is not changed if there are none. Raises LoadError TM1031 to TM1033.
    """
    model = read_whole_model(str(path), keeps_links=True)
    found = [node for node in _nodes(model.graph) if node.op_type == "MatMulNBits"]
    attribute = messages().AttributeProto
    for node in found:
        others = [each for each in node.attribute if each.name != _LEVEL]
        del node.attribute[:]
        node.attribute.extend([*others, attribute(name=_LEVEL, type=attribute.INT, i=_INT8)])
    if found:
        path.write_bytes(model.SerializeToString(deterministic=True))
    return len(found)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yields the operators of a graph, and those of its branches and loops."""
    for node in graph.node:
        yield node
        for each in node.attribute:
            yield from _nodes(each.g)
