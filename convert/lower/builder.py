"""The builder that symbolics write target operators to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import Refusal
from ..ir import InternalGraph
from ..ir.dims import Dim, broadcast_shapes, is_symbolic
from ..ir.scaled import Array, Scaled, computed, memory_of, viewed
from ..ir.types import QParams, TensorType, name_of
from ..source import Source
from ..symbolics.ops.to import ONNX_TYPES
from .element_types import computed_type, type_operand
from .empty_parts import without_empty_parts
from .onnx_casts import cast_plan
from .size_operators import SizeOperators, plain_attributes
from .target_graph import Operator, TargetGraph, Value
from .tflite_runtimes import runtime_refusal
from .tflite_versions import operator_version
from .whole_numbers import in_whole_numbers

if TYPE_CHECKING:
    from ..caffe.dialects import Dialect


class Builder:
    """Appends operators to a TargetGraph, one lowered expression at a time.

    A symbolic gets the builder as ``g`` and returns the Value (or the list of Values) of its
    result. ``result_types`` are the types that the current expression must produce, in the
    target's memory order.
    """

    index_dtype: np.dtype = np.dtype(np.int64)

    def __init__(self, graph: TargetGraph) -> None:
        self.graph = graph
        self.source: Source | None = None
        self.name = ""
        self.result_types: list[TensorType] = []
        self._names: set[str] = set()
        self._suffixes: dict[str, int] = {}
        self._constants: dict[Any, Value] = {}
        self._quantized: dict[int, tuple[np.ndarray, QParams]] = {}  # constants, by where their memory starts
        self._operator_names: dict[str, int] = {}  # with the last suffix given to each
        self.lowered: Callable[..., TargetGraph] | None = None  # lowers a graph inside of a call

    def inside(self, graph: TargetGraph) -> Builder:
        """A builder for a graph inside of this one's, which sees its values and keeps off its names."""
        twin = copy.copy(self)
        twin.graph = graph
        return twin

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

        ``type`` may be an operator that is none of the target's own, ``domain::type``.
        An intermediate result has by default the dtype of the first input and the shape to which the
        inputs broadcast; say ``shape`` (or ``shapes`` for several outputs) and ``dtype`` where that is
        wrong. The final result of a symbolic takes the declared type of the expression.
        """
        present = [value for value in inputs if value is not None]
        element = np.dtype(dtype) if dtype is not None else present[0].dtype
        if shapes is None:
            extents = [shape if shape is not None else self._broadcast(present)]
        else:
            extents = list(shapes)
        own = type.rpartition("::")[2]
        outputs = [
            Value(self.free_name(f"{self.name}_{own.lower()}"), element, tuple(map(_size, extent)))
            for extent in extents
        ]
        kept = {key: value for key, value in attributes.items() if value is not None}
        name = self._operator_name(own)
        self.graph.operators.append(Operator(type, list(inputs), outputs, kept, name, self.source))
        return outputs[0] if shapes is None else list(outputs)

    def const(
        self,
        value: Any,
        dtype: Any = None,
        *,
        name: str = "",
        qparams: QParams | None = None,
        shape: Sequence[int] | None = None,
    ) -> Value:
        """A constant. Python numbers take the dtype of the current result unless ``dtype`` says else.

        With ``shape``, of as many elements, it has that one, and is not copied to have fewer axes.

        Views of one array with equal strides become one constant, but for different ``qparams``. A view
        of all of a constant that has some has them, too; say those of a copy.
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
            name = self.free_name(name or f"{self.name}_const")
            self._constants[key] = Value(name, array.dtype, extents, array, qparams=qparams)
        return self._constants[key]

    def _elements(self, value: Any, dtype: Any, is_quantized: bool) -> Array:
        if isinstance(value, Scaled) and dtype is None and not is_quantized:
            return value
        if dtype is None and not isinstance(value, (np.ndarray, np.generic, Scaled)):
            dtype = self.result_types[0].dtype
        return np.asarray(computed(value), dtype)

    def _inherited(self, array: np.ndarray) -> QParams | None:
        """The parameters of the constant whose memory ``array`` is another view of."""
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
        """A constant of the target's type for indices, shapes and axes."""
        limits = np.iinfo(self.index_dtype)
        if any(not limits.min <= value <= limits.max for value in np.ravel(np.asarray(values, object))):
            self.refuse(f"{values} does not fit {self.index_dtype}, in which the target counts")
        return self.const(np.asarray(values, self.index_dtype))

    def body(self, graph: InternalGraph, inputs: Sequence[Value | None]) -> TargetGraph:
        """A graph inside of the operator to come: its inputs are these values, and new ones for None."""
        assert self.lowered is not None
        return self.lowered(graph, inputs)

    def inlined(self, graph: InternalGraph, inputs: Sequence[Value]) -> list[Value]:
        """The results of a graph on values of this one, to which its operators are appended."""
        assert self.lowered is not None
        made = self.lowered(graph, inputs, inlined=True)
        self.graph.operators += made.operators
        return made.outputs

    def formal(self, dtype: np.dtype, shape: Sequence[int]) -> Value:
        """An input of a graph inside."""
        return Value(self.free_name(f"{self.name}_input"), dtype, tuple(shape))

    def refuse(self, reason: str, help: str = "") -> NoReturn:
        """Ends the symbolic: the target cannot express this call."""
        raise Refusal(reason, help)

    # ---- for lower()

    def begin(self, name: str, source: Source | None, types: list[TensorType]) -> None:
        self.name, self.source, self.result_types = name, source, types

    def free_name(self, base: str) -> str:
        name = base
        while name in self._names:
            self._suffixes[base] = self._suffixes.get(base, 0) + 1
            name = f"{base}_{self._suffixes[base]}"
        self._names.add(name)
        return name

    def rename(self, value: Value, name: str) -> None:
        """Gives ``value`` exactly ``name``, which ``free_name`` has reserved."""
        self._names.discard(value.name)
        value.name = name

    def identity(self, value: Value) -> Value:
        """A computed copy, for an output that would share its value with something else."""
        raise NotImplementedError

    def define(self, value: Value) -> None:
        """Called for each input and result, as soon as it has its type."""

    def accept(self, operators: Sequence[Operator]) -> None:
        """Called with the operators of each expression. Raises Refusal where the version lacks one."""

    def finish(self) -> None:
        """Called once, behind the last expression."""

    def _operator_name(self, type: str) -> str:
        scope = self.source.scope.replace(".", "/") if self.source and self.source.scope else ""
        base = f"/{scope}/{self.name}/{type}" if scope else f"/{self.name}/{type}"
        name = base
        while name in self._operator_names:
            self._operator_names[base] += 1
            name = f"{base}_{self._operator_names[base]}"
        self._operator_names[name] = 0
        return name

    def _broadcast(self, values: Sequence[Value]) -> tuple[Any, ...]:
        try:
            return broadcast_shapes(*(value.shape for value in values))
        except ValueError:
            return values[0].shape


class OnnxBuilder(Builder):
    def __init__(self, graph: TargetGraph) -> None:
        super().__init__(graph)
        self.sizes = SizeOperators(self)

    def inside(self, graph: TargetGraph) -> Builder:
        twin = super().inside(graph)
        assert isinstance(twin, OnnxBuilder)
        twin.sizes = self.sizes.inside(twin)
        return twin

    def operator(
        self, type: str, inputs: Sequence[Value | None], attributes: dict[str, Any], results: int
    ) -> list[Value]:
        """Appends an operator as it is, whose author answers for types and shapes."""
        made = super().op(
            type, *inputs, shapes=[()] * results, dtype=self.result_types[0].dtype, **attributes
        )
        return list(made)

    def ints(self, values: Sequence[int] | np.ndarray | int) -> Value:
        """As any builder's; Dims among the values are computed as the file runs."""
        return self.sizes.vector(values) if is_symbolic(values) else super().ints(values)

    def op(self, type: str, *inputs: Value | None, **options: Any) -> Any:
        """As ``Builder.op``; element types that the operator does not take are cast, there and back.

        The types of the outputs follow from the operator's schema, where it says them.
        """
        assert isinstance(self.graph.version, int)
        inputs = tuple(self.sizes.resolved(type, inputs))
        options = plain_attributes(type, options, self.graph.version)
        dtypes = tuple(None if value is None else name_of(value.dtype) for value in inputs)
        try:
            plan = cast_plan(type, dtypes, self.graph.version)
        except Refusal:
            other_way = in_whole_numbers(self, type, inputs, options)
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
        return values if isinstance(made, list) else values[0]

    def cast(self, value: Value, dtype: str) -> Value:
        """``value`` as ``dtype``, which holds all that it can be."""
        if name_of(value.dtype) == dtype:
            return value
        if value.data is not None:
            return self.const(value.data.astype(dtype), name=self.free_name(f"{value.name}_{dtype}"))
        return super().op("Cast", value, to=ONNX_TYPES[dtype], dtype=dtype, shape=value.shape)

    def identity(self, value: Value) -> Value:
        return self.op("Identity", value)

    def define(self, value: Value) -> None:
        self.sizes.define(value)


class TfliteBuilder(Builder):
    index_dtype = np.dtype(np.int32)

    def __init__(self, graph: TargetGraph) -> None:
        super().__init__(graph)
        self.sizes = SizeOperators(self)

    def inside(self, graph: TargetGraph) -> Builder:
        """As any builder's, but the graph sees no values around it."""
        twin = super().inside(graph)
        assert isinstance(twin, TfliteBuilder)
        twin.sizes = SizeOperators(twin)
        return twin

    def ints(self, values: Sequence[int] | np.ndarray | int) -> Value:
        """As any builder's; Dims among the values are computed as the file runs."""
        return self.sizes.vector(values) if is_symbolic(values) else super().ints(values)

    def define(self, value: Value) -> None:
        self.sizes.define(value)

    @property
    def _runtime(self) -> int:
        assert isinstance(self.graph.version, int)
        return self.graph.version

    def has(self, type: str, version: int = 1) -> bool:
        """Whether the runtime has this version of an operator; where there is another way."""
        return runtime_refusal(type, version, self._runtime) is None

    def accept(self, operators: Sequence[Operator]) -> None:
        for operator in operators:
            refusal = runtime_refusal(operator.type, operator_version(operator), self._runtime)
            if refusal:
                self.refuse(*refusal)

    def subgraph(
        self, name: str, types: Sequence[Value], write: Callable[[TfliteBuilder, list[Value]], list[Value]]
    ) -> TargetGraph:
        """A graph with inputs of these types, which ``write`` fills: it gets them, and gives the outputs."""
        twin = self.inside(TargetGraph(self.graph.target, self.graph.version, name))
        assert isinstance(twin, TfliteBuilder)
        twin.graph.inputs = [self.formal(value.dtype, value.shape) for value in types]
        for value in twin.graph.inputs:
            twin.define(value)
        twin.graph.outputs = write(twin, list(twin.graph.inputs))
        return twin.graph

    def op(self, type: str, *inputs: Value | None, **options: Any) -> Any:
        """As ``Builder.op``; whole numbers that the operator does not take are cast, there and back."""
        if type == "RESHAPE" and is_symbolic(options.get("new_shape")):
            del options["new_shape"]  # an attribute for what is an input
        inputs = tuple(self.sizes.resolved(type, inputs))
        options = plain_attributes(type, options)
        whole = without_empty_parts(self, type, inputs, options)
        if whole is not None:
            return whole
        operand = inputs[type_operand(type)] if inputs else None
        if operand is None:
            return super().op(type, *inputs, **options)
        given = operand.dtype
        computed = computed_type(type, given)
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

    def cast(self, value: Value, dtype: np.dtype) -> Value:
        """``value`` as ``dtype``."""
        if value.dtype == dtype:
            return value
        if value.data is not None:
            return self.const(value.data.astype(dtype), name=f"{value.name}_{dtype.name}")
        return super().op("CAST", *self.sizes.resolved("CAST", [value]), dtype=dtype, shape=value.shape)

    def identity(self, value: Value) -> Value:
        return self.op(
            "RESHAPE", value, self.ints(value.shape), new_shape=list(value.shape), shape=value.shape
        )


class CaffeBuilder(Builder):
    def op(self, type: str, *inputs: Value | None, **options: Any) -> Any:
        if "::" in type:
            self.refuse(f"Caffe's format has its own layers only, not {type}")
        from ..caffe.dialects import bvlc

        dialect = self._dialect()
        if type in bvlc.LAYERS and type not in dialect.layers:
            self.refuse(f"{dialect.title} has no {type} layer", "convert to another dialect, such as bvlc")
        if type == "Power" and options.get("power", 1.0) == 1.0 and self._is_power(inputs[0]):
            # OpenCV 4.14 fuses 3 (x ^ 2) to (3 x) ^ 2; a Split in between keeps them apart
            inputs = (super().op("Split", inputs[0]), *inputs[1:])
        return super().op(type, *inputs, **options)

    def has(self, layer: str, parameter: str = "") -> bool:
        """Whether the dialect has this layer, with this parameter; where there is another way."""
        return self._dialect().has(layer, parameter)

    def allows(self, layer: str, quantity: str, number: float) -> bool:
        """Whether it takes this number in such a layer; ``quantity`` is one of its rules'."""
        return self._dialect().allows(layer, quantity, number)

    def _dialect(self) -> Dialect:
        from ..caffe.dialects import DIALECTS  # which other targets do without

        assert isinstance(self.graph.version, int)
        return DIALECTS[tuple(DIALECTS)[self.graph.version]]

    def accept(self, operators: Sequence[Operator]) -> None:
        values = [value for operator in operators for value in (*operator.inputs, *operator.outputs)]
        if any(0 in value.shape for value in values if value is not None):
            self.refuse("a Caffe blob cannot be empty")

    def _is_power(self, value: Value | None) -> bool:
        """Whether a Power layer with an exponent computes ``value``."""
        for operator in reversed(self.graph.operators):
            if any(output is value for output in operator.outputs):
                return operator.type == "Power" and operator.attributes.get("power", 1.0) != 1.0
        return False

    def identity(self, value: Value) -> Value:
        if value.is_constant:
            return self.op("Parameter", value, shape=value.shape, **{"shape.dim": list(value.shape)})
        return self.op("Power", value, power=1.0, scale=1.0, shift=0.0)

    def finish(self) -> None:
        """Makes the net one that every runtime can be asked for its outputs, and names the layers.

        Each layer is called by its first top: users and runtimes look results up by either. OpenCV
        finds only first tops by name and keeps only these from being overwritten, so an output that
        is a later top is copied; and it fails on an input that nothing reads.
        """
        outputs = self.graph.outputs
        later = {id(value) for operator in self.graph.operators for value in operator.outputs[1:]}
        for i, value in enumerate(outputs):
            if id(value) in later:
                outputs[i] = self._first_top(value)
        for operator in self.graph.operators:
            operator.name = operator.outputs[0].name
        read = {id(value) for operator in self.graph.operators for value in operator.inputs}
        for value in self.graph.inputs:
            if id(value) not in read:
                name = self.free_name(f"{value.name}_silence")
                self.graph.operators.append(Operator("Silence", [value], [], {}, name))

    def _first_top(self, value: Value) -> Value:
        """A copy of ``value`` that takes its name."""
        name = value.name
        value.name = self.free_name(f"{name}_part")
        copy = self.op("Split", value)
        self.rename(copy, name)
        return copy


BUILDERS: dict[str, type[Builder]] = {"onnx": OnnxBuilder, "tflite": TfliteBuilder, "caffe": CaffeBuilder}


def _size(extent: Any) -> Any:
    return extent if isinstance(extent, Dim) else int(extent)


def _start(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _identity(array: Array) -> Any:
    if isinstance(array, np.ndarray) and array.nbytes <= 64:
        return array.tobytes(), array.dtype.str, array.shape
    return memory_of(array)
