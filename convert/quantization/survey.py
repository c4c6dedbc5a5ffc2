"""What a source model says of quantization."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import TmconvertError
from ..ir import TensorNode, TracedModule
from ..passes.eliminate_dead_code import EliminateDeadCode
from ..passes.normalize import normalize
from ..passes.settle_quantization import SettleQuantization
from ..symbolics.op import Op

# packages of the classes that say it, most telling first
KINDS = {"megengine.module.quantized.": "fixed-point", "megengine.module.qat.": "quantization-aware"}


@dataclass(frozen=True)
class Quantization:
    """``kind`` is "fixed-point" or "quantization-aware"; ``tensors`` counts tensors by their integer type.

    A model that cannot be said in catalogued ops is counted as far as that goes.
    """

    kind: str
    tensors: dict[str, int]


def quantization_of(module: TracedModule, catalogue: Mapping[str, Op]) -> Quantization | None:
    """None for a float model."""
    kind = _kind(module)
    if kind is None:
        return None
    tensors: Counter[str] = Counter()
    try:
        graph = normalize(module.flatten(), catalogue).graph
    except TmconvertError:
        return Quantization(kind, {})
    EliminateDeadCode().run(graph)
    SettleQuantization().run(graph)
    for node in [*graph.inputs, *(node for expr in graph.exprs() for node in expr.outputs)]:
        if isinstance(node, TensorNode) and node.qparams is not None:
            tensors[node.qparams.dtype] += 1
    return Quantization(kind, dict(sorted(tensors.items(), key=lambda item: (-item[1], item[0]))))


def _kind(module: TracedModule) -> str | None:
    modules = [each for _, each in module.modules()]
    for package, kind in KINDS.items():
        if any(each.class_name.startswith(package) for each in modules):
            return kind
    return "quantization-aware" if any(each.attributes.get("is_qat") is True for each in modules) else None
