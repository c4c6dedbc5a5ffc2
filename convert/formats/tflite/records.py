"""The records of a TFLite model: tensors, operators and subgraphs, with all indices checked.

Source of the slots: LiteRT's schema.fbs, which only ever appends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.errors.source import printable
from tmconvert.formats.tflite.custom_options import CUSTOM_OPTIONS
from tmconvert.formats.tflite.faults import damaged, unknown_part
from tmconvert.formats.tflite.flatbuffer import Flatbuffer, Table
from tmconvert.formats.tflite.options import options_of
from tmconvert.formats.tflite.schema import BLOCKWISE, TENSOR_TYPES, operator_name
from tmconvert.formats.tflite.sparse import Sparsity, sparsity_of

MAX_RANK = 64
VERSION = 3  # of the schema
CUSTOM = 32
_PLACEHOLDER = 127  # the code in the old field, of one byte, where it does not fit there


# ends of the names of options that are numbers of subgraphs
_CALLED = ("subgraph", "subgraph_index")


@dataclass(frozen=True)
class QuantizationRecord:
    """scale and zero point, one of each or one for each index of ``axis``."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int


class BlocksRecord(NamedTuple):
    """Scales of blocks of ``size`` elements along the last axis: float16, ``content`` in the file."""

    content: memoryview
    size: int

    def scales(self, shape: Sequence[int]) -> np.ndarray:
        """Returns the scales in float32, for a tensor of ``shape`` whose last axis has blocks."""
        half = np.frombuffer(self.content, np.dtype(np.float16).newbyteorder("<"))
        return half.astype(np.float32).reshape(*shape[:-1], shape[-1] // self.size)


@dataclass(frozen=True)
class TensorRecord:
    """A tensor; ``shape`` has -1 for open sizes, ``example`` a number in their place.

    ``content`` are the bytes of a constant, with ``sparsity`` those of some of its elements; they are not
    copied. ``is_custom`` says that the quantization is in a form of its own, which is not read;
    ``blocks`` are the scales of one in blocks.
    """

    name: str
    type: int
    shape: tuple[int, ...]
    example: tuple[int, ...]
    content: memoryview | None
    quantization: QuantizationRecord | None
    is_variable: bool
    sparsity: Sparsity | None
    is_custom: bool = False
    blocks: BlocksRecord | None = None


@dataclass(frozen=True)
class OperatorRecord:
    """An operator; inputs are indices of tensors, -1 for one that is omitted."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    read_options: Callable[[], dict[str, Any]] = field(repr=False, compare=False)

    @property
    def is_builtin(self) -> bool:
        """Whether the operator is of a code that the schema names; other names begin in lower case."""
        return self.name.isupper()

    @cached_property
    def options(self) -> dict[str, Any]:
        """The options that differ from the schema's defaults, read at first use. Raises LoadError TM1041."""
        return self.read_options()


@dataclass(frozen=True)
class SubgraphRecord:
    """A subgraph; the names of inputs and outputs are those of its signature, by the indices of tensors."""

    name: str
    tensors: list[TensorRecord]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: list[OperatorRecord]
    input_names: dict[int, str]
    output_names: dict[int, str]

    def label(self, index: int) -> str:
        """Returns the name of a tensor: that of the signature, else its own."""
        names = self.input_names.get(index) or self.output_names.get(index)
        return names or self.tensors[index].name or f"tensor_{index}"


@dataclass(frozen=True)
class ModelRecord:
    """A model; ``main`` is the number of the subgraph that is read: the first, or that of a signature.

    ``signatures`` has the numbers of the subgraphs of all signatures, by name.
    """

    description: str
    subgraphs: list[SubgraphRecord]
    main: int = 0
    signatures: Mapping[str, int] = field(default_factory=dict)

    def reached(self) -> list[SubgraphRecord]:
        """Returns the main subgraph, and those that its operators call at any depth."""
        numbers = [self.main]
        for number in numbers:  # the list grows
            for operator in self.subgraphs[number].operators:
                called = [value for key, value in operator.options.items() if key.endswith(_CALLED)]
                numbers += [each for each in dict.fromkeys(called) if each not in numbers]
        return [self.subgraphs[number] for number in numbers]


def read_model(path: str, data: memoryview, signature: str | None = "") -> ModelRecord:
    """Returns the records of a file; None reads one with several signatures from the first of them.

    Raises LoadError TM1041 for a damaged file, and TM1042 where it has several signatures and none is chosen;
    UsageError TM6014 where no signature has that name.
    """
    return _ModelReader(path, data).model(signature)


def content_of(buffer: Table) -> memoryview | None:
    """Returns the bytes of a buffer, in the flatbuffer or after it; None for an empty one."""
    content, count = buffer.content(0)
    if count:
        return content
    size = buffer.integer(2, "uint64")
    return buffer.file.content(buffer.integer(1, "uint64"), size) if size > 1 else None


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

    def model(self, chosen: str | None) -> ModelRecord:
        tables = self.root.tables(2)
        if not tables:
            raise damaged(self.path, "it has no subgraph")
        names: dict[int, tuple[dict[int, str], dict[int, str]]] = {}
        signatures = self.root.tables(7)
        known = {each.text(2): each.integer(4, "uint32") for each in signatures}
        main = self._main(known, chosen, len(tables))
        # The names of the chosen signature go before those of others of the same subgraph.
        for signature in sorted(signatures, key=lambda each: each.text(2) != chosen):
            for slot, each in enumerate(names.setdefault(signature.integer(4, "uint32"), ({}, {}))):
                for entry in signature.tables(slot):
                    each.setdefault(entry.integer(1, "uint32"), entry.text(0))
        graphs = [
            self._subgraph(table, number, len(tables), *names.get(number, ({}, {})))
            for number, table in enumerate(tables)
        ]
        return ModelRecord(self.root.text(3), graphs, main, known)

    def _main(self, known: Mapping[str, int], chosen: str | None, count: int) -> int:
        """Returns the number of the subgraph of a signature."""
        if chosen and chosen not in known:
            shown = ", ".join(map(printable, known)) or "none"
            raise UsageError(
                "TM6014",
                f"the file has no signature {chosen!r}",
                notes=[("help", f"its signatures: {shown}")],
            )
        if chosen == "" and len(set(known.values())) > 1:
            names = [printable(name) for name in known]
            raise unknown_part(
                self.path,
                f"the file has {len(names)} signatures: {', '.join(names)}"[:500],
                f"choose one: --signature {names[0]} (signature={names[0]!r})"[:200],
            )
        main = known[chosen] if chosen else next(iter(known.values()), 0)
        if main >= count:
            raise damaged(self.path, f"a signature is of subgraph {main}, but the file has {count}")
        return main

    def _operator_name(self, code: Table) -> str:
        # an old file has the code in a byte; a new one has both fields
        number = max(code.integer(3, "int32"), code.integer(0, "int8"))
        if number == CUSTOM:
            return f"custom.{code.text(1)}"
        return operator_name(number) or f"operator_{number}"

    def _subgraph(
        self, table: Table, number: int, count: int, input_names: dict[int, str], output_names: dict[int, str]
    ) -> SubgraphRecord:
        place = f"subgraph {number}"
        tensors = [self._tensor(each, f"tensor {at} of {place}") for at, each in enumerate(table.tables(0))]
        for at, each in enumerate(table.tables(0)):
            details = each.table(4)
            if details is not None and details.integer(4, "uint8") == BLOCKWISE:
                tensors[at] = self._with_blocks(tensors, at, details.table(5), f"tensor {at} of {place}")
        inputs, outputs = tuple(table.integers(1)), tuple(table.integers(2))
        self._check((*inputs, *outputs), len(tensors), place, 0)
        if len(set(inputs)) != len(inputs):
            raise damaged(self.path, "an input is listed twice", place)
        operators = [
            self._operator(each, len(tensors), count, f"operator {at} of {place}")
            for at, each in enumerate(table.tables(3))
        ]
        return SubgraphRecord(table.text(4), tensors, inputs, outputs, operators, input_names, output_names)

    def _operator(self, table: Table, tensors: int, subgraphs: int, place: str) -> OperatorRecord:
        code = table.integer(0, "uint32")
        if code >= len(self.codes):
            raise damaged(
                self.path, f"an operator has the code {code}, but the file has {len(self.codes)} codes", place
            )
        inputs, outputs = tuple(table.integers(1)), tuple(table.integers(2))
        self._check(inputs, tensors, place, -1)
        self._check(outputs, tensors, place, 0)
        name = self.codes[code]
        return OperatorRecord(name, inputs, outputs, lambda: self._options(table, name, subgraphs, place))

    def _options(self, table: Table, name: str, subgraphs: int, place: str) -> dict[str, Any]:
        if name not in CUSTOM_OPTIONS:
            return options_of(self.path, table, subgraphs, f"{place}: {name}")
        try:
            return CUSTOM_OPTIONS[name](bytes(table.content(5)[0]))
        except ValueError as error:
            raise damaged(self.path, str(error), place) from error

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
        quantization = table.table(4)
        return TensorRecord(
            table.text(3),
            table.integer(1, "int8"),
            tuple(opened),
            tuple(
                max(extent, 1) if known < 0 else extent for extent, known in zip(shape, opened, strict=True)
            ),
            content_of(self.buffers[buffer]) if buffer else None,
            self._quantization(quantization, place),
            bool(table.integer(5, "bool")),
            sparsity_of(table.table(6)),
            quantization is not None and bool(quantization.integer(4, "uint8")),
        )

    def _with_blocks(
        self, tensors: Sequence[TensorRecord], at: int, details: Table | None, place: str
    ) -> TensorRecord:
        """Returns a tensor with the scales of its blocks; those with zero points stay custom."""
        record = tensors[at]
        if details is None or details.integer(1, "int32") > 0:
            return record
        scales, size = details.integer(0, "int32"), details.integer(2, "int32")
        self._check((scales,), len(tensors), place, 0)
        found, last = tensors[scales], record.example[-1] if record.example else 0
        content, count = found.content, math.prod(record.example) // max(size, 1)
        is_half = found.type == TENSOR_TYPES["float16"]
        if size < 1 or last % size or not is_half or content is None or len(content) != 2 * count:
            raise damaged(self.path, f"a tensor has {size} elements in a block, and other scales", place)
        return replace(record, is_custom=False, blocks=BlocksRecord(content, size))

    def _quantization(self, table: Table | None, place: str) -> QuantizationRecord | None:
        if table is None:
            return None
        scale, zero_point = table.numbers(2, "float32"), table.integers(3, "int64")
        if not scale:
            return None
        if zero_point and len(zero_point) not in (1, len(scale)):
            cause = f"a tensor has {len(scale)} scales and {len(zero_point)} zero points"
            raise damaged(self.path, cause, place)
        points = zero_point or [0]
        points = points * len(scale) if len(points) == 1 else points
        return QuantizationRecord(tuple(map(float, scale)), tuple(points), table.integer(6, "int32"))
