"""From a float ONNX graph with QParams to QuantizeLinear/DequantizeLinear pairs: the order of the stages.

``prepare`` rewrites the float graph, ``resolve`` gives each tensor its QParams, and ``encode`` inserts the
pairs.
"""

from __future__ import annotations

from tmconvert.errors import Refusal
from tmconvert.lowering.redundant_clamps import bound_by_operand, without_redundant_clamps
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.onnx.integer.encode import encode
from tmconvert.targets.onnx.integer.model import QdqGraph
from tmconvert.targets.onnx.integer.resolve import resolve
from tmconvert.targets.onnx.integer.types import SINCE


def to_qdq(graph: TargetGraph, activations: str = "uint8", weight_type: str = "uint8") -> QdqGraph:
    """Returns a copy of ``graph`` with pairs, and activations as "uint8", "int8", "uint16" or "int16".

    int8 and uint8 represent the same real values, with shifted zero points. ONNX Runtime has kernels for
    uint8 on every processor; other runtimes require int8. Tensors of 16 bits in the source stay in 16 bits,
    with the requested sign. Weights whose int8 sums might saturate are uint8, unless ``weight_type`` is
    "int8". Raises Refusal for QParams that the opset of ``graph`` cannot express.
    """
    prepared = prepare(graph)
    return encode(prepared, resolve(prepared, activations), activations, weight_type)


def prepare(graph: TargetGraph) -> TargetGraph:
    """Returns a copy of the graph without clamps at ends of quantized ranges. Raises Refusal."""
    assert isinstance(graph.version, int)
    if graph.version < SINCE:
        raise Refusal(f"ONNX supports quantization from opset {SINCE} on", f"use --opset {SINCE} or later")
    return without_redundant_clamps(graph, lambda each: bound_by_operand(each, "Min"))
