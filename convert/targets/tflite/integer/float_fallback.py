"""Reports quantized ops without an integer kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmconvert.ir import CallFunction, Expr, InternalGraph
from tmconvert.lowering.origins import Origin, Role
from tmconvert.lowering.target_graph import Value
from tmconvert.passes.select_decomposition import IN_STEPS
from tmconvert.passes.unsupported import Unsupported
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.integer.model import FloatFallback, IntegerGraph


def unsupported_calls(made: IntegerGraph, source: InternalGraph) -> list[Unsupported]:
    """Returns the calls of ``source`` that stay in float although all their tensors have scales.

    Operators that are connected by tensors without QParams form a group. If one of these tensors exists in
    the source, the source has no scales there, and the group is not reported; other tensors are intermediate
    results of one call.
    """
    makers: dict[str, Expr | None] = {node.name: node.expr for node in source.inputs}
    makers |= {node.name: expr for expr in source for node in expr.outputs}
    origins = made.graph.origins
    found: dict[int, Unsupported] = {}
    for group in _groups(made.fallbacks):
        if any(_is_whole(origins.get(value), makers) for fallback in group for value in fallback.lacking):
            continue
        results = [origins.get(value) for fallback in group for value in fallback.operator.outputs]
        known = [origin for origin in results if _is_whole(origin, makers)] or results[-1:]
        for name in [origin.node.name for origin in known if origin is not None]:
            expr = makers.get(name)
            name = name if expr is None else expr.outputs[0].name
            if isinstance(expr, CallFunction) and expr.function == IN_STEPS:
                expr = expr.args[0].expr
            if expr is not None:
                found.setdefault(id(expr), Unsupported(expr, *_reason(group, made.activations, name)))
    return list(found.values())


def _is_whole(origin: Origin | None, makers: Mapping[str, object]) -> bool:
    """Whether a tensor is one of the source's, not an intermediate result."""
    return (
        origin is not None
        and origin.role is Role.TENSOR
        and not origin.is_inner
        and origin.node.name in makers
    )


def _groups(fallbacks: Sequence[FloatFallback]) -> list[list[FloatFallback]]:
    """Groups calls that are connected by a tensor without QParams."""
    groups: list[tuple[list[FloatFallback], list[Value]]] = []
    for fallback in fallbacks:
        mine, others = ([fallback], list(fallback.lacking)), []
        for group in groups:
            if any(value is other for value in mine[1] for other in group[1]):
                mine = (group[0] + mine[0], group[1] + mine[1])
            else:
                others.append(group)
        groups = [*others, mine]
    return [group for group, _ in groups]


def _reason(group: Sequence[FloatFallback], activations: IntegerType, name: str) -> tuple[str, str]:
    types = dict.fromkeys(fallback.operator.type for fallback in group)
    reason = f"TFLite has no kernel for {', '.join(types)} in {activations}"
    if len(group) > 1:
        reason = f"TFLite has no integer form of it: it lowers to {', '.join(types)} in float"
    help = "--allow-float keeps it in float, between DEQUANTIZE and QUANTIZE"
    if activations == "int16":
        help += "; --activations int8 has more kernels"
    return reason, f"{help}; so does a calibration with --rule '{name}=float'"
