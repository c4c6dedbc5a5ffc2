"""Calibrates a float model on data: returns a model with QParams, which converts to integer files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tmconvert.calibration.biases import correct_biases
from tmconvert.calibration.data import Samples, inputs_of
from tmconvert.calibration.data_sizes import at_sizes, sizes_note, sizes_of_data
from tmconvert.calibration.equalization import equalize
from tmconvert.calibration.expansion import expand, measured_name, whole_call
from tmconvert.calibration.measuring import Statistics, measure
from tmconvert.calibration.module import as_module
from tmconvert.calibration.open_sizes import OpenSizes, open_sizes
from tmconvert.calibration.placement import (
    Kind,
    KindOf,
    called,
    computed_kind,
    kinds,
    observed_nodes,
    result_bounds,
    shared,
    unused,
    weights,
    without_effect,
)
from tmconvert.calibration.ranges import METHODS, Histogram, Method, below, min_max
from tmconvert.calibration.settings import Settings
from tmconvert.conversion.io_overrides import NO_OVERRIDES, BoundModel, IoOverrides, bind_model
from tmconvert.errors import UsageError
from tmconvert.ir import CallFunction, Expr, InternalGraph, QParams, TensorNode, TensorType, TracedModule
from tmconvert.ir.fake_quant import finest_scales
from tmconvert.ir.symbolic.dims import example
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.unsupported import unsupported_error
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.fold_scale_bias import FoldScaleBias
from tmconvert.passes.fuse_conv_bn import FuseConvBn
from tmconvert.passes.initial import fused_idioms
from tmconvert.passes.manager import Pass, PassManager
from tmconvert.passes.matching import integer_weights
from tmconvert.passes.propagate_qparams import REQUANTIZE
from tmconvert.passes.select_decomposition import SelectDecomposition
from tmconvert.progress import begin
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Average, FixedRange, KeepsQparams

_MARGIN = {"int16": 2.0, "places": 1.5}  # of ranges around what was seen
_LEAST = 2.0**-8  # of the range of numbers, that of a mean
_TINY = float(np.finfo(np.float32).tiny)
_ENDS = {"int8": (-128, 127), "narrow": (-128, 127), "int16": (-32768, 32767), "places": (-2048, 2047)}


@dataclass
class _Calibration:
    graph: InternalGraph
    kind_of: KindOf
    nodes: list[TensorNode]
    open: OpenSizes
    seen: dict[str, Histogram] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def calibrate(
    module: TracedModule,
    data: Any,
    catalogue: Mapping[str, Op],
    settings: Settings,
    overrides: IoOverrides = NO_OVERRIDES,
) -> TracedModule:
    """Returns a model of ATen ops with QParams measured on ``data``.

    The model is cut and reshaped by ``overrides``. Its dynamic sizes are those of the first sample while it
    is measured; those on which no constant of the graph depends stay dynamic. ``data`` is that of
    ``Samples``. Raises UsageError TM6032 for rules that match no tensor, TM6033 for data that cannot be used.
    """
    begin("calibrate")
    opened, sizes = _at_data(bind_model(module, overrides, catalogue), data, settings)
    work = _prepared(opened, catalogue, settings)
    samples = Samples(data, inputs_of(work.graph), settings, sizes_note(sizes))
    if settings.equalization:
        equalize(work.graph, catalogue, samples, work.nodes, is_per_channel=settings.per_channel)
    work.kind_of = expand(work.graph, catalogue, work.kind_of)
    work.nodes = observed_nodes(work.graph, work.kind_of)
    measured = work.graph.copy()
    PassManager([SelectDecomposition(takes_steps=True), EliminateDeadCode()], catalogue).run(measured)
    found, count = measure(measured, catalogue, samples, lambda: _histograms(work), counts=True)
    work.seen = {name: histogram for name, (histogram,) in found.items()}
    _annotate(work, settings, count)
    if settings.bias_correction:
        correct_biases(work.graph, catalogue, samples)
    made = as_module(work.graph, module, catalogue)
    work.open.leave(made)
    made.notes += work.notes
    if sizes:
        made.notes.append(f"calibrated at {sizes_note(sizes)}, the sizes of the data")
    return made


def _at_data(opened: BoundModel, data: Any, settings: Settings) -> tuple[BoundModel, dict[str, int]]:
    """Returns the model with the open sizes that the first sample has, and these where they are others."""
    if not opened.symbols:
        return opened, {}
    inputs = [
        (name, TensorType(np.dtype(np.float32), tuple(map(example, shape))))
        for name, shape in opened.shapes.items()
    ]
    shapes = Samples(data, inputs, settings).first_shapes()
    sizes = sizes_of_data(opened, shapes)
    return at_sizes(opened, sizes), sizes


def _prepared(opened: BoundModel, catalogue: Mapping[str, Op], settings: Settings) -> _Calibration:
    with SizeJournal():
        normalized = opened.normalized(catalogue, opened.example())
        if normalized.unsupported:
            raise unsupported_error(normalized.unsupported, "tflite")
        graph = normalized.graph
        _simplify(graph, catalogue)
    if any(isinstance(node, TensorNode) and node.qparams for expr in graph for node in expr.outputs):
        raise UsageError(
            "TM6032",
            "the model was trained with fake quantization: it has scales already",
            notes=[("help", "convert it with --quantized, without calibration")],
        )
    rules: list[tuple[str, Kind]] = [
        (pattern, "int16" if kind == "int16x8" else kind) for pattern, kind in settings.rules.items()
    ]
    for pattern in unused(graph, rules):
        raise UsageError(
            "TM6032",
            f"the rule {pattern} matches no module and no tensor",
            notes=[("help", _near(pattern, graph) or "`tmconvert inspect MODEL` lists the modules")],
        )
    for pattern, expr in without_effect(graph, rules):
        raise UsageError(
            "TM6032",
            f"the rule {pattern} has no effect: {expr.outputs[0].name} has the same scale as its operand",
            notes=[("help", "name the layer before it")],
        )
    kind_of = kinds(graph, rules)
    if not observed_nodes(graph, kind_of):
        why = "the rules keep all of it in float" if rules else "it has no float32 computations"
        raise UsageError("TM6032", f"the model has no tensor to measure: {why}")

    def expanded(other: InternalGraph) -> None:
        _simplify(other, catalogue)
        expand(other, catalogue, kind_of)

    sizes = open_sizes(opened, catalogue, expanded)
    return _Calibration(graph, kind_of, observed_nodes(graph, kind_of), sizes)


def _near(pattern: str, graph: InternalGraph) -> str:
    """Returns suggestions for a pattern that matches nothing."""
    names = dict.fromkeys(name for expr in graph for name in called(expr))
    near = difflib.get_close_matches(pattern, names, 3)
    return f"similar names: {', '.join(near)}" if near else ""


def _simplify(graph: InternalGraph, catalogue: Mapping[str, Op]) -> None:
    passes: list[Pass] = [EliminateDeadCode(), FoldConstants(catalogue), FuseConvBn()]
    folded = FoldScaleBias(catalogue, roots=False)
    PassManager([*passes, *fused_idioms(catalogue), folded], catalogue).run(graph)


def _histograms(work: _Calibration) -> Statistics:
    given = {node.name for node in work.graph.inputs}  # pixels, most often, which have ends
    return {name: [Histogram(has_tails=name not in given)] for name in map(measured_name, work.nodes)}


def _annotate(work: _Calibration, settings: Settings, count: int) -> None:
    source = f"{settings.method} of {count} samples"
    method = METHODS[settings.method]
    ranges = {node: _range(work.seen[measured_name(node)], node.expr, work, method) for node in work.nodes}
    for operand, result in shared(work.graph, work.nodes):
        ranges[operand] = ranges[result]
    for node in ranges:
        ranges[node] = _wide_enough(node, ranges)
    for node, (low, high) in ranges.items():
        if node.qparams is not None:  # an input's, which was given
            continue
        if low == high and node in work.graph.inputs:
            work.notes.append(f"{node.name} is 0 in all samples, so that its range cannot be measured")
        expr = node.expr
        assert expr is not None
        kind = work.kind_of(expr)
        if kind == "float":  # an input that others use in integers
            kind = "int8"
        node.qparams = _fixed(expr, kind, source) or _qparams(low, high, kind, source)
    _narrow(work, ranges, method, source)
    for constant, axis in weights(work.graph, work.kind_of):
        value = np.asarray(constant.value)
        constant.output.qparams = weight_qparams(value, axis if settings.per_channel else None)


def _narrow(
    work: _Calibration, ranges: Mapping[TensorNode, tuple[float, float]], method: Method, source: str
) -> None:
    """Int8 layers with an int16 operand: its scale was measured for int8, so that all 256 steps are used."""
    made: dict[TensorNode, TensorNode] = {}
    for expr in list(work.graph):
        if not isinstance(expr, CallFunction) or integer_weights(expr) is None or not expr.outputs:
            continue
        operand = expr.args[0]
        measured = operand
        while measured not in ranges and has_trait(whole_call(measured.expr), KeepsQparams):
            measured = measured.expr.args[0]
        kind = None if measured.qparams is None or measured not in ranges else measured.qparams.dtype
        if kind != "int16" or computed_kind(work.graph, expr, work.kind_of) != "int8":
            continue
        if operand not in made:
            seen = work.seen[measured_name(measured)]
            low, high = method(seen)
            node = TensorNode(work.graph.free_name(f"{operand.name}_int8"), operand.shape, operand.dtype)
            node.qparams = _qparams(below(low, high) if seen.hides else low, high, "int8", source)
            work.graph.insert(
                CallFunction(REQUANTIZE, (operand,), {}, result=node, source=expr.source), before=expr
            )
            made[operand] = node
        work.graph.set_arguments(expr, (made[operand], *expr.args[1:]), dict(expr.kwargs))


def _range(seen: Histogram, expr: Expr | None, work: _Calibration, method: Method) -> tuple[float, float]:
    """int16 has enough steps for a wider range than measured; masks hide values below it.

    It ends with the bounds of a clamp, for which integers then have no use.
    """
    assert expr is not None
    margin = _MARGIN.get(work.kind_of(expr))
    low, high = method(seen) if margin is None else (margin * end for end in min_max(seen))
    low = below(low, high) if seen.hides else low
    least, most = result_bounds(expr)
    high = min(high, most)
    return min(max(low, least), high), high


def _wide_enough(node: TensorNode, ranges: Mapping[TensorNode, tuple[float, float]]) -> tuple[float, float]:
    """Returns a larger range for a mean that is zero up to rounding, as of a normalized tensor.

    Kernels wrap around where a result lies too far beyond its range.
    """
    low, high = ranges[node]
    expr = node.expr
    if not isinstance(expr, CallFunction) or not has_trait(expr, Average):
        return low, high
    operand = expr.args[0]
    while operand not in ranges and has_trait(whole_call(operand.expr), KeepsQparams):
        operand = operand.expr.args[0]
    least = _LEAST * max(map(abs, ranges.get(operand, (0.0,))))
    return (low, high) if high - low > least else (min(low, -least), max(high, least))


def _qparams(low: float, high: float, kind: Kind, source: str) -> QParams:
    """Returns QParams from the ends of a range, with 0 exact. int16 is symmetric; LUT indices may start
    at 0.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    first, last = (0, 4095) if kind == "places" and low == 0 else _ENDS[kind]
    if kind in ("int16", "places"):
        scale = float(np.float32(max(-low, high, _TINY) / last)) if high > low else 1 / last
        return QParams("int16", (scale,), (0,), first, last, symmetric=True, source=source)
    scale = float(np.float32(max((high - low) / (last - first), _TINY))) if high > low else 1.0
    zero_point = int(np.clip(round(first - low / scale), first, last))
    return QParams("int8", (scale,), (zero_point,), first, last, source=source)


def _fixed(expr: Expr, kind: Kind, source: str) -> QParams | None:
    """Returns the fixed QParams of a result, for kernels with a fixed output scale."""
    fixed = trait_of(whole_call(expr), FixedRange)
    if fixed is None or kind not in ("int8", "int16") or (kind == "int16" and not fixed.in_int16):
        return None
    first, last = _ENDS[kind]
    if kind == "int16":
        return QParams(kind, (1 / (last + 1),), (0,), first, last, symmetric=True, source=source)
    scale = (fixed.high - fixed.low) / (last - first + 1)
    zero_point = min(round(first - fixed.low / scale), last)
    return QParams(kind, (scale,), (zero_point,), first, last, source=source)


def weight_qparams(weight: np.ndarray, axis: int | None) -> QParams:
    """Returns symmetric QParams in [-127, 127], with a scale per index of ``axis``, or a single one."""
    others = tuple(each for each in range(weight.ndim) if each != axis) if axis is not None else None
    largest = np.max(np.abs(weight), axis=others, initial=0).reshape(-1)
    scale = tuple(map(float, finest_scales(largest)))
    return QParams("int8_narrow", scale, (0,) * len(scale), -127, 127, axis, symmetric=True, source="weights")
