"""Bias correction: compensates the mean error of quantized weights and activations.

A layer with constant weights is linear: the mean of its results is its result for the mean of its operands.
The mean of each operand is measured twice in one pass, in float and rounded with its QParams. The result of
the rounded weights for the rounded mean differs from that of the float weights for the float mean by an error
per output channel, which is subtracted from the bias. Source: Nagel et al., "Data-Free Quantization Through
Weight Equalization and Bias Correction", 2019, section 4.2; here the means are measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tmconvert.calibration.expansion import EXPANSION
from tmconvert.calibration.measuring import Statistics, measure
from tmconvert.ir import CallFunction, Constant, InternalGraph, QParams, TensorNode
from tmconvert.ir.fake_quant import fake_quantize
from tmconvert.passes.patterns.matching import integer_weights
from tmconvert.symbolics.op import Ops
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import KeepsQparams


class _Sums:
    """The sums of a tensor over the samples, in float and rounded."""

    def __init__(self, qparams: QParams) -> None:
        self.qparams = qparams
        self.exact = self.rounded = np.zeros(())

    def add(self, array: np.ndarray) -> None:
        self._add(array, fake_quantize(array, self.qparams))

    def merge(self, later: _Sums) -> None:
        self._add(later.exact, later.rounded)

    def _add(self, exact: np.ndarray, rounded: np.ndarray) -> None:
        if not self.exact.ndim and exact.ndim:
            self.exact, self.rounded = exact.astype(np.float64), rounded.astype(np.float64)
            return
        self.exact += exact
        self.rounded += rounded


@dataclass
class _Layer:
    """A call with weights."""

    call: CallFunction
    qparams: QParams
    weight: Constant

    @property
    def operand(self) -> TensorNode:
        node = self.call.args[0]
        assert isinstance(node, TensorNode)
        return node


def correct_biases(graph: InternalGraph, catalogue: Ops, samples: Iterable[Sequence[np.ndarray]]) -> None:
    """Corrects the biases of the quantized ``graph`` with means measured on the samples."""
    layers: dict[str, list[_Layer]] = {}
    for layer in _layers(graph):
        layers.setdefault(layer.operand.name, []).append(layer)
    if not layers:
        return

    def make() -> Statistics:
        return {name: [_Sums(layer.qparams) for layer in each] for name, each in layers.items()}

    sums, count = measure(graph, catalogue, samples, make)
    for name, each in layers.items():
        for layer, seen in zip(each, sums[name], strict=True):
            _correct(layer, seen, graph, catalogue, count)


def _layers(graph: InternalGraph) -> Iterable[_Layer]:
    for expr in graph:
        if not isinstance(expr, CallFunction) or expr.made_by == EXPANSION or integer_weights(expr) is None:
            continue
        x, weight = expr.args[:2]
        if not isinstance(x, TensorNode) or not isinstance(weight, TensorNode) or weight.qparams is None:
            continue
        qparams = _qparams_of(x)
        if qparams is not None and isinstance(weight.expr, Constant):
            yield _Layer(expr, qparams, weight.expr)


def _qparams_of(node: TensorNode) -> QParams | None:
    """Returns the QParams of a tensor, or of the tensor whose elements it has."""
    while node.qparams is None:
        expr = node.expr
        if not isinstance(expr, CallFunction) or not has_trait(expr, KeepsQparams):
            return None
        node = expr.inputs[0]  # type: ignore[assignment]
    return node.qparams


def _correct(layer: _Layer, sums: _Sums, graph: InternalGraph, catalogue: Ops, count: int) -> None:
    call, weight = layer.call, np.asarray(layer.weight.value)
    assert layer.weight.output.qparams is not None
    quantized = fake_quantize(weight, layer.weight.output.qparams)
    # what is small beside the means themselves is computed from their difference
    moved = _product(call, catalogue, (sums.rounded - sums.exact) / count, quantized)
    moved += _product(call, catalogue, sums.exact / count, quantized - weight)
    weights = integer_weights(call)
    assert weights is not None
    axis = weights.channel_axis(moved.ndim)
    _take(call, moved.mean(axis=tuple(i for i in range(moved.ndim) if i != axis)), graph)


def _product(call: CallFunction, catalogue: Ops, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Computes the layer without its bias, in float64.

    In float32 the bias would have other bytes on another processor, whose BLAS adds in another order.
    """
    wide = [x.astype(np.float64), weight.astype(np.float64), None]
    return np.asarray(catalogue[call.function].evaluate(wide, call.kwargs))


def _take(call: CallFunction, error: np.ndarray, graph: InternalGraph) -> None:
    """Subtracts ``error`` from the bias of a call; adds a bias if there is none."""
    bias = call.args[2]
    old = bias.expr if isinstance(bias, TensorNode) else None
    if bias is not None and not isinstance(old, Constant):
        return
    assert old is None or isinstance(old, Constant)
    value = (-error if old is None else np.asarray(old.value) - error).astype(np.float32)
    base = f"{call.output.name}_bias" if old is None else old.output.name
    node = TensorNode(graph.free_name(base), value.shape, value.dtype)
    graph.insert(Constant(value, old.name if old else None, result=node, source=call.source), before=call)
    graph.set_arguments(call, (*call.args[:2], node), call.kwargs)
    if old is not None and not graph.is_used(old.output):
        graph.remove(old)
        graph.rename(node, base)
