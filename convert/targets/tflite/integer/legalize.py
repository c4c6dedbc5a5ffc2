"""Replaces integer operators that older runtimes lack for their types by others that these have.

Which runtime runs which types is measured (``data/element_types.txt``). Without an alternative an error names
the release that runs it. Sums whose scales are powers of two get an option, in every release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.origins import Role
from tmconvert.lowering.rewriting import names_of_values
from tmconvert.lowering.target_graph import Attribute, Operator, Quantization, TargetGraph, Value
from tmconvert.targets.tflite.integer.constants import INT32
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.runtimes import types_refusal

# The first releases that are right where types alone do not tell.
_ONE_ZERO = 22  # XNNPACK in 2.20 and 2.21 takes the zero point of the second of two matrices for 0
_ROWS = 19  # before, biases of channels in int16 are wrong where axes in front are kept
_BROADCAST = 15  # before, broadcasting above rank 4 ends the process
# How far from an integer the logarithm of a scale may be for the kernels of powers of two.
_NEAR = 1e-3


def legalize(graph: TargetGraph) -> TargetGraph:
    """Returns a copy of ``graph`` with operators that its runtime supports, where possible."""
    return replace(graph, operators=list(_Legalizer(graph).operators()))


class _Legalizer:
    def __init__(self, graph: TargetGraph) -> None:
        assert isinstance(graph.version, int)
        self.graph, self.runtime = graph, graph.version
        self.one: Value | None = None  # shared by all that it requantizes
        self.names = names_of_values(graph)

    def operators(self) -> Iterator[Operator]:
        for operator in self.graph.operators:
            form = self._replacement(operator)
            yield from (operator,) if form is None else form(operator)

    def _replacement(self, operator: Operator) -> Callable[[Operator], Iterator[Operator]] | None:
        if (
            operator.type == "BATCH_MATMUL"
            and self.runtime < _ONE_ZERO
            and _has_zero_point(operator.inputs[1])
        ):
            return self._multiply_symmetric
        if self.runtime < _ROWS and _keeps_axes(operator):
            return self._multiply_rows
        if self.runtime < _BROADCAST and operator.type == "MUL" and _broadcasts(operator):
            return self._broadcast
        if "pot_scale_int16" in spec(operator.type).option_fields and _has_powers_of_two(operator):
            return self._clear_power_of_two
        if types_refusal(operator, self.runtime) is None:
            return None
        if operator.type == "QUANTIZE":
            return self._quantize_by_sum
        if operator.type == "SUM":
            return self._sum_by_mean
        kernel = spec(operator.type).integer
        relation = None if kernel is None else kernel.relation
        if relation == "compared":
            return self._compare_as_int32
        return self._move_as_int32 if relation == "same" else None

    def _quantize_by_sum(self, operator: Operator) -> Iterator[Operator]:
        """Returns the integers in 16 bits, minus the zero point, by an exact sum."""
        x, result = operator.inputs[0], operator.outputs[0]
        assert x is not None and x.quantization is not None and x.quantization.zero_point is not None
        quantization = x.quantization._replace(zero_point=np.zeros(1, np.int64))
        wide = self._value(operator, "wide", result.dtype, quantization)
        data = np.array(-int(x.quantization.zero_point[0]), result.dtype)
        zero = Value(self.names.free(f"{result.name}_zero"), result.dtype, (), data, quantization)
        yield _cast(x, wide)
        yield replace(operator, type="ADD", inputs=[wide, zero], attributes={"pot_scale_int16": False})

    def _clear_power_of_two(self, operator: Operator) -> Iterator[Operator]:
        """Uses the kernel for all scales; the one for powers of two shifts one operand at most, and down."""
        yield replace(operator, attributes={**operator.attributes, "pot_scale_int16": False})

    def _compare_as_int32(self, operator: Operator) -> Iterator[Operator]:
        """Compares as int32: both operands have one scale."""
        wide = [self._wide(value) for value in operator.inputs if value is not None]
        for value, made in zip(operator.inputs, wide, strict=True):
            if value is not None and not made.is_constant:
                yield _cast(value, made)
        yield replace(operator, inputs=list(wide))

    def _move_as_int32(self, operator: Operator) -> Iterator[Operator]:
        """Casts to int32 and back."""
        places = spec(operator.type).data_of(len(operator.inputs))
        inputs = list(operator.inputs)
        for i in places:
            value = inputs[i]
            assert value is not None
            inputs[i] = made = self._wide(value)
            if not made.is_constant:
                yield _cast(value, made)
        results = [
            Value(self.names.free(f"{each.name}_wide"), INT32, each.shape) for each in operator.outputs
        ]
        yield replace(operator, inputs=inputs, outputs=results)
        for made, result in zip(results, operator.outputs, strict=True):
            yield _cast(made, result)

    def _sum_by_mean(self, operator: Operator) -> Iterator[Operator]:
        """Mean, computed by a sum with a scale that is larger by the number of elements."""
        x, result = operator.inputs[0], operator.outputs[0]
        assert x is not None and result.quantization is not None
        count = int(np.prod(x.shape)) // max(int(np.prod(result.shape)), 1)
        quantization = result.quantization._replace(scale=result.quantization.scale / np.float32(count))
        mean = self._value(operator, "mean", result.dtype, quantization)
        scale = Quantization(np.array([count], np.float32), 0, np.zeros(1, np.int64))
        one = Value(
            self.names.free(f"{result.name}_count"), result.dtype, (), np.array(1, result.dtype), scale
        )
        yield replace(operator, type="MEAN", name=mean.name, outputs=[mean])
        yield replace(operator, type="MUL", inputs=[mean, one], attributes={})

    def _multiply_symmetric(self, operator: Operator) -> Iterator[Operator]:
        """Product with a second matrix whose zero point is 0."""
        y = operator.inputs[1]
        assert y is not None and y.quantization is not None and y.quantization.zero_point is not None
        zero, scale = int(y.quantization.zero_point[0]), float(y.quantization.scale[0])
        largest = max(127 - zero, 128 + zero)
        quantization = Quantization(np.array([scale * largest / 127], np.float32), 0, np.zeros(1, np.int64))
        made = Value(self.names.free(f"{y.name}_symmetric"), y.dtype, y.shape, None, quantization)
        origin = self.graph.origins.get(y)
        if origin is not None:
            qparams = QParams("int8", (scale * largest / 127,), (0,), -128, 127)
            self.graph.origins[made] = origin._replace(role=Role.REQUANTIZED, qparams=qparams)
        if y.data is not None:
            steps = (y.data.astype(np.float64) - zero) * (127 / largest)
            made.stored = np.rint(steps).astype(y.dtype)
        else:
            yield Operator("MUL", [y, self._one()], [made], {}, f"/{made.name}/MUL", operator.source)
        yield replace(operator, inputs=[operator.inputs[0], made, *operator.inputs[2:]])

    def _one(self) -> Value:
        """Returns the factor that requantizes: a product is rounded once, unlike the ratio in a QUANTIZE."""
        if self.one is None:
            quantization = Quantization(np.ones(1, np.float32), 0, np.zeros(1, np.int64))
            data = np.array(1, np.int8)
            self.one = Value(self.names.free("one"), data.dtype, (), data, quantization)
        return self.one

    def _multiply_rows(self, operator: Operator) -> Iterator[Operator]:
        """Fully-connected layer of a matrix, reshaped before and after."""
        x, result = operator.inputs[0], operator.outputs[0]
        assert x is not None
        rows, made = (
            Value(
                self.names.free(f"{each.name}_rows"),
                each.dtype,
                (-1, each.shape[-1]),
                None,
                each.quantization,
            )
            for each in (x, result)
        )
        count = int(np.prod(x.shape[:-1]))
        rows.shape, made.shape = (count, x.shape[-1]), (count, result.shape[-1])
        attributes = {**operator.attributes, "keep_num_dims": False}
        yield self._reshape(x, rows, operator)
        yield replace(operator, inputs=[rows, *operator.inputs[1:]], outputs=[made], attributes=attributes)
        yield self._reshape(made, result, operator)

    def _reshape(self, x: Value, made: Value, operator: Operator) -> Operator:
        shape = self._shape(made.name, made.shape)
        attributes: dict[str, Attribute] = {"new_shape": list(made.shape)}
        return Operator("RESHAPE", [x, shape], [made], attributes, f"/{made.name}/RESHAPE", operator.source)

    def _shape(self, name: str, shape: tuple[int, ...]) -> Value:
        numbers = np.array(shape, INT32)
        return Value(self.names.free(f"{name}_shape"), INT32, numbers.shape, numbers)

    def _broadcast(self, operator: Operator) -> Iterator[Operator]:
        """Broadcasts operands to the shape of the result."""
        shape, inputs = operator.outputs[0].shape, list(operator.inputs)
        for i, value in enumerate(operator.inputs):
            if value is None or value.shape == shape:
                continue
            name = self.names.free(f"{value.name}_broadcast")
            inputs[i] = made = Value(name, value.dtype, shape, None, value.quantization)
            if value.data is not None:
                made.stored = np.ascontiguousarray(np.broadcast_to(value.data, shape))
                continue
            wanted: list[Value | None] = [value, self._shape(name, shape)]
            yield Operator("BROADCAST_TO", wanted, [made], {}, f"/{name}/BROADCAST_TO", operator.source)
        yield replace(operator, inputs=inputs)

    def _value(
        self, operator: Operator, part: str, dtype: np.dtype, quantization: Quantization | None = None
    ) -> Value:
        result = operator.outputs[0]
        return Value(self.names.free(f"{result.name}_{part}"), dtype, result.shape, None, quantization)

    def _wide(self, value: Value) -> Value:
        name = self.names.free(f"{value.name}_wide")
        if value.data is not None:
            return Value(name, INT32, value.shape, value.data.astype(INT32))
        return Value(name, INT32, value.shape)


def _has_zero_point(value: Value | None) -> bool:
    if value is None or value.dtype != np.int8 or value.quantization is None:
        return False
    return value.quantization.zero_point is not None and bool(value.quantization.zero_point.any())


def _keeps_axes(operator: Operator) -> bool:
    x = operator.inputs[0] if operator.type == "FULLY_CONNECTED" else None
    has_bias = len(operator.inputs) > 2 and operator.inputs[2] is not None
    return x is not None and x.dtype == np.int16 and len(x.shape) > 2 and has_bias


def _broadcasts(operator: Operator) -> bool:
    shape = operator.outputs[0].shape
    return len(shape) > 4 and any(value is not None and value.shape != shape for value in operator.inputs)


def _cast(value: Value, made: Value) -> Operator:
    options: dict[str, Attribute] = {
        "in_data_type": value.dtype.name.upper(),
        "out_data_type": made.dtype.name.upper(),
    }
    return Operator("CAST", [value], [made], options, f"/{made.name}/CAST")


def _has_powers_of_two(operator: Operator) -> bool:
    """Whether all scales of a sum in int16 are powers of two, as LiteRT's CheckedLog2 rounds them."""
    values = [value for value in (*operator.inputs, *operator.outputs) if value is not None]
    if any(value.dtype != np.int16 or value.quantization is None for value in values):
        return False
    powers = np.log2([value.quantization.scale[0] for value in values if value.quantization is not None])
    return bool((np.abs(powers - np.rint(powers)) < 2 * _NEAR).all())
