"""The builder of TFLite operators: versions of the runtime, integer types, subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import name_of
from tmconvert.lowering.builder import Builder
from tmconvert.lowering.target_graph import Operands, Operator, TargetGraph, Value
from tmconvert.targets.tflite.computed_type import computed_type
from tmconvert.targets.tflite.element_types import OLDEST
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.pad_empty_dims import without_empty_parts
from tmconvert.targets.tflite.runtimes import first_release, runtime_refusal, types_refusal, types_text
from tmconvert.targets.tflite.size_operators import TfliteSizeOperators, static_attributes
from tmconvert.targets.tflite.versions import operator_version


class TfliteBuilder(Builder):
    index_dtype = np.dtype(np.int32)

    def __init__(self, graph: TargetGraph) -> None:
        super().__init__(graph)
        self.sizes = TfliteSizeOperators(self)

    def inside(self, graph: TargetGraph) -> Builder:
        """Returns the builder of a subgraph, which cannot access values outside of it."""
        counterpart = super().inside(graph)
        assert isinstance(counterpart, TfliteBuilder)
        counterpart.sizes = TfliteSizeOperators(counterpart)
        return counterpart

    def ints(self, values: Sequence[int] | np.ndarray | int) -> Value:
        """Like ``Builder.ints``; Dims among the values are computed at run time."""
        return self.sizes.vector(values) if is_symbolic(values) else super().ints(values)

    def define(self, value: Value) -> None:
        self.sizes.define(value)

    @property
    def _runtime(self) -> int:
        assert isinstance(self.graph.version, int)
        return self.graph.version

    def has(self, type: str, version: int = 1) -> bool:
        """Whether the runtime has this version of an operator, for symbolics with an alternative."""
        return runtime_refusal(type, version, self._runtime) is None

    def accept(self, operators: Sequence[Operator]) -> None:
        for operator in operators:
            refusal = runtime_refusal(operator.type, operator_version(operator), self._runtime)
            refusal = refusal or types_refusal(operator, self._runtime)
            if refusal:
                self.refuse(*refusal)

    def subgraph(
        self, name: str, types: Sequence[Value], write: Callable[[TfliteBuilder, list[Value]], list[Value]]
    ) -> TargetGraph:
        """Returns a subgraph with inputs of these types; ``write`` receives them and returns the outputs.

        Constants among these are copied: LiteRT frees what a subgraph with dynamic sizes returns.
        """
        counterpart = self.inside(TargetGraph(self.graph.target, self.graph.version, name))
        assert isinstance(counterpart, TfliteBuilder)
        counterpart.graph.inputs = [self.formal(value.dtype, value.shape) for value in types]
        for value in counterpart.graph.inputs:
            counterpart.define(value)
        made = write(counterpart, list(counterpart.graph.inputs))
        counterpart.graph.outputs = [
            counterpart.identity(value) if value.is_constant else value for value in made
        ]
        return counterpart.graph

    def op(self, type: str, *inputs: Value | None, **options: Any) -> Any:
        """Like ``Builder.op``; inserts casts for integer types that the operator does not support.

        With the option ``has_elements`` no part of an operand is padded that may be empty.
        """
        if type == "RESHAPE" and is_symbolic(options.get("new_shape")):
            del options["new_shape"]  # an attribute for what is an input
        inputs = tuple(self.sizes.resolved(type, inputs))
        options = static_attributes(type, options)
        has_elements = options.pop("has_elements", False)
        whole = None if has_elements else without_empty_parts(self, type, inputs, options)
        if whole is not None:
            return whole
        operand = inputs[spec(type).typed] if inputs else None
        if operand is None:
            return super().op(type, *inputs, **options)
        given = operand.dtype
        computed = computed_type(type, given, lambda name: self._runs(type, inputs, given, name, options))
        if computed == given:
            return super().op(type, *inputs, **options)
        cast = [
            self.cast(value, computed) if value is not None and value.dtype == given else value
            for value in inputs
        ]
        wanted = np.dtype(options.pop("dtype", None) or given)
        if wanted != given:
            return super().op(type, *cast, dtype=wanted, **options)
        made = super().op(type, *cast, dtype=computed, **options)
        return [self.cast(each, given) for each in made] if isinstance(made, list) else self.cast(made, given)

    def _runs(
        self, type: str, inputs: Operands, given: np.dtype, computed: str, options: Mapping[str, Any]
    ) -> bool:
        """Whether the runtime runs an operator with operands of type ``given`` as ``computed``."""
        names = [computed if value.dtype == given else name_of(value.dtype) for value in inputs if value]
        made = np.dtype(options.get("dtype") or given)
        text = types_text(names, [computed if made == given else name_of(made)])
        return first_release(type, text) <= max(self._runtime, OLDEST)

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """Returns ``value`` cast to ``dtype``."""
        if value.dtype == dtype:
            return value
        if value.data is not None:
            return self.const(value.data.astype(dtype), name=f"{value.name}_{dtype.name}")
        return super().op("CAST", *self.sizes.resolved("CAST", [value]), dtype=dtype, shape=value.shape)

    def identity(self, value: Value) -> Value:
        """Returns a copy: LiteRT computes a RESHAPE of a constant once, in the memory of its subgraph."""
        if value.is_constant:
            name = "LOGICAL_OR" if value.dtype == np.bool_ else "MAXIMUM"
            return self.op(name, value, value, shape=value.shape)
        return self.op(
            "RESHAPE", value, self.ints(value.shape), new_shape=list(value.shape), shape=value.shape
        )
