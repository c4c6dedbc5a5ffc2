"""An operator of a file or of a lowered graph, in the form in which profiles judge it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tmconvert.ir.types import name_of

if TYPE_CHECKING:
    from tmconvert.lowering.target_graph import Operator, TargetGraph, Value

Extent = int | None  # None for an open size


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor; ``shape`` is None where it is not known. ``read`` returns the elements of a constant.

    ``maker`` is the type of the operator that computes it, ``users`` the number of its uses, and
    ``is_output`` states that it is an output of the model: ``with_neighbours`` sets them.
    """

    name: str
    dtype: str
    shape: tuple[Extent, ...] | None
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    read: Callable[[], np.ndarray] | None = field(default=None, repr=False)
    maker: str = ""
    users: int = 0
    is_output: bool = False

    @property
    def is_constant(self) -> bool:
        return self.read is not None


@dataclass(frozen=True, eq=False)
class Operation:
    """An operator: ``place`` is the name by which messages find it, ``inputs`` has None for omitted ones.

    ``attributes`` are those of the file; ``version`` is that of the operator, 0 where the file has none.
    """

    type: str
    place: str
    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor]
    attributes: Mapping[str, object] = field(default_factory=dict)
    version: int = 0

    @property
    def given(self) -> list[Tensor]:
        """Returns the inputs that are there."""
        return [each for each in self.inputs if each is not None]

    @property
    def computed(self) -> list[Tensor]:
        """Returns the tensors that operators compute, and the inputs of the model."""
        return [each for each in (*self.given, *self.outputs) if not each.is_constant]


def operations_of(graph: TargetGraph) -> list[Operation]:
    """Returns the operators of a lowered graph, with those of its subgraphs."""
    found = [operation_of(operator) for operator in graph.all_operators()]
    return with_neighbours(found, {value.name for value in graph.outputs})


def with_neighbours(operations: Iterable[Operation], outputs: Collection[str]) -> list[Operation]:
    """Returns the operators of a graph whose tensors state who computes and who takes them."""
    found = list(operations)
    makers = {tensor.name: each.type for each in found for tensor in each.outputs}
    users = Counter(tensor.name for each in found for tensor in each.given)
    known: dict[int, Tensor] = {}

    def linked(tensor: Tensor) -> Tensor:
        name = tensor.name
        if id(tensor) not in known:
            known[id(tensor)] = replace(
                tensor, maker=makers.get(name, ""), users=users[name], is_output=name in outputs
            )
        return known[id(tensor)]

    return [
        replace(
            each,
            inputs=[None if tensor is None else linked(tensor) for tensor in each.inputs],
            outputs=[linked(tensor) for tensor in each.outputs],
        )
        for each in found
    ]


def operation_of(operator: Operator) -> Operation:
    return Operation(
        operator.type,
        operator.outputs[0].name if operator.outputs else operator.name,
        [None if value is None else _tensor(value) for value in operator.inputs],
        [_tensor(value) for value in operator.outputs],
        operator.attributes,
    )


def _tensor(value: Value) -> Tensor:
    known = value.quantization
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    if known is not None and not known.block_size:  # scales of blocks are a tensor of their own
        scale = tuple(map(float, known.scale.reshape(-1)))
        zero_point = (0,) * len(scale) if known.zero_point is None else tuple(map(int, known.zero_point))

    def read() -> np.ndarray:
        assert value.data is not None
        return value.data

    shape = tuple(int(each) if isinstance(each, (int, np.integer)) else None for each in value.shape)
    return Tensor(
        value.name,
        name_of(value.dtype),
        shape if value.is_typed else None,
        scale,
        zero_point,
        read if value.is_constant else None,
    )


def as_quantized(operation: Operation) -> Operation:
    """Returns an operator in float as calibration would quantize it: in int8, with one scale for a tensor."""

    def changed(tensor: Tensor) -> Tensor:
        if tensor.dtype != "float32":
            return tensor
        return replace(tensor, dtype="int8", scale=(0.1,), zero_point=(0,), read=tensor.read)

    weighed = (
        len(operation.inputs) > 2 and operation.inputs[2] is not None and operation.inputs[2].is_constant
    )
    inputs = [None if each is None else changed(each) for each in operation.inputs]
    if weighed and inputs[2] is not None and inputs[2].dtype == "int8" and len(inputs[2].shape or ()) == 1:
        inputs[2] = replace(inputs[2], dtype="int32")  # a bias
    return replace(operation, inputs=inputs, outputs=[changed(each) for each in operation.outputs])
