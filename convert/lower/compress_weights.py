"""TFLite: weights stored in fewer bits, and brought back to float32 by DEQUANTIZE in the file.

The kernels compute in float32 on w' = float16(w), or on w' = scale * q with a scale for each channel and
q = round(w / scale) in [-127, 127]. Runtimes do that once, and XNNPACK folds it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .target_graph import Operator, Quantization, TargetGraph, Value

KINDS = ("float16", "int8")

# Elements; what is smaller does not matter to the file, and biases are best left alone.
_SMALL = 1024

# The input that is a weight, and the axis of its channels; BATCH_MATMUL's depends on the call.
_CHANNELS = {
    "CONV_2D": (1, 0),
    "DEPTHWISE_CONV_2D": (1, 3),
    "FULLY_CONNECTED": (1, 0),
    "TRANSPOSE_CONV": (1, 0),
    "GATHER": (0, 0),
}


@dataclass(frozen=True)
class Compressed:
    """``graph`` is to be written; ``restored`` has the same weights as plain float32 constants.

    ``before`` and ``after`` are the bytes of the weights that changed.
    """

    graph: TargetGraph
    restored: TargetGraph
    before: int
    after: int


def compress_weights(graph: TargetGraph, kind: str) -> Compressed:
    """``graph`` with its large float32 weights as ``kind``; it is left as it is."""
    weights = _Weights(kind)
    written = _Rebuilt(weights, by_operator=True).graph(graph)
    restored = _Rebuilt(weights, by_operator=False).graph(graph)
    pairs = [(before, after) for before, after in weights.stored.values() if after is not None]
    return Compressed(
        written,
        restored,
        sum(before.data.nbytes for before, _ in pairs if before.data is not None),
        sum(_bytes(after) for _, after in pairs),
    )


class _Weights:
    """Each weight once, however many operators take it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.stored: dict[int, tuple[Value, Value | None]] = {}

    def compressed(self, operator: Operator, index: int, value: Value) -> Value | None:
        """The stored form of an operator's input; None for what stays as it is."""
        if value.data is None or value.dtype != np.float32 or value.data.size < _SMALL:
            return None
        axis = _channel_axis(operator, index)
        if self.kind == "int8" and axis is None:
            return None
        if id(value) not in self.stored:
            self.stored[id(value)] = value, self._converted(value, value.data, axis)
        return self.stored[id(value)][1]

    def _converted(self, value: Value, data: np.ndarray, axis: int | None) -> Value | None:
        if not np.all(np.isfinite(data)):
            return None
        if self.kind == "int8":
            assert axis is not None
            return _int8(value, data, axis)
        if np.max(np.abs(data)) > np.finfo(np.float16).max:
            return None
        return Value(f"{value.name}_float16", np.dtype(np.float16), value.shape, data.astype(np.float16))


def _int8(value: Value, data: np.ndarray, axis: int) -> Value:
    others = tuple(each for each in range(data.ndim) if each != axis)
    largest = np.max(np.abs(data), axis=others, keepdims=True)
    scale = np.where(largest > 0, largest / np.float32(127), np.float32(1)).astype(np.float32)
    scale = np.maximum(scale, np.finfo(np.float32).tiny)
    steps = np.clip(np.rint(data / scale), -127, 127).astype(np.int8)
    quantization = Quantization(scale.reshape(-1), axis)
    return Value(f"{value.name}_int8", steps.dtype, value.shape, steps, quantization)


def restored(value: Value) -> np.ndarray:
    """The float32 numbers that DEQUANTIZE makes of a stored weight."""
    assert value.data is not None
    if value.quantization is None:
        return value.data.astype(np.float32)
    shape = [1] * value.data.ndim
    shape[value.quantization.axis] = -1
    return value.data.astype(np.float32) * value.quantization.scale.reshape(shape)


def _channel_axis(operator: Operator, index: int) -> int | None:
    """The axis of a weight's channels; None where the input is no weight."""
    if operator.type == "BATCH_MATMUL" and index == 1:
        weight = operator.inputs[1]
        assert weight is not None
        return len(weight.shape) - (2 if operator.attributes.get("adj_y") else 1)
    place, axis = _CHANNELS.get(operator.type, (-1, 0))
    return axis if index == place else None


class _Rebuilt:
    """Copies of a graph and those inside, with the stored weights by DEQUANTIZE or as plain constants."""

    def __init__(self, weights: _Weights, *, by_operator: bool) -> None:
        self.weights = weights
        self.by_operator = by_operator
        self.graphs: dict[int, TargetGraph] = {}
        self.constants: dict[int, Value] = {}

    def graph(self, graph: TargetGraph) -> TargetGraph:
        if id(graph) not in self.graphs:
            made = self.graphs[id(graph)] = replace(graph, operators=[])
            floats: dict[int, Value] = {}
            for operator in graph.operators:
                inputs = [
                    None if value is None else self._input(made, floats, operator, index, value)
                    for index, value in enumerate(operator.inputs)
                ]
                attributes = {
                    name: self.graph(value) if isinstance(value, TargetGraph) else value
                    for name, value in operator.attributes.items()
                }
                made.operators.append(replace(operator, inputs=inputs, attributes=attributes))
        return self.graphs[id(graph)]

    def _input(
        self, made: TargetGraph, floats: dict[int, Value], operator: Operator, index: int, value: Value
    ) -> Value:
        stored = self.weights.compressed(operator, index, value)
        if stored is None:
            return value
        if not self.by_operator:
            if id(value) not in self.constants:
                self.constants[id(value)] = Value(value.name, value.dtype, value.shape, restored(stored))
            return self.constants[id(value)]
        if id(value) not in floats:
            floats[id(value)] = Value(value.name, value.dtype, value.shape)
            name = f"{operator.name}/{value.name}_dequantize"
            made.operators.append(
                Operator("DEQUANTIZE", [stored], [floats[id(value)]], {}, name, operator.source)
            )
        return floats[id(value)]


def _bytes(value: Value) -> int:
    assert value.data is not None
    return value.data.nbytes + (0 if value.quantization is None else value.quantization.scale.nbytes)
