"""The builder of ONNX operators: casts for element types, and dynamic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import name_of
from tmconvert.lowering.builder import Builder
from tmconvert.lowering.target_graph import Operands, TargetGraph, Value
from tmconvert.targets.onnx.passes.casts import cast_plan
from tmconvert.targets.onnx.size_operators import OnnxSizeOperators, has_empty_axis, static_attributes

_ALLOWS_ZERO = 14  # the opset of Reshape's attribute


class OnnxBuilder(Builder):
    def __init__(self, graph: TargetGraph) -> None:
        super().__init__(graph)
        self.sizes = OnnxSizeOperators(self)
        self._uncast: dict[int, Value] = {}  # by the id of what a Cast behind an operator makes: its operand

    def inside(self, graph: TargetGraph) -> Builder:
        counterpart = super().inside(graph)
        assert isinstance(counterpart, OnnxBuilder)
        counterpart.sizes = self.sizes.inside(counterpart)
        return counterpart

    def operator(self, type: str, inputs: Operands, attributes: dict[str, Any], results: int) -> list[Value]:
        """Appends an operator unchanged. Types and shapes of its results are not known."""
        made = super().op(
            type, *inputs, shapes=[()] * results, dtype=self.result_types[0].dtype, **attributes
        )
        for value in made:
            value.is_typed = False
        return list(made)

    def ints(self, values: Sequence[int] | np.ndarray | int) -> Value:
        """Like ``Builder.ints``; Dims among the values are computed at run time."""
        return self.sizes.vector(values) if is_symbolic(values) else super().ints(values)

    def op(self, type: str, *inputs: Value | None, **options: Any) -> Any:
        """Like ``Builder.op``; inserts casts for element types that the operator does not support.

        The types of the outputs follow from the operator's schema, where it says them.
        """
        assert isinstance(self.graph.version, int)
        inputs = tuple(self.sizes.resolved(type, inputs))
        options = static_attributes(type, options, self.graph.version)
        if type == "Reshape" and self.graph.version >= _ALLOWS_ZERO:
            x, target, shape = *inputs[:2], options.get("shape", self.result_types[0].shape)
            if x is not None and target is not None and has_empty_axis(x, target, shape):
                options["allowzero"] = 1
        dtypes = tuple(None if value is None else name_of(value.dtype) for value in inputs)
        try:
            plan = cast_plan(type, dtypes, self.graph.version)
        except Refusal:
            from tmconvert.targets.onnx.integer.emulation import emulate_integers

            other_way = emulate_integers(self, type, inputs, options)
            if other_way is None:
                raise
            return other_way()
        if plan is None:
            return super().op(type, *inputs, **options)
        cast = [
            value if value is None or dtype is None else self.cast(value, dtype)
            for value, dtype in zip(inputs, plan.inputs, strict=True)
        ]
        made = super().op(type, *cast, **options)
        values = made if isinstance(made, list) else [made]
        for i, value in enumerate(values):
            output = plan.output(i)
            if output is not None:
                value.dtype = np.dtype(output.computed)
                values[i] = self.cast(value, output.wanted)
                self._uncast[id(values[i])] = value
        return values if isinstance(made, list) else values[0]

    def cast(self, value: Value, dtype: str) -> Value:
        """Returns ``value`` cast to ``dtype``, which can represent all its values."""
        if name_of(value.dtype) == dtype:
            return value
        if value.data is not None:
            return self.const(value.data.astype(dtype), name=self.names.free(f"{value.name}_{dtype}"))
        from tmconvert.symbolics.ops.elementwise.to import ONNX_TYPES

        return super().op("Cast", value, to=ONNX_TYPES[dtype], dtype=dtype, shape=value.shape)

    def identity(self, value: Value) -> Value:
        return self.op("Identity", value)

    def define(self, value: Value) -> None:
        operand = self._uncast.pop(id(value), None)
        if operand is not None:
            operand.shape = value.shape  # the result's declared one
        self.sizes.define(value)
