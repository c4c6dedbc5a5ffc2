"""The records of a TFLite model: tensors, operators and subgraphs, with all indices checked.

Source of the slots: LiteRT's schema.fbs, which only ever appends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tmconvert.frontends.tflite.custom_options import CUSTOM_OPTIONS
from tmconvert.frontends.tflite.faults import damaged, unknown_part
from tmconvert.frontends.tflite.flatbuffer import Flatbuffer, Table
from tmconvert.frontends.tflite.options import options_of
from tmconvert.frontends.tflite.sparse import Sparsity, sparsity_of

MAX_RANK = 64
VERSION = 3  # of the schema
CUSTOM = 32
_PLACEHOLDER = 127  # the code in the old field, of one byte, where it does not fit there


@dataclass(frozen=True)
class QuantizationRecord:
    """scale and zero point, one of each or one for each index of ``axis``."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int


@dataclass(frozen=True)
class TensorRecord:
    """A tensor; ``shape`` has -1 for open sizes, ``example`` a number in their place.

    ``content`` are the bytes of a constant, with ``sparsity`` those of some of its elements.
    """

    name: str
    type: int
    shape: tuple[int, ...]
    example: tuple[int, ...]
    content: memoryview | None
    quantization: QuantizationRecord | None
    is_variable: bool
    sparsity: Sparsity | None


@dataclass(frozen=True)
class OperatorRecord:
    """An operator; inputs are indices of tensors, -1 for one that is omitted."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any]


@dataclass(frozen=True)
class SubgraphRecord:
    """A subgraph; ``names`` are those of its signature, by the indices of tensors."""

    name: str
    tensors: list[TensorRecord]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: list[OperatorRecord]
    names: dict[int, str] = field(default_factory=dict)

    def label(self, index: int) -> str:
        """Returns the name of a tensor: that of the signature, else its own."""
        return self.names.get(index) or self.tensors[index].name or f"tensor_{index}"


@dataclass(frozen=True)
class ModelRecord:
    """A model; the first subgraph is the main one."""

    description: str
    subgraphs: list[SubgraphRecord]


def read_model(path: str, data: memoryview) -> ModelRecord:
    """Returns the records of a file. Raises LoadError TM1041 or TM1042."""
    return _ModelReader(path, data).model()


@cache
def _builtin_names() -> dict[int, str]:
    from tflite.BuiltinOperator import BuiltinOperator

    return {code: name for name, code in vars(BuiltinOperator).items() if isinstance(code, int)}


class _ModelReader:
    def __init__(self, path: str, data: memoryview) -> None:
        self.path = path
        self.root = Flatbuffer(data, lambda cause: damaged(path, cause)).root()
        version = self.root.integer(0, "uint32")
        if version != VERSION:
            raise unknown_part(
                path,
                f"the file has version {version} of the schema, not {VERSION}",
                "convert the model again",
            )
        self.buffers = self.root.tables(4)
        self.codes = [self._operator_name(each) for each in self.root.tables(1)]

    def model(self) -> ModelRecord:
        tables = self.root.tables(2)
        if not tables:
            raise damaged(self.path, "it has no subgraph")
        signatures: dict[int, dict[int, str]] = {}
        for each in self.root.tables(7):
            names = signatures.setdefault(each.integer(4, "uint32"), {})
            for entry in (*each.tables(0), *each.tables(1)):
                names.setdefault(entry.integer(1, "uint32"), entry.text(0))
        graphs = [
            self._subgraph(table, number, len(tables), signatures.get(number, {}))
            for number, table in enumerate(tables)
        ]
        return ModelRecord(self.root.text(3), graphs)

    def _operator_name(self, code: Table) -> str:
        # an old file has the code in a byte; a new one has both fields
        number = max(code.integer(3, "int32"), code.integer(0, "int8"))
        if number == CUSTOM:
            return f"custom.{code.text(1)}"
        return _builtin_names().get(number, f"operator_{number}")

    def _subgraph(self, table: Table, number: int, count: int, names: dict[int, str]) -> SubgraphRecord:
        place = f"subgraph {number}"
        tensors = [self._tensor(each, f"tensor {at} of {place}") for at, each in enumerate(table.tables(0))]
        inputs, outputs = tuple(table.integers(1)), tuple(table.integers(2))
        self._check((*inputs, *outputs), len(tensors), place, 0)
        if len(set(inputs)) != len(inputs):
            raise damaged(self.path, "an input is listed twice", place)
        operators = [
            self._operator(each, len(tensors), count, f"operator {at} of {place}")
            for at, each in enumerate(table.tables(3))
        ]
        return SubgraphRecord(table.text(4), tensors, inputs, outputs, operators, names)

    def _operator(self, table: Table, tensors: int, subgraphs: int, place: str) -> OperatorRecord:
        code = table.integer(0, "uint32")
        if code >= len(self.codes):
            raise damaged(
                self.path, f"an operator has the code {code}, but the file has {len(self.codes)} codes", place
            )
        inputs, outputs = tuple(table.integers(1)), tuple(table.integers(2))
        self._check(inputs, tensors, place, -1)
        self._check(outputs, tensors, place, 0)
        if not outputs and self.codes[code] not in ("ASSIGN_VARIABLE", "CALL_ONCE"):
            raise damaged(self.path, "an operator has no outputs", place)
        options = options_of(self.path, table, subgraphs, f"{place}: {self.codes[code]}")
        if self.codes[code] in CUSTOM_OPTIONS:
            try:
                options = CUSTOM_OPTIONS[self.codes[code]](bytes(table.content(5)[0]))
            except ValueError as error:
                raise damaged(self.path, str(error), place) from error
        return OperatorRecord(self.codes[code], inputs, outputs, options)

    def _check(self, indices: tuple[int, ...], count: int, place: str, least: int) -> None:
        for index in indices:
            if not least <= index < count:
                raise damaged(self.path, f"tensor {index} is used, but the subgraph has {count}", place)

    def _tensor(self, table: Table, place: str) -> TensorRecord:
        shape, signature = table.integers(0), table.integers(7)
        if len(shape) > MAX_RANK or any(extent < -1 for extent in (*shape, *signature)):
            raise damaged(self.path, f"a tensor has the shape {shape}"[:200], place)
        opened = signature if len(signature) == len(shape) else shape
        buffer = table.integer(2, "uint32")
        if buffer >= len(self.buffers):
            raise damaged(
                self.path, f"a tensor has the buffer {buffer}, but the file has {len(self.buffers)}", place
            )
        return TensorRecord(
            table.text(3),
            table.integer(1, "int8"),
            tuple(opened),
            tuple(
                max(extent, 1) if known < 0 else extent for extent, known in zip(shape, opened, strict=True)
            ),
            self._content(self.buffers[buffer]) if buffer else None,
            self._quantization(table.table(4), place),
            bool(table.integer(5, "bool")),
            sparsity_of(table.table(6)),
        )

    def _content(self, buffer: Table) -> memoryview | None:
        """Returns the bytes of a buffer, in the flatbuffer or after it."""
        content, count = buffer.content(0)
        if count:
            return content
        size = buffer.integer(2, "uint64")
        return buffer.file.content(buffer.integer(1, "uint64"), size) if size > 1 else None

    def _quantization(self, table: Table | None, place: str) -> QuantizationRecord | None:
        if table is None:
            return None
        scale, zero_point = table.numbers(2, "float32"), table.integers(3, "int64")
        if table.integer(4, "uint8"):
            raise unknown_part(
                self.path,
                "a tensor has custom quantization, which is not supported",
                "convert the model without it",
                place,
            )
        if not scale:
            return None
        if zero_point and len(zero_point) not in (1, len(scale)):
            cause = f"a tensor has {len(scale)} scales and {len(zero_point)} zero points"
            raise damaged(self.path, cause, place)
        points = zero_point or [0]
        points = points * len(scale) if len(points) == 1 else points
        return QuantizationRecord(tuple(map(float, scale)), tuple(points), table.integer(6, "int32"))
