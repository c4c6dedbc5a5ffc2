"""Cross-layer equalization: scales channels between layers so that all use the integer range equally.

The results of a layer are divided by a factor for each channel, and the weights of the layers after it are
multiplied by it: the same function in real numbers. ``channels.py`` finds these layers. Source: Nagel et al.,
"Data-Free Quantization Through Weight Equalization and Bias Correction", 2019, section 4.1. Here it applies
to chains, branches and sums of any length, and factors are chosen by measured ranges. With the ranges r of
the channels and the largest weights w of the layers after them, the candidates are r^a / w^b. The candidate
with the least quantization noise, relative to the results of the layers, is used: the noise of tensors times
the weights after them, plus the noise of weights times their operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from tmconvert.calibration.channels import Channels, channels, components, ends
from tmconvert.calibration.matrices import columns, rows, weight_of
from tmconvert.calibration.measuring import measure
from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.symbolics.op import Op

_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_MOST = 16.0  # of the largest factor of a tensor, by the smallest
_DEVIATIONS = 5.0  # from the mean: channels are rarely seen at their ends
_GAIN = 1e-3  # below which factors are not worth it
_STEPS, _WEIGHT_STEPS = 255, 127
_TINY = 1e-30


def equalize(
    graph: InternalGraph,
    catalogue: Mapping[str, Op],
    samples: Iterable[Sequence[np.ndarray]],
    nodes: Sequence[TensorNode],
    *,
    is_per_channel: bool,
) -> int:
    """Scales channels of ``graph`` in place; returns their number. ``nodes`` are the tensors to be quantized.

    ``is_per_channel`` says whether weights have a scale for each channel.
    """
    found = channels(graph)
    quantized = [node for node in nodes if node in found.labels]
    given = [call.args[0] for call in found.after]
    axes = {node.name: found.labels[node].axis for node in [*map(_origin, quantized), *given]}
    if not axes or found.held.all():
        return 0
    measured, _ = measure(
        graph, catalogue, samples, lambda: {name: [_Seen(axis)] for name, axis in axes.items()}
    )
    seen: dict[str, _Seen] = {name: each for name, (each,) in measured.items()}
    if not all(each.count for each in seen.values()):
        return 0
    tensors = [_tensor(node, found, seen[_origin(node).name]) for node in quantized]
    layers = [_layer(call, found, seen[call.args[0].name]) for call in found.after]
    factors = _factors(found, tensors, layers, is_per_channel)
    for call in found.layers:
        _scale(call, found, factors)
    for call in found.clamps:
        _clamp(call, found, factors, graph)
    return int(np.count_nonzero(factors != 1))


# ---- what is measured


class _Seen:
    """Minimum, maximum, mean and mean square of each channel of a tensor."""

    def __init__(self, axis: int) -> None:
        self.axis, self.count = axis, 0
        self.low = self.high = self.sums = self.squares = np.zeros(())

    def add(self, array: np.ndarray) -> None:
        others = tuple(axis for axis in range(array.ndim) if axis != self.axis)
        self.low = np.minimum(self.low, array.min(axis=others, initial=0))
        self.high = np.maximum(self.high, array.max(axis=others, initial=0))
        self.sums = self.sums + array.sum(axis=others, dtype=np.float64)
        axes = list(range(array.ndim))
        self.squares = self.squares + np.einsum(array, axes, array, axes, [self.axis], dtype=np.float64)
        self.count += array.size // max(array.shape[self.axis], 1)

    def merge(self, later: _Seen) -> None:
        self.low, self.high = np.minimum(self.low, later.low), np.maximum(self.high, later.high)
        self.sums, self.squares = self.sums + later.sums, self.squares + later.squares
        self.count += later.count

    @property
    def power(self) -> np.ndarray:
        return self.squares / max(self.count, 1)

    def reach(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the range of each channel: that of the samples, extended by deviations from the mean."""
        mean = self.sums / max(self.count, 1)
        away = _DEVIATIONS * np.sqrt(np.maximum(self.power - mean * mean, 0))
        return np.minimum(self.low, mean - away), np.maximum(self.high, mean + away)


def _origin(node: TensorNode) -> TensorNode:
    """Returns the input of a clamp, whose statistics are more complete than those of its result."""
    call = node.expr
    if isinstance(call, CallFunction) and ends(call) != (None, None):
        return call.args[0]
    return node


@dataclass
class _Tensor:
    """A quantized tensor: the group numbers of its channels, and their ranges."""

    numbers: np.ndarray
    low: np.ndarray
    high: np.ndarray
    is_bounded: bool

    def noise(self, factors: np.ndarray, importance: np.ndarray) -> float:
        """Returns the quantization noise of the tensor."""
        scale = factors[self.numbers]
        step = (np.max(self.high / scale) - np.min(self.low / scale)) / _STEPS
        return float(step * step / 12 * np.sum(scale * scale * importance[self.numbers]))


def _tensor(node: TensorNode, found: Channels, seen: _Seen) -> _Tensor:
    low, high = seen.reach()
    least, most = ends(node.expr) if isinstance(node.expr, CallFunction) else (None, None)
    low, high = (
        np.clip(each, least, most) if (least, most) != (None, None) else each for each in (low, high)
    )
    return _Tensor(found.labels[node].numbers, low, high, most is not None)


@dataclass
class _Layer:
    """A layer with weights [O, C / groups]: group numbers of its input channels, largest weights and sums of
    squares over the taps, mean squares of its inputs; ``power`` is the mean square of its results.
    """

    numbers: np.ndarray
    largest: np.ndarray
    squares: np.ndarray
    given: np.ndarray
    taps: int
    power: float

    def noise(self, factors: np.ndarray, is_per_channel: bool) -> float:
        """Returns the quantization noise of the weights."""
        scale = factors[self.numbers]
        steps = np.max(self.largest * scale, axis=1 if is_per_channel else None) / _WEIGHT_STEPS
        sums = self.taps * np.sum(self.given / (scale * scale), axis=1)
        return float(np.sum(steps * steps / 12 * sums) / self.power)


def _layer(call: CallFunction, found: Channels, seen: _Seen) -> _Layer:
    matrix = np.abs(rows(call, _constant(call.args[1])).astype(np.float64))
    places = columns(call, matrix)
    given, squares = seen.power[places], np.sum(matrix * matrix, axis=2)
    power = max(float(np.sum(squares * given)), _TINY)
    numbers = found.labels[call.args[0]].numbers[places]
    return _Layer(numbers, matrix.max(axis=2), squares, given, matrix.shape[2], power)


# ---- what is chosen


@dataclass
class _Part:
    """Connected channel groups, whose factors are chosen together."""

    tensors: list[_Tensor] = field(default_factory=list)
    layers: list[_Layer] = field(default_factory=list)


def _factors(
    found: Channels, tensors: Sequence[_Tensor], layers: Sequence[_Layer], is_per_channel: bool
) -> np.ndarray:
    """Returns the factor of each group."""
    count = len(found.held)
    importance, weight, reach = np.zeros(count), np.zeros(count), np.zeros(count)
    for layer in layers:
        np.add.at(importance, layer.numbers, layer.squares / layer.power)
        np.maximum.at(weight, layer.numbers, layer.largest / max(float(layer.largest.max(initial=0)), _TINY))
    for tensor in tensors:
        span = tensor.high - tensor.low
        np.maximum.at(reach, tensor.numbers, span / max(float(span.max(initial=0)), _TINY))
    names = components(count, [(each.numbers[:-1], each.numbers[1:]) for each in tensors])
    parts: dict[int, _Part] = {}
    for tensor in tensors:
        parts.setdefault(int(names[tensor.numbers[0]]), _Part()).tensors.append(tensor)
    for layer in layers:
        parts.setdefault(int(names[layer.numbers.flat[0]]), _Part()).layers.append(layer)
    factors = np.ones(count)
    for name, part in parts.items():
        free = np.flatnonzero((names == name) & ~found.held & (reach > 0) & (weight > 0))
        best = np.inf
        # where all factors were those of weights, a bound might lie within the range
        powers = (0.0,) if any(tensor.is_bounded for tensor in part.tensors) else _POWERS
        for a, b in product(_POWERS, powers):
            tried = factors.copy()
            tried[free] = _center(reach[free] ** a / weight[free] ** b)
            noise = sum(tensor.noise(tried, importance) for tensor in part.tensors)
            noise += sum(layer.noise(tried, is_per_channel) for layer in part.layers)
            if noise < best * (1 - _GAIN):
                best, chosen = noise, tried[free]
        if np.isfinite(best):
            factors[free] = chosen
    return factors


def _center(factors: np.ndarray) -> np.ndarray:
    """Returns factors normalized around 1, limited, and rounded to 12 binary digits.

    Their last digits are those of sums of floats, which depend on the processor.
    """
    if not factors.size or np.all(factors == 1):
        return factors
    centered = np.clip(factors / np.exp(np.mean(np.log(factors))), _MOST**-0.5, _MOST**0.5)
    fractions, exponents = np.frexp(centered)
    rounded: np.ndarray = np.ldexp(np.round(fractions * 2**12) / 2**12, exponents)
    return rounded


# ---- what is done


def _scale(call: CallFunction, found: Channels, factors: np.ndarray) -> None:
    """Divides the results of a layer by factors, and multiplies its weights by those of its operand."""
    x, weight, bias = call.args
    own = factors[found.labels[call.output].numbers]
    matrix = rows(call, _constant(weight)).astype(np.float64) / own[:, None, None]
    if call in found.after:
        matrix *= factors[found.labels[x].numbers][columns(call, matrix)][..., None]
    _change(weight, weight_of(call, matrix, _constant(weight).shape))
    if bias is not None:
        _change(bias, _constant(bias) / own)


def _clamp(call: CallFunction, found: Channels, factors: np.ndarray, graph: InternalGraph) -> None:
    """Scales a clamp per channel: ReLU and minimum, redundant in integer files (``redundant_clamps.py``)."""
    labels, result = found.labels[call.output], call.output
    own = factors[labels.numbers]
    if np.all(own == 1):
        return
    assert isinstance(result, TensorNode)
    shape = [-1 if axis == labels.axis else 1 for axis in range(len(result.type.shape))]
    bounds = (ends(call)[1] / own).astype(result.dtype).reshape(shape)
    made, relu, bounded = (
        TensorNode(graph.free_name(f"{result.name}_{ending}"), extents, result.dtype)
        for ending, extents in (("bounds", bounds.shape), ("relu", result.shape), ("bounded", result.shape))
    )
    common: dict[str, Any] = {"source": call.source, "made_by": "equalize"}
    for expr in (
        Constant(bounds, None, result=made, **common),
        CallFunction("aten::relu", (call.args[0],), {}, result=relu, **common),
        CallFunction("aten::minimum", (relu, made), {}, result=bounded, **common),
    ):
        graph.insert(expr, before=call)
    graph.substitute(result, bounded)


def _constant(node: object) -> np.ndarray:
    assert isinstance(node, TensorNode) and isinstance(node.expr, Constant)
    return np.asarray(node.expr.value)


def _change(node: object, value: np.ndarray) -> None:
    assert isinstance(node, TensorNode) and isinstance(node.expr, Constant)
    node.expr.value = value.astype(node.dtype)
