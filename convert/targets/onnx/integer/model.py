"""The result of an ONNX quantization, and its notes."""

from __future__ import annotations

from dataclasses import dataclass, field

from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value

# where int8 weights are at risk, whichever processor wrote the file, and what helps
PROCESSORS = "in integer kernels of x86 processors without VNNI (AMD Zen 1 to 3, Intel before Ice Lake)"
REMEDY = "--weight-type uint8 is exact on every processor, --reduce-range quantizes weights to 7 bits"


@dataclass
class QdqGraph:
    """``graph`` with the pairs, and the QParams of each quantized tensor, by its name.

    ``stored`` has the DequantizeLinear of each constant, the constant and its QParams, ``rounded`` the
    DequantizeLinear of each other tensor, and the tensor. ``saturating`` are operators with int8 weights
    whose sums saturate on some processors.
    """

    graph: TargetGraph
    all_qparams: dict[str, QParams] = field(default_factory=dict)
    weights: int = 0
    stored: list[tuple[Operator, Value, QParams]] = field(default_factory=list)
    rounded: list[tuple[Operator, Value]] = field(default_factory=list)
    saturating: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        found = [f"{len(self.all_qparams)} tensors and {self.weights} weights are quantized"]
        if self.saturating:
            some = "1 operator" if len(self.saturating) == 1 else f"{len(self.saturating)} operators"
            found.append(f"int8 weights of {some} may saturate {PROCESSORS}: {REMEDY}")
        return found
