"""Calibrates a float model on data: returns a model with QParams, which converts to integer files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tmconvert.calibration.biases import correct_biases
from tmconvert.calibration.data import Samples, inputs_of
from tmconvert.calibration.data_sizes import sizes_note
from tmconvert.calibration.equalization import equalize
from tmconvert.calibration.expansion import expand, measured_name, whole_call
from tmconvert.calibration.measuring import Statistics, measure
from tmconvert.calibration.module import as_module
from tmconvert.calibration.placement import (
    Kind,
    computed_kind,
    observed_nodes,
    result_bounds,
    shared_qparams,
    weights,
)
from tmconvert.calibration.preparation import Calibration, prepare
from tmconvert.calibration.ranges import METHODS, Histogram, Method, below, min_max
from tmconvert.calibration.settings import Settings
from tmconvert.conversion.io_overrides import NO_OVERRIDES, IoOverrides
from tmconvert.ir import CallFunction, Expr, InternalGraph, QParams, TensorNode, TracedModule
from tmconvert.ir.fake_quant import finest_scales
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.manager import PassManager
from tmconvert.passes.patterns.matching import integer_weights
from tmconvert.passes.propagate_qparams import REQUANTIZE
from tmconvert.passes.select_decomposition import SelectDecomposition
from tmconvert.progress import begin
from tmconvert.symbolics.op import Ops
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Average, FixedRange, KeepsQparams

_MARGIN = {"int16": 2.0, "places": 1.5}  # of ranges around what was seen
_LEAST = 2.0**-8  # of the range of numbers, that of a mean
_TINY = float(np.finfo(np.float32).tiny)
_ENDS = {"int8": (-128, 127), "narrow": (-128, 127), "int16": (-32768, 32767), "places": (-2048, 2047)}


class CalibratedModel(NamedTuple):
    """A model of ATen ops with QParams, and the same model without them, as a graph at the sizes of the data.

    ``applied`` are the overrides that the two have, ``left`` those that a conversion applies: names.
    """

    module: TracedModule
    float_graph: InternalGraph
    applied: IoOverrides
    left: IoOverrides


def calibrate_model(
    module: TracedModule, data: Any, catalogue: Ops, settings: Settings, overrides: IoOverrides = NO_OVERRIDES
) -> CalibratedModel:
    """Returns the model with QParams measured on ``data``.

    The model is cut and reshaped by ``overrides``. Its dynamic sizes are those of the first sample while it
    is measured; those on which no constant of the graph depends stay dynamic. ``data`` is that of
    ``Samples``. Raises UsageError TM6032 for rules that match no tensor, TM6033 for data that cannot be used.
    """
    begin("calibrate")
    work = prepare(module, data, catalogue, settings, overrides)
    samples = Samples(data, inputs_of(work.graph), settings, sizes_note(work.sizes))
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
    if work.sizes:
        made.notes.append(f"calibrated at {sizes_note(work.sizes)}, the sizes of the data")
    left = IoOverrides(rename=overrides.rename)
    return CalibratedModel(made, work.float_graph, overrides._replace(rename={}), left)


def _histograms(work: Calibration) -> Statistics:
    given = {node.name for node in work.graph.inputs}  # pixels, most often, which have ends
    return {name: [Histogram(has_tails=name not in given)] for name in map(measured_name, work.nodes)}


def _annotate(work: Calibration, settings: Settings, count: int) -> None:
    source = f"{settings.method} of {count} samples"
    method = METHODS[settings.method]
    ranges = {node: _range(work.seen[measured_name(node)], node.expr, work, method) for node in work.nodes}
    for operand, result in shared_qparams(work.graph, work.nodes):
        ranges[operand] = ranges[result]
    for node in ranges:
        ranges[node] = _widen_mean(node, ranges)
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
        node.qparams = _fixed_qparams(expr, kind, source) or _qparams(low, high, kind, source)
    _narrow(work, ranges, method, source)
    for constant, axis in weights(work.graph, work.kind_of):
        value = np.asarray(constant.value)
        constant.output.qparams = weight_qparams(value, axis if settings.per_channel else None)


def _narrow(
    work: Calibration, ranges: Mapping[TensorNode, tuple[float, float]], method: Method, source: str
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
            low, high = map(_widened, method(seen))
            node = TensorNode(work.graph.free_name(f"{operand.name}_int8"), operand.shape, operand.dtype)
            node.qparams = _qparams(below(low, high) if seen.hides else low, high, "int8", source)
            work.graph.insert(
                CallFunction(REQUANTIZE, (operand,), {}, result=node, source=expr.source), before=expr
            )
            made[operand] = node
        work.graph.set_arguments(expr, (made[operand], *expr.args[1:]), dict(expr.kwargs))


def _range(seen: Histogram, expr: Expr | None, work: Calibration, method: Method) -> tuple[float, float]:
    """int16 has enough steps for a wider range than measured; masks hide values below it.

    It ends with the bounds of a clamp, for which integers then have no use.
    """
    assert expr is not None
    margin = _MARGIN.get(work.kind_of(expr))
    ends = method(seen) if margin is None else [margin * end for end in min_max(seen)]
    low, high = map(_widened, ends)
    low = below(low, high) if seen.hides else low
    least, most = result_bounds(expr)
    high = min(high, most)
    return min(max(low, least), high), high


def _widened(end: float) -> float:
    """Rounds an end of a measured range away from zero, to 14 binary digits.

    Processors sum floats in other orders, so that the last digits of what they measure differ; the scales of
    a file must not. A hundredth of a step above a rounded end counts as rounding errors.
    """
    fraction, exponent = math.frexp(abs(end))
    return math.copysign(math.ldexp(math.ceil(fraction * 2**14 - 0.01) / 2**14, exponent), end)


def _widen_mean(node: TensorNode, ranges: Mapping[TensorNode, tuple[float, float]]) -> tuple[float, float]:
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
    """Returns QParams of a range, with 0 exact. int16 is symmetric; indices of LUTs may start at 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    first, last = (0, 4095) if kind == "places" and low == 0 else _ENDS[kind]
    if kind in ("int16", "places"):
        scale = float(np.float32(max(-low, high, _TINY) / last)) if high > low else 1 / last
        return QParams("int16", (scale,), (0,), first, last, symmetric=True, source=source)
    scale = float(np.float32(max((high - low) / (last - first), _TINY))) if high > low else 1.0
    zero_point = int(np.clip(round(first - low / scale), first, last))
    return QParams("int8", (scale,), (zero_point,), first, last, source=source)


def _fixed_qparams(expr: Expr, kind: Kind, source: str) -> QParams | None:
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
