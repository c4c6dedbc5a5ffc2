"""ONNX: quantization as pairs of QuantizeLinear and DequantizeLinear, where ONNX Runtime looks for them.

Every tensor to which the source gives a grid is rounded to it behind the operator that makes it; weights are
integers in front of a DequantizeLinear, biases 32-bit integers at the scale of the products. An operator that
only picks or moves elements stands between two pairs of one grid, and a ReLU does, so that what is in front
of it becomes integers, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import Refusal
from ..ir.fake_quant import quantize
from ..ir.types import QParams
from .target_graph import Operator, TargetGraph, Value

# Operators behind which rounding to the operand's grid changes nothing.
_MOVING = frozenset(
    {"MaxPool", "Reshape", "Transpose", "Slice", "Flatten", "Squeeze", "Unsqueeze", "Identity"}
)
_CLAMPS = frozenset({"Relu", "Clip"})
# the operands that are weights and bias, and the axis of the weights' output channels
_WEIGHTED = {"Conv": (1, 2, 0), "ConvTranspose": (1, 2, 1), "Gemm": (1, 2, 0)}
SINCE, _CLIP_INPUTS_SINCE, _PER_CHANNEL_SINCE = 10, 11, 13
_ENDS = {"int8": (-128, 127), "uint8": (0, 255)}
_BIAS = (-(2**31), 2**31 - 1)


@dataclass
class QdqGraph:
    """``graph`` with the pairs; ``grids`` has that of each rounded tensor, by the name that it keeps."""

    graph: TargetGraph
    grids: dict[str, QParams] = field(default_factory=dict)
    weights: int = 0

    def notes(self) -> list[str]:
        return [f"{len(self.grids)} tensors and {self.weights} weights are quantized"]


def with_qdq(graph: TargetGraph, activations: str = "uint8") -> QdqGraph:
    """``graph``, which is left as it is, with the pairs, and activations as "int8" or "uint8".

    On the same grid these are the same numbers. ONNX Runtime has kernels for uint8 on every processor; others
    want int8. Raises Refusal for what the opset of ``graph`` cannot say.
    """
    assert isinstance(graph.version, int)
    if graph.version < SINCE:
        raise Refusal(f"ONNX has integers from opset {SINCE} on", f"use --opset {SINCE} or later")
    return _Pairs(graph, activations).run()


def stored_type(qparams: QParams) -> str | None:
    """The type of ONNX that holds the integers; None where there is none of eight bits."""
    for name, (low, high) in _ENDS.items():
        if low <= qparams.quant_min and qparams.quant_max <= high:
            return name
    return None


class _Pairs:
    def __init__(self, graph: TargetGraph, activations: str) -> None:
        self.source, self.activations = graph, activations
        self.made = QdqGraph(replace(graph, operators=[]))
        self.names = {value.name for each in graph.nested() for value in _all(each)}
        self.rounded: dict[int, Value] = {}  # what takes the place of a value, by its id
        self.constants: dict[tuple[int, QParams], Value] = {}
        self.grids = _settled(graph)

    def run(self) -> QdqGraph:
        graph = self.made.graph
        for value in graph.inputs:
            self._round(value, is_input=True)
        for operator in self.source.operators:
            inputs = self._operands(operator)
            outputs = [self._raw(value) for value in operator.outputs]
            graph.operators.append(replace(operator, inputs=inputs, outputs=outputs))
            for value, raw in zip(operator.outputs, outputs, strict=True):
                if raw is not value:
                    self._round(value, raw)
        graph.outputs = [self.rounded.get(id(value), value) for value in self.source.outputs]
        return self.made

    @property
    def _opset(self) -> int:
        assert isinstance(self.source.version, int)
        return self.source.version

    def _operands(self, operator: Operator) -> list[Value | None]:
        inputs = [None if value is None else self._operand(value) for value in operator.inputs]
        if operator.type in _WEIGHTED:
            self._round_bias(operator, inputs)
        return inputs

    def _operand(self, value: Value) -> Value:
        if not value.is_constant:
            return self.rounded.get(id(value), value)
        if value.qparams is None or value.dtype != np.float32 or value.qparams.dtype == "int32":
            return value
        return self._constant(value, value.qparams)

    def _round_bias(self, operator: Operator, inputs: list[Value | None]) -> None:
        """The bias as 32-bit integers, where input and weights are integers."""
        weight_at, bias_at, axis = _WEIGHTED[operator.type]
        x, weight = operator.inputs[0], operator.inputs[weight_at]
        bias = operator.inputs[bias_at] if bias_at < len(operator.inputs) else None
        if x is None or weight is None or bias is None or bias.data is None or id(x) not in self.grids:
            return
        grid = weight.qparams
        if (
            grid is None
            or not weight.is_constant
            or any(grid.zero_point)
            or grid.channel_axis not in (None, axis)
        ):
            return
        scales = np.float64(self.grids[id(x)].scale[0]) * np.array(grid.scale)
        scales = tuple(map(float, scales.astype(np.float32)))
        products = QParams("int32", scales, (0,) * len(scales), *_BIAS, None if len(scales) == 1 else 0)
        inputs[bias_at] = self._constant(bias, products)

    # ---- tensors

    def _raw(self, value: Value) -> Value:
        """What the operator itself writes: another tensor where ``value`` is to be rounded."""
        if id(value) not in self.grids:
            return value
        return replace(value, name=self._free(f"{value.name}_unrounded"), qparams=None)

    def _round(self, value: Value, raw: Value | None = None, *, is_input: bool = False) -> None:
        grid = self.grids.get(id(value))
        if grid is None:
            return
        if stored_type(grid) is None or len(grid.scale) != 1:
            raise Refusal(
                f"{value.name} has parameters that no type of eight bits, for all channels, holds",
                "write it as TFLite, which has int16, or leave it in float",
            )
        name, grid = self.activations, _in_type(grid, self.activations)
        given = self._clipped(raw or value, grid, name)
        parameters = self._parameters(value.name, grid, name)
        whole = Value(self._free(f"{value.name}_quantized"), np.dtype(name), value.shape)
        self._append("QuantizeLinear", [given, *parameters], whole)
        result = replace(value, name=self._free(f"{value.name}_dequantized") if is_input else value.name)
        self._append("DequantizeLinear", [whole, *parameters], result)
        self.rounded[id(value)] = result
        self.made.grids[value.name] = grid

    def _clipped(self, value: Value, grid: QParams, name: str) -> Value:
        """``value`` within the range of a grid that does not use all of its type."""
        low, high = _ENDS[name]
        if grid.quant_min <= low + 1 and grid.quant_max >= high - 1:
            return value
        ends = [
            np.float32((end - grid.zero_point[0]) * grid.scale[0]) for end in (grid.quant_min, grid.quant_max)
        ]
        made = Value(self._free(f"{value.name}_clipped"), value.dtype, value.shape)
        if self._opset < _CLIP_INPUTS_SINCE:
            self._append("Clip", [value], made, {"min": float(ends[0]), "max": float(ends[1])})
            return made
        limits = [Value(self._free(f"{made.name}_limit"), value.dtype, (), np.array(end)) for end in ends]
        self._append("Clip", [value, *limits], made)
        return made

    def _constant(self, value: Value, grid: QParams) -> Value:
        """A constant as integers behind a DequantizeLinear, made once."""
        key = id(value), grid
        if key in self.constants:
            return self.constants[key]
        name = "int32" if grid.dtype == "int32" else stored_type(grid)
        if name is None:
            raise Refusal(f"{value.name} has parameters that no type of eight bits holds")
        assert value.data is not None
        whole = _Stored(value.data, grid, name).array()
        stored = Value(self._free(f"{value.name}_quantized"), whole.dtype, value.shape, whole)
        parameters = self._parameters(value.name, grid, name)
        taken = {each.name for each in self.constants.values()}
        result = replace(
            value,
            stored=None,
            name=self._free(f"{value.name}_again") if value.name in taken else value.name,
        )
        attributes = {} if grid.channel_axis is None else {"axis": grid.channel_axis}
        self._append("DequantizeLinear", [stored, *parameters], result, attributes)
        self.constants[key] = result
        self.made.weights += grid.dtype != "int32"
        return result

    def _parameters(self, name: str, grid: QParams, dtype: str) -> list[Value]:
        """Scale and zero point; a vector along an axis from opset 13 on."""
        if grid.channel_axis is not None and self._opset < _PER_CHANNEL_SINCE:
            raise Refusal(
                f"{name} has a scale for each channel, which ONNX says from opset {_PER_CHANNEL_SINCE} on",
                f"use --opset {_PER_CHANNEL_SINCE} or later",
            )
        shape = () if grid.channel_axis is None else (len(grid.scale),)
        scale = np.array(grid.scale, np.float32).reshape(shape)
        zero = np.array(grid.zero_point, dtype).reshape(shape)
        return [
            Value(self._free(f"{name}_scale"), scale.dtype, shape, scale),
            Value(self._free(f"{name}_zero_point"), zero.dtype, shape, zero),
        ]

    def _append(
        self,
        type: str,
        inputs: Sequence[Value],
        output: Value,
        attributes: Mapping[str, int | float] | None = None,
    ) -> None:
        name = f"/{output.name}/{type}"
        self.made.graph.operators.append(Operator(type, list(inputs), [output], dict(attributes or {}), name))

    def _free(self, base: str) -> str:
        name, number = base, 0
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        return name


@dataclass(frozen=True)
class _Stored:
    """A constant in steps of a grid."""

    data: np.ndarray
    grid: QParams
    dtype: str

    def array(self) -> np.ndarray:
        if self.dtype != "int32":
            return quantize(self.data, self.grid).astype(self.dtype)
        steps = self.data.astype(np.float64) / np.array(self.grid.scale)
        steps = np.trunc(steps + np.copysign(0.5, steps))
        return np.clip(steps, *_BIAS).astype(np.int32)


def _in_type(grid: QParams, dtype: str) -> QParams:
    """The same numbers, counted in "int8" or "uint8"."""
    shift = _ENDS[dtype][0] - _ENDS[stored_type(grid) or dtype][0]
    return replace(
        grid,
        dtype=dtype,
        zero_point=tuple(zero + shift for zero in grid.zero_point),
        quant_min=grid.quant_min + shift,
        quant_max=grid.quant_max + shift,
    )


def _settled(graph: TargetGraph) -> dict[int, QParams]:
    """The grid that each input and result is rounded to, by id."""
    grids: dict[int, QParams] = {}
    uses: dict[int, int] = {}
    for operator in graph.operators:
        for value in operator.inputs:
            if value is not None:
                uses[id(value)] = uses.get(id(value), 0) + 1
    for value in graph.inputs:
        if value.qparams is not None and value.dtype == np.float32:
            grids[id(value)] = value.qparams
    outputs = {id(value) for value in graph.outputs}
    for operator in graph.operators:
        x = operator.inputs[0] if operator.inputs else None
        for value in operator.outputs:
            if value.qparams is not None and not value.qparams.inferred and value.dtype == np.float32:
                grids[id(value)] = value.qparams
            elif operator.type in _MOVING and x is not None and id(x) in grids:
                grids[id(value)] = grids[id(x)]
        if operator.type in _CLAMPS and x is not None and not x.is_constant and uses[id(x)] == 1:
            grid = grids.get(id(operator.outputs[0]))
            if grid is not None and id(x) not in outputs:
                grids.setdefault(id(x), grid)
    return grids


def _all(graph: TargetGraph) -> list[Value]:
    values = [*graph.inputs, *graph.outputs]
    for operator in graph.operators:
        values += [value for value in operator.inputs if value is not None]
        values += operator.outputs
    return values
