"""QuantizeLinear/DequantizeLinear pairs of tensors and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.types import QParams
from tmconvert.lowering.names import Names, name_of_form
from tmconvert.lowering.origins import Role
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx.integer.model import QdqGraph
from tmconvert.targets.onnx.integer.types import dtype_of, limits
from tmconvert.targets.onnx.operators import spec

BIAS_LIMITS = (-(2**31), 2**31 - 1)
PER_CHANNEL_SINCE = 13


class Pairs:
    """Appends pairs for tensors and constants of the float graph ``source`` to ``made``.

    ``rounded`` has what takes the place of a tensor with ``all_qparams``.
    """

    def __init__(self, source: TargetGraph, all_qparams: Mapping[Value, QParams], made: QdqGraph) -> None:
        assert isinstance(source.version, int)
        self.source, self.all_qparams, self.made, self.opset = source, all_qparams, made, source.version
        self.names = Names(value.name for each in source.nested() for value in each.values())
        self.constant_names: set[str] = set()
        self.constants: dict[tuple[Value, QParams | None, str], Value] = {}
        self.rounded: dict[Value, Value] = {}

    # ---- tensors

    def raw_output(self, value: Value) -> Value:
        """Returns the operator's own output: another tensor where ``value`` is quantized."""
        if value not in self.all_qparams:
            return value
        made = replace(value, name=self.names.free(f"{value.name}_unrounded"), qparams=None)
        return self._set_origin(made, value, Role.COMPUTED)

    def round(self, value: Value, raw: Value, role: Role) -> None:
        """Appends the pair of ``value``, which is computed as ``raw``; its result has ``role``."""
        qparams = self.all_qparams[value]
        given, parameters = self._clip(raw, qparams), self._parameters(value.name, qparams)
        whole = Value(self._name(value, Role.QUANTIZED), np.dtype(qparams.dtype), value.shape)
        self._set_origin(whole, value, Role.QUANTIZED, qparams)
        self.append("QuantizeLinear", [given, *parameters], whole)
        result = replace(value, name=value.name if role is Role.TENSOR else self._name(value, role))
        self._set_origin(result, value, role, qparams)
        pair = self.append("DequantizeLinear", [whole, *parameters], result)
        self.made.rounded.append((pair, value))
        self.rounded[value] = result
        self.made.all_qparams[value.name] = qparams

    def _clip(self, value: Value, qparams: QParams) -> Value:
        """Clips ``value`` to a range that does not use all of its type."""
        ends = limits(qparams)
        if ends is None:
            return value
        made = Value(self.names.free(f"{value.name}_clipped"), value.dtype, value.shape)
        if self.opset < spec("Clip").inputs_since:
            self.append("Clip", [value], made, {"min": ends[0], "max": ends[1]})
            return made
        numbers = [np.array(end, np.float32) for end in ends]
        bounds = [Value(self.names.free(f"{made.name}_limit"), value.dtype, (), number) for number in numbers]
        self.append("Clip", [value, *bounds], made)
        return made

    # ---- constants

    def constant(self, value: Value, qparams: QParams, dtype: str) -> Value:
        """Returns a constant as integers with a DequantizeLinear, created once."""
        key = value, qparams, dtype
        if key in self.constants:
            return self.constants[key]
        assert value.data is not None
        whole = quantize_constant(value.data, qparams, dtype)
        stored = Value(self._name(value, Role.QUANTIZED), whole.dtype, value.shape, whole)
        self._set_origin(stored, value, Role.CONSTANT, qparams)
        parameters = self._parameters(value.name, qparams, dtype)
        result = replace(value, stored=None, name=self._constant_name(value))
        self._set_origin(result, value, Role.CONSTANT, qparams)
        attributes = {} if qparams.channel_axis is None else {"axis": qparams.channel_axis}
        pair = self.append("DequantizeLinear", [stored, *parameters], result, attributes)
        self.made.stored.append((pair, value, qparams))
        self.constants[key] = result
        self.made.weights += qparams.dtype != "int32"
        return result

    def float_constant(self, value: Value) -> Value:
        """Returns a float constant, renamed where other operators use its integers under its own name."""
        key = value, None, value.dtype.name
        if key not in self.constants:
            name = self._constant_name(value)
            self.constants[key] = value if name == value.name else replace(value, name=name)
        return self.constants[key]

    def _constant_name(self, value: Value) -> str:
        """Returns an unused name for a constant, of which other forms may have taken its own."""
        name = self.names.free(f"{value.name}_again") if value.name in self.constant_names else value.name
        self.constant_names.add(name)
        return name

    def _parameters(self, name: str, qparams: QParams, dtype: str | None = None) -> list[Value]:
        """Returns scale and zero point; vectors along an axis from opset 13 on."""
        if qparams.channel_axis is not None and self.opset < PER_CHANNEL_SINCE:
            raise Refusal(
                f"{name} has per-channel scales, which ONNX supports from opset {PER_CHANNEL_SINCE} on",
                f"use --opset {PER_CHANNEL_SINCE} or later",
            )
        shape = () if qparams.channel_axis is None else (len(qparams.scale),)
        scale = np.array(qparams.scale, np.float32).reshape(shape)
        zero = np.array(qparams.zero_point).astype(dtype_of(dtype or qparams.dtype)).reshape(shape)
        return [
            Value(self.names.free(f"{name}_scale"), scale.dtype, shape, scale),
            Value(self.names.free(f"{name}_zero_point"), zero.dtype, shape, zero),
        ]

    # ---- names, origins and operators

    def _name(self, value: Value, role: Role) -> str:
        return self.names.free(name_of_form(value.name, role))

    def _set_origin(self, made: Value, value: Value, role: Role, qparams: QParams | None = None) -> Value:
        """Records ``made`` as a form of ``value`` of the float graph."""
        origin = self.source.origins.get(value)
        if origin is not None:
            self.made.graph.origins[made] = origin._replace(role=role, qparams=qparams, plain=value)
        return made

    def append(
        self,
        type: str,
        inputs: Sequence[Value],
        output: Value,
        attributes: Mapping[str, int | float] | None = None,
    ) -> Operator:
        name = f"/{output.name}/{type}"
        made = Operator(type, list(inputs), [output], dict(attributes or {}), name)
        self.made.graph.operators.append(made)
        return made


def quantize_constant(data: np.ndarray, qparams: QParams, dtype: str) -> np.ndarray:
    """Returns the integers of a constant; those of a bias are rounded half away from zero."""
    if dtype != "int32":
        return quantize(data, qparams).astype(dtype_of(dtype))
    steps = data.astype(np.float64) / np.array(qparams.scale)
    steps = np.trunc(steps + np.copysign(0.5, steps))
    return np.clip(steps, *BIAS_LIMITS).astype(np.int32)
