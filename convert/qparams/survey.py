"""Detects the quantization scheme of a source model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.ir import CallFunction, TensorNode, TracedModule
from tmconvert.ir.flatten import flatten_module
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.normalize import normalize
from tmconvert.passes.propagate_qparams import PropagateQparams
from tmconvert.symbolics.op import Op

FIXED, AWARE, PAIRS, CALIBRATED = "fixed-point", "quantization-aware", "quantized", "calibrated"
# what names of classes have in them that say it, of MegEngine and PyTorch, the most telling first; float
# models of PyTorch, too, may add by torch.ao.nn.quantized.FloatFunctional
_CLASSES = {
    "megengine.module.quantized.": FIXED,
    ".qat.": AWARE,
    ".fake_quantize.": AWARE,
    ".quantized.": FIXED,
}
_PYTORCH = ("torch.", "torchao.")
_NEUTRAL = ".functional_modules."
# names of functions, of models without such classes
_CALLS = {"fake_quantize": AWARE, "quantize_per_": PAIRS, "ops.quantized.": FIXED}


@dataclass(frozen=True)
class Quantization:
    """``kind`` is "fixed-point", "quantization-aware", "quantized" (quantize/dequantize pairs) or
    "calibrated".

    ``tensors`` counts tensors by their integer type. For a model with unsupported calls only the converted
    part is counted.
    """

    kind: str
    tensors: dict[str, int]


def quantization_of(module: TracedModule, catalogue: Mapping[str, Op]) -> Quantization | None:
    """Returns the quantization of a model; None for a float model."""
    kind = _kind(module)
    if kind is None:
        return None
    tensors: Counter[str] = Counter()
    try:
        graph = normalize(flatten_module(module), catalogue).graph
    except TmconvertError:
        return Quantization(kind, {})
    EliminateDeadCode().run(graph)
    PropagateQparams().run(graph)
    for node in [*graph.inputs, *(node for expr in graph for node in expr.outputs)]:
        if isinstance(node, TensorNode) and node.qparams is not None:
            tensors[node.qparams.dtype] += 1
    return Quantization(kind, dict(sorted(tensors.items(), key=lambda item: (-item[1], item[0]))))


def check_converted(module: TracedModule) -> None:
    """Raises UsageError TM6030 for a PyTorch model with observers that was prepared but not converted."""
    names = [each.class_name for _, each in module.modules()]
    if any(".observer." in name for name in names if name.startswith(_PYTORCH)) and _kind(module) is None:
        raise UsageError(
            "TM6030",
            "the model has observers, but was not converted to quantized ops",
            notes=[("help", "convert it in PyTorch first: convert(model), convert_fx or convert_pt2e")],
        )


def _kind(module: TracedModule) -> str | None:
    modules = [each for _, each in module.modules()]
    names = [each.class_name for each in modules if each.class_name.startswith(("megengine.", *_PYTORCH))]
    names = [name for name in names if _NEUTRAL not in name]
    if found := _first(_CLASSES, names):
        return found
    if any(each.attributes.get("is_qat") is True for each in modules):
        return AWARE
    graph = flatten_module(module).graph
    assert graph is not None
    if found := _first(_CALLS, [expr.function for expr in graph if isinstance(expr, CallFunction)]):
        return found
    nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
    return CALIBRATED if any(getattr(node, "qparams", None) is not None for node in nodes) else None


def _first(kinds: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((kind for part, kind in kinds.items() if any(part in name for name in names)), None)
