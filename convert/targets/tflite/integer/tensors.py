"""The tensors of an integer graph: each tensor of the float graph in integers, by QParams, and in float."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.names import name_of_form
from tmconvert.lowering.origins import Role
from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value
from tmconvert.targets.options import IoType
from tmconvert.targets.tflite.integer.constants import FLOAT, INT32, Constants
from tmconvert.targets.tflite.integer.model import IntegerGraph
from tmconvert.targets.tflite.integer.qparams import align_qparams, is_equal, quantization

_WIDE = {"int8": (-127, 127), "int16": (-32767, 32767)}  # QParams that reach this far need no clamp
_FAR = 100  # a product of that many steps may wrap around, operators/record.py


class Tensors(Constants):
    """Converts tensors between float and integers, by operators that it appends to ``made``.

    ``source`` is the float graph, ``made.all_qparams`` are its QParams.
    """

    def __init__(self, source: TargetGraph, made: IntegerGraph) -> None:
        super().__init__(source, made)
        self.all_qparams = made.all_qparams
        self.integers: dict[tuple[Value, QParams], Value] = {}  # of a source value, by QParams
        self.floats: dict[Value, Value] = {}  # what is in float, or not quantized data

    # ---- inputs and outputs

    def add_input(self, value: Value, io_type: IoType) -> Value:
        """Returns the input of the integer graph for ``value``; it is converted to the activations' type."""
        qparams = self.all_qparams.get(value)
        if qparams is None or io_type == "float32":
            self.keep_float(value)
            return value
        given = made = _with_type(value, qparams, self._edge_type(qparams, io_type), value.name)
        self.set_origin(given, value, Role.TENSOR, qparams)
        if given.dtype.name != qparams.dtype:
            name = self.names.free(f"{value.name}_{qparams.dtype}")
            made = _with_type(value, qparams, qparams.dtype, name)
            self.set_origin(made, value, Role.INTERNAL, qparams)
            self.append("QUANTIZE", [given], [made], value.name)
        self.keep_integers(value, made, qparams)
        return given

    def add_output(self, value: Value, io_type: IoType) -> Value:
        """Returns the output of the integer graph for ``value``."""
        qparams, is_float = self.all_qparams.get(value), io_type == "float32"
        if qparams is None or (is_float and (value, qparams) not in self.integers):
            return self.dequantize(value)
        if qparams.inferred and not is_float:
            qparams = align_qparams(qparams, self.made.activations)
        result = self.quantize(value, qparams)
        if self._edge_type(qparams, io_type) == qparams.dtype:
            return result
        name, result.name = result.name, self.names.free(f"{result.name}_{qparams.dtype}")
        made = Value(name, FLOAT, value.shape) if is_float else _with_type(value, qparams, io_type, name)
        self.replace_origin(made, result, Role.INTERNAL)
        self.append("DEQUANTIZE" if is_float else "QUANTIZE", [result], [made], name)
        return made

    def _edge_type(self, qparams: QParams, io_type: IoType) -> str:
        """Returns the type of an input or output: the requested one, or the only possible one."""
        is_free = io_type == "float32" or qparams.dtype == self.made.activations
        return io_type if is_free else qparams.dtype

    # ---- tensors in one form and the other

    def quantize(self, value: Value, qparams: QParams) -> Value:
        """Returns ``value`` quantized with these QParams."""
        if value.is_constant:
            return self.constant(value, qparams)
        if (value, qparams) in self.integers:
            return self.integers[value, qparams]
        own = self.all_qparams[value]
        is_other = own.dtype == qparams.dtype and not is_equal(own, qparams)
        if is_other and not own.inferred and (value, own) not in self.integers:
            self.quantize(value, own)  # a tensor in float is rounded as in the source first
        if (value, own) in self.integers:
            if is_equal(own, qparams):
                return self.integers[value, own]
            # what int8 operators get of a tensor in int16 is what it is to them
            role = Role.QUANTIZED if (own.dtype, qparams.dtype) == ("int16", "int8") else Role.REQUANTIZED
            name = self.name(value, role)
            made = self.requantize(self.integers[value, own], qparams, name)
        else:
            role = Role.REQUANTIZED if is_other else Role.QUANTIZED
            name = self.name(value, role)
            made = Value(name, np.dtype(qparams.dtype), value.shape, None, quantization(qparams))
            self.append("QUANTIZE", [self.floats[value]], [made], made.name)
        self.set_origin(made, value, role, qparams)
        return self.keep_integers(value, made, qparams)

    def dequantize(self, value: Value) -> Value:
        """Returns ``value`` in float, dequantized if needed."""
        if value.is_constant or value in self.floats:
            return self.floats.get(value, value)
        made = Value(self.name(value, Role.DEQUANTIZED), FLOAT, value.shape)
        self.set_origin(made, value, Role.DEQUANTIZED)
        self.append("DEQUANTIZE", [self.integers[value, self.all_qparams[value]]], [made], made.name)
        self.floats[value] = made
        return made

    def keep_float(self, value: Value) -> None:
        """Records that the integer graph computes ``value`` as it is."""
        self.floats[value] = self.set_origin(value, value)

    def keep_integers(self, value: Value, made: Value, qparams: QParams) -> Value:
        """Records ``made`` as the integers of ``value``, and returns it, clamped to a range that does not use
        all of its type.
        """
        low, high = (qparams.quant_min, qparams.quant_max) if qparams.inferred else _WIDE[qparams.dtype]
        if qparams.quant_min > low:
            made = self._clamp("MAXIMUM", made, qparams, qparams.quant_min)
        if qparams.quant_max < high:
            made = self._clamp("MINIMUM", made, qparams, qparams.quant_max)
        self.integers[value, qparams] = made
        return made

    def requantize(self, value: Value, qparams: QParams, name: str) -> Value:
        """Requantizes by a product with one, rounded once, since XNNPACK's QUANTIZE of int8 also rounds the
        ratio.

        Where nearly all is beyond the range, the product would wrap around.
        """
        made = Value(name, np.dtype(qparams.dtype), value.shape, None, quantization(qparams))
        assert value.quantization is not None
        ratio = float(value.quantization.scale[0]) / qparams.scale[0]
        if value.dtype == made.dtype == np.int8 and ratio < _FAR:
            self.append("MUL", [value, self.one(ratio)], [made], name)
        else:
            self.append("QUANTIZE", [value], [made], name)
        self.made.requantized += 1
        return made

    def _clamp(self, type: str, value: Value, qparams: QParams, limit: int) -> Value:
        name, steps = value.name, np.array(limit, value.dtype)
        bound = Value(self.names.free(f"{name}_limit"), value.dtype, (), steps, value.quantization)
        number = np.array((limit - qparams.zero_point[0]) * qparams.scale[0], FLOAT)
        self.made.stored.append((bound, Value(bound.name, FLOAT, (), number), qparams))
        made = Value(name, value.dtype, value.shape, None, value.quantization)
        value.name = self.names.free(f"{name}_unlimited")
        self.replace_origin(made, value, Role.UNCLAMPED)
        self.append(type, [value, bound], [made], name)
        return made

    # ---- names, origins and operators

    def name(self, value: Value, role: Role) -> str:
        return self.names.free(name_of_form(value.name, role))

    def set_origin(
        self, made: Value, value: Value, role: Role | None = None, qparams: QParams | None = None
    ) -> Value:
        """Records ``made`` as a form of ``value``; without ``role`` as the tensor itself."""
        origin = self.source.origins.get(value)
        if origin is not None:
            self.made.graph.origins[made] = origin._replace(
                role=role or origin.role, qparams=qparams, plain=value
            )
        return made

    def replace_origin(self, made: Value, other: Value, role: Role) -> None:
        """Records that ``made`` replaces ``other``, which now has ``role``."""
        origins = self.made.graph.origins
        if other in origins:
            origins[made] = origins[other]
            origins[other] = origins[other]._replace(role=role)

    def append(
        self,
        type: str,
        inputs: list[Value | None] | list[Value],
        outputs: list[Value],
        name: str,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        made = Operator(type, list(inputs), outputs, dict(attributes or {}), f"/{name}/{type}")
        self.made.graph.operators.append(made)

    def compute_with(self, type: str, value: Value, number: int, name: str) -> Value:
        """Returns the sum or product of an int32 tensor and a constant."""
        constant = Value(self.names.free(f"{name}_number"), INT32, (), np.array(number, INT32))
        made = Value(self.names.free(name), INT32, value.shape)
        self.append(type, [value, constant], [made], made.name)
        return made


def _with_type(value: Value, qparams: QParams, kind: str, name: str) -> Value:
    """Returns a value of an integer type with QParams, which have the type of the activations."""
    if kind == "uint8":
        qparams = replace(qparams, dtype=kind, zero_point=(qparams.zero_point[0] + 128,))
    return Value(name, np.dtype(kind), value.shape, None, quantization(qparams))
