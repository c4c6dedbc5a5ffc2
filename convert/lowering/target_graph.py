"""The lowered graph: operators of one target, ready to be written.

It has neither layouts nor aten ops: shapes are those of the written file (NHWC where TFLite wants it),
attributes are the target's own. For ONNX an extent may be symbolic; its text is the name to write.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from tmconvert.errors import InternalError
from tmconvert.errors.source import Source
from tmconvert.ir.lazy_constants import Array, computed
from tmconvert.ir.types import QParams, name_of
from tmconvert.lowering.origins import Origin, Role
from tmconvert.output.metadata import Annotations

if TYPE_CHECKING:
    from tmconvert.ir import TensorNode

Attribute = Union[bool, int, float, str, np.ndarray, list[int], list[float], list[str], "TargetGraph"]


class Quantization(NamedTuple):
    """Quantization of a TFLite tensor: real = scale * (q - zero_point), per index of ``axis`` or per tensor.

    ``scale`` is float32; ``zero_point`` int64, or None where all are 0. With ``block_size``, so many elements
    of the last axis have one scale, and ``scale`` is float16 in the shape of the blocks.
    """

    scale: np.ndarray
    axis: int = 0
    zero_point: np.ndarray | None = None
    block_size: int = 0


@dataclass(eq=False, slots=True)
class Value:
    """One tensor of the written file: computed, an input, or (with ``stored``) a constant.

    ``stored`` has the elements, in the order of the file, in ``shape`` or in more axes. It may be a
    non-contiguous view, such as a transposed weight, or a lazy product, of which a writer computes a few rows
    at a time. ``qparams`` are the QParams in the source, in the layout of the file; ``quantization`` are
    those in the file, and then the elements are integers. ``is_typed`` is False if ``dtype`` and ``shape``
    are not known, for intermediate results of the operators of a user's own function.
    """

    name: str
    dtype: np.dtype
    shape: tuple[Any, ...]
    stored: Array | None = None
    quantization: Quantization | None = None
    qparams: QParams | None = None
    is_typed: bool = True

    @property
    def is_constant(self) -> bool:
        return self.stored is not None

    @property
    def nbytes(self) -> int:
        """Returns the bytes of a constant; 0 for computed values."""
        return 0 if self.stored is None else self.stored.nbytes

    @property
    def data(self) -> np.ndarray | None:
        """Returns the elements in ``shape``: a view of ``stored`` where possible. A product is computed."""
        if self.stored is None:
            return None
        array = computed(self.stored)
        return array if array.shape == self.shape else array.reshape(self.shape)

    def elements(self) -> Array:
        """Returns ``stored``, for a constant. Raises InternalError TM9001 for another type or shape."""
        stored = self.stored
        assert stored is not None
        merged = stored.ndim > len(self.shape) and stored.size == math.prod(self.shape)
        if not (stored.shape == self.shape or merged) or name_of(stored.dtype) != name_of(self.dtype):
            raise InternalError(
                "TM9001",
                f"constant {self.name!r} is declared {self.dtype}{list(self.shape)}, but is "
                f"{stored.dtype}{list(stored.shape)}",
            )
        return stored


Operands = Sequence[Value | None]  # None: an optional one is left out


@dataclass(eq=False, slots=True)
class Operator:
    """One operator (ONNX node, TFLite operator, Caffe layer).

    ``type`` is ``domain::type`` for an operator of a library of the user's.
    ``inputs`` holds None for an optional input left out. Caffe: constant inputs are the layer's
    blobs, the others its bottoms. ``attributes`` by the target's names; a serializer knows the
    types that the format wants and raises InternalError for a name the operator does not have.
    """

    type: str
    inputs: list[Value | None]
    outputs: list[Value]
    attributes: dict[str, Attribute]
    name: str
    source: Source | None = None

    @property
    def domain(self) -> str:
        """Returns the user's operator library; empty for the target's own operators."""
        return self.type.rpartition("::")[0]


@dataclass(eq=False, slots=True)
class TargetGraph:
    """A whole model for ``target`` ("onnx", "tflite", "caffe").

    ``version`` is the ONNX opset, the N of the TFLite runtime 2.N or the Caffe dialect. ``operators`` are in
    execution order; names of values and operators are unique. An output may be an input or a constant.
    ``input_names`` and ``output_names`` are the user's names, in the source's order (TFLite's signature; ONNX
    and Caffe use them as the values' names). ``signature`` is the name of TFLite's signature, and empty for
    the only one of a file. ``origins`` has the node that each value represents; subgraphs
    share that of the whole graph.
    """

    target: str
    version: int | str
    name: str
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    input_names: list[str] = field(default_factory=list)
    output_names: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    annotations: Annotations = field(default_factory=Annotations)
    origins: dict[Value, Origin] = field(default_factory=dict, repr=False)
    signature: str = ""

    def constants(self) -> list[Value]:
        """Yields every constant once, in the order of first use, including those of subgraphs."""
        seen: dict[int, Value] = {}
        for graph in self.nested():
            for value in [
                *(value for operator in graph.operators for value in operator.inputs),
                *graph.outputs,
            ]:
                if value is not None and value.is_constant:
                    seen.setdefault(id(value), value)
        return list(seen.values())

    def values(self) -> list[Value]:
        """Yields every input, operand and result of this graph once, without those of subgraphs."""
        operators = (value for each in self.operators for value in (*each.inputs, *each.outputs))
        found = (value for value in (*self.inputs, *operators, *self.outputs) if value is not None)
        return list(dict.fromkeys(found))

    def node_of(self, value: Value) -> TensorNode | None:
        """Returns the node that ``value`` represents here; None for copies, constants and intermediates."""
        origin = self.origins.get(value)
        is_own = origin is not None and origin.role is Role.TENSOR and not origin.is_inner
        return origin.node if origin is not None and is_own else None

    def inherit_origin(self, made: Value, value: Value) -> Value:
        """Gives ``made`` the origin of ``value``, which it replaces."""
        if value in self.origins:
            self.origins[made] = self.origins[value]
        return made

    def complete_origins(self) -> None:
        """Records that values added by rewritings are intermediates of the tensors computed from them."""
        for graph in self.nested():
            for operator in reversed(graph.operators):
                given = [value for value in operator.inputs if value is not None]
                known = [value for value in (*operator.outputs, *given) if value in self.origins]
                node = self.origins[known[0]].node if known else None
                for value in (*operator.outputs, *given):
                    if node is not None and value not in self.origins:
                        role = Role.CONSTANT if value.is_constant else Role.PART
                        self.origins[value] = Origin(node, role, value.qparams, is_inner=True)

    def nested(self) -> Iterator[TargetGraph]:
        """Returns this graph and its subgraphs at any depth."""
        yield self
        for operator in self.operators:
            for value in operator.attributes.values():
                if isinstance(value, TargetGraph):
                    yield from value.nested()

    def with_own_values(self) -> TargetGraph:
        """Returns a copy with values of its own, for a pass that changes their types in place."""
        made: dict[int, tuple[Value, Value]] = {}

        def own(value: Value) -> Value:
            if id(value) not in made:
                copy = replace(value)
                made[id(value)] = value, copy
                self.inherit_origin(copy, value)
            return made[id(value)][1]

        def copy_of(graph: TargetGraph) -> TargetGraph:
            operators = [
                replace(
                    each,
                    inputs=[value and own(value) for value in each.inputs],
                    outputs=list(map(own, each.outputs)),
                    attributes={
                        name: copy_of(value) if isinstance(value, TargetGraph) else value
                        for name, value in each.attributes.items()
                    },
                )
                for each in graph.operators
            ]
            inputs, outputs = ([own(each) for each in values] for values in (graph.inputs, graph.outputs))
            return replace(graph, inputs=inputs, outputs=outputs, operators=operators)

        return copy_of(self)

    def use_counts(self) -> Counter[int]:
        """Counts the uses of each value, by its id: as an operand, and as an output, also in subgraphs."""
        operands = (value for operator in self.all_operators() for value in operator.inputs)
        counts = Counter(id(value) for value in operands if value is not None)
        counts.update(id(value) for graph in self.nested() for value in graph.outputs)
        return counts

    def all_operators(self) -> Iterator[Operator]:
        """Yields the operators of this graph and of its subgraphs."""
        return (operator for graph in self.nested() for operator in graph.operators)
