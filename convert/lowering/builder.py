"""The builder to which symbolics write target operators."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.errors.source import Source, printable
from tmconvert.ir import InternalGraph
from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.lazy_constants import Array, Lazy, computed, memory_of, viewed
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.types import QParams, TensorType
from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value


class Builder:
    """Appends operators to a TargetGraph, one lowered expression at a time.

    A symbolic gets the builder as ``g`` and returns the Value (or the list of Values) of its
    result. ``result_types`` are the types that the current expression must produce, in the
    target's layout.
    """

    index_dtype: np.dtype = np.dtype(np.int64)

    def __init__(self, graph: TargetGraph) -> None:
        self.graph = graph
        self.source: Source | None = None
        self.name = ""
        self.result_types: list[TensorType] = []
        self.names = Names()
        self._constants: dict[Any, Value] = {}
        self._quantized: dict[int, tuple[np.ndarray, QParams]] = {}  # constants, by where their memory starts
        self._operator_names = Names()
        self.lowered: Callable[..., TargetGraph] | None = None  # lowers a graph inside of a call

    def inside(self, graph: TargetGraph) -> Builder:
        """Returns a builder for a subgraph, which sees the values of this one and avoids its names."""
        duplicate = copy.copy(self)
        duplicate.graph = graph
        return duplicate

    # ---- for symbolics

    def op(
        self,
        type: str,
        *inputs: Value | None,
        shape: Sequence[int] | None = None,
        shapes: Sequence[Sequence[int]] | None = None,
        dtype: Any = None,
        **attributes: Any,
    ) -> Any:
        """Appends one operator and returns its output Value; a list of Values with ``shapes``.

        ``type`` may be an operator of another domain, ``domain::type``. An intermediate result has by default
        the dtype of the first input and the shape to which the inputs broadcast; pass ``shape`` (or
        ``shapes`` for several outputs) and ``dtype`` where that is wrong. The final result of a symbolic
        takes the declared type of the expression.
        """
        present = [value for value in inputs if value is not None]
        element = np.dtype(dtype) if dtype is not None else present[0].dtype
        if shapes is None:
            extents = [shape if shape is not None else self._broadcast(present)]
        else:
            extents = list(shapes)
        own = type.rpartition("::")[2]
        outputs = [
            Value(self.names.free(f"{self.name}_{own.lower()}"), element, tuple(map(_size, extent)))
            for extent in extents
        ]
        kept = {key: value for key, value in attributes.items() if value is not None}
        name = self._operator_name(own)
        self.graph.operators.append(Operator(type, list(inputs), outputs, kept, name, self.source))
        return outputs[0] if shapes is None else list(outputs)

    def const(
        self,
        value: object,
        dtype: object = None,
        *,
        name: str = "",
        qparams: QParams | None = None,
        shape: Sequence[int] | None = None,
    ) -> Value:
        """Returns a constant. Python numbers get the dtype of the current result unless ``dtype`` is given.

        With ``shape`` the array is reshaped, without a copy if it loses axes. Views of one array with equal
        strides become one constant, unless their ``qparams`` differ. A view of a whole constant keeps its
        QParams; pass ``qparams`` for a copy.
        """
        array = self._elements(value, dtype, is_quantized=qparams is not None)
        extents = array.shape if shape is None else tuple(shape)
        if array.flags.c_contiguous or array.ndim <= len(extents):
            array = viewed(array, lambda each: each.reshape(extents))
        if array.shape == extents and isinstance(array, np.ndarray):
            if qparams is None:
                qparams = self._inherited(array)
            else:
                self._quantized[_start(array)] = array, qparams
        key = _identity(array), extents, qparams
        if key not in self._constants:
            name = self.names.free(name or f"{self.name}_const")
            self._constants[key] = Value(name, array.dtype, extents, array, qparams=qparams)
        return self._constants[key]

    def _elements(self, value: Any, dtype: Any, is_quantized: bool) -> Any:
        if isinstance(value, Lazy) and dtype is None and not is_quantized:
            return value
        if dtype is None and not isinstance(value, (np.ndarray, np.generic, Lazy)):
            dtype = self.result_types[0].dtype
        return np.asarray(computed(value), dtype)

    def _inherited(self, array: np.ndarray) -> QParams | None:
        """Returns the QParams of the constant of whose memory ``array`` is another view."""
        known = self._quantized.get(_start(array)) if array.dtype == np.float32 else None
        if known is None or known[0].size != array.size:
            return None
        original, qparams = known
        if qparams.channel_axis is None:
            return qparams
        place = original.strides[qparams.channel_axis], original.shape[qparams.channel_axis]
        places = zip(array.strides, array.shape, strict=True)
        axes = [axis for axis, other in enumerate(places) if other == place]
        return replace(qparams, channel_axis=axes[0]) if len(axes) == 1 else None

    def ints(self, values: Sequence[int] | np.ndarray | int) -> Value:
        """Returns a constant of the target's type for indices, shapes and axes."""
        limits = np.iinfo(self.index_dtype)
        if any(not limits.min <= value <= limits.max for value in np.ravel(np.asarray(values, object))):
            self.refuse(f"{values} does not fit {self.index_dtype}, the index type of the target")
        return self.const(np.asarray(values, self.index_dtype))

    def body(self, graph: InternalGraph, inputs: Sequence[Value | None]) -> TargetGraph:
        """Builds a subgraph for the next operator: its inputs are these values, and new ones for None."""
        assert self.lowered is not None
        return self.lowered(graph, inputs)

    def inlined(self, graph: InternalGraph, inputs: Sequence[Value]) -> list[Value]:
        """Inlines a subgraph for values of this graph, and returns its results."""
        assert self.lowered is not None
        made = self.lowered(graph, inputs, inlined=True)
        self.graph.operators += made.operators
        return made.outputs

    def formal(self, dtype: np.dtype, shape: Sequence[int]) -> Value:
        """Returns an input of a subgraph."""
        return Value(self.names.free(f"{self.name}_input"), dtype, tuple(shape))

    def refuse(self, reason: str, help: str = "") -> NoReturn:
        """Raises Refusal: the target cannot express this call."""
        raise Refusal(reason, help)

    # ---- for lower()

    def begin(self, name: str, source: Source | None, types: list[TensorType]) -> None:
        self.name, self.source, self.result_types = name, source, types

    def rename(self, value: Value, name: str) -> None:
        """Gives ``value`` exactly ``name``, which is reserved for it."""
        self.names.give_back(value.name)
        value.name = name

    def identity(self, value: Value) -> Value:
        """Returns a computed copy, for an output that would share its value with another one."""
        raise NotImplementedError

    def define(self, value: Value) -> None:
        """Called for each input and result, when its type is known."""

    def accept(self, operators: Sequence[Operator]) -> None:
        """Called with the operators of each expression. Raises Refusal where the version lacks one."""

    def finish(self) -> None:
        """Called once, after the last expression."""

    def _operator_name(self, type: str) -> str:
        scope = printable(self.source.scope).replace(".", "/") if self.source and self.source.scope else ""
        return self._operator_names.free(f"/{scope}/{self.name}/{type}" if scope else f"/{self.name}/{type}")

    def _broadcast(self, values: Sequence[Value]) -> tuple[Any, ...]:
        try:
            return broadcast_shapes(*(value.shape for value in values))
        except ValueError:
            return values[0].shape


def _size(extent: Any) -> Any:
    return extent if isinstance(extent, Dim) else int(extent)


def _start(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _identity(array: Array) -> Any:
    if isinstance(array, np.ndarray) and array.nbytes <= 64:
        return array.tobytes(), array.dtype.str, array.shape
    return memory_of(array)
