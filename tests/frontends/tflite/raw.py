"""TFLite files with parts that tmconvert reads and does not write, built by the package ``tflite``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import tflite

CODES = {"float32": 0, "int32": 2, "complex64": 8, "int8": 9, "float16": 1}


@dataclass
class Tensor:
    """A tensor; ``data`` is the array of a constant. ``sparsity`` is its traversal, blocks and levels.

    A level is its size, or its segments and indices.
    """

    name: str
    dtype: str
    shape: Sequence[int]
    data: np.ndarray | None = None
    sparsity: tuple[Sequence[int], Sequence[int], Sequence[Any]] | None = None


@dataclass
class Operator:
    """An operator by the name of its code, or a custom one; inputs and outputs are numbers of tensors."""

    name: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    custom: bytes | None = None


class _Builder(flatbuffers.Builder):  # type: ignore[misc]
    def integers(self, numbers: Sequence[int], kind: str = "int32") -> int:
        return int(self.CreateNumpyVector(np.asarray(numbers, kind)))

    def offsets(self, offsets: Sequence[int]) -> int:
        self.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.PrependUOffsetTRelative(offset)
        return int(self.EndVector())


def saved(
    path: Path, tensors: Sequence[Tensor], operators: Sequence[Operator], ends: tuple[list[int], list[int]]
) -> Path:
    """Writes a model; ``ends`` are the numbers of its inputs and outputs."""
    b = _Builder(1024)
    buffers = [_buffer(b, None), *(_buffer(b, each.data) for each in tensors)]
    made = [_tensor(b, each, number) for number, each in enumerate(tensors, start=1)]
    codes, calls = zip(*(_operator(b, each, number) for number, each in enumerate(operators)), strict=True)
    vectors = b.offsets(made), b.integers(ends[0]), b.integers(ends[1]), b.offsets(calls)
    tflite.SubGraphStart(b)
    for add, vector in zip(
        (tflite.SubGraphAddTensors, tflite.SubGraphAddInputs, tflite.SubGraphAddOutputs),
        vectors,
        strict=False,
    ):
        add(b, vector)
    tflite.SubGraphAddOperators(b, vectors[3])
    graph = tflite.SubGraphEnd(b)
    graphs, all_codes, all_buffers = b.offsets([graph]), b.offsets(codes), b.offsets(buffers)
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, all_codes)
    tflite.ModelAddSubgraphs(b, graphs)
    tflite.ModelAddBuffers(b, all_buffers)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    path.write_bytes(bytes(b.Output()))
    return path


def _buffer(b: _Builder, data: np.ndarray | None) -> int:
    content = None if data is None else b.CreateNumpyVector(np.frombuffer(data.tobytes(), np.uint8))
    tflite.BufferStart(b)
    if content is not None:
        tflite.BufferAddData(b, content)
    return int(tflite.BufferEnd(b))


def _tensor(b: _Builder, tensor: Tensor, number: int) -> int:
    name, shape = b.CreateString(tensor.name), b.integers(tensor.shape)
    sparsity = None if tensor.sparsity is None else _sparsity(b, *tensor.sparsity)
    tflite.TensorStart(b)
    tflite.TensorAddName(b, name)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddType(b, CODES[tensor.dtype])
    tflite.TensorAddBuffer(b, number)
    if sparsity is not None:
        tflite.TensorAddSparsity(b, sparsity)
    return int(tflite.TensorEnd(b))


def _sparsity(b: _Builder, traversal: Sequence[int], blocks: Sequence[int], levels: Sequence[Any]) -> int:
    made = b.offsets([_level(b, each) for each in levels])
    order, block_map = b.integers(traversal), b.integers(blocks)
    tflite.SparsityParametersStart(b)
    tflite.SparsityParametersAddTraversalOrder(b, order)
    tflite.SparsityParametersAddBlockMap(b, block_map)
    tflite.SparsityParametersAddDimMetadata(b, made)
    return int(tflite.SparsityParametersEnd(b))


def _level(b: _Builder, level: Any) -> int:
    if isinstance(level, int):
        tflite.DimensionMetadataStart(b)
        tflite.DimensionMetadataAddDenseSize(b, level)
        return int(tflite.DimensionMetadataEnd(b))
    held = []
    for vector in level:  # of the narrowest type, as converters store them
        kind = 3 if vector.max(initial=0) < 256 else 2
        values = b.CreateNumpyVector(vector.astype(np.uint8 if kind == 3 else np.uint16))
        start, add, end = (
            (tflite.Uint8VectorStart, tflite.Uint8VectorAddValues, tflite.Uint8VectorEnd)
            if kind == 3
            else (tflite.Uint16VectorStart, tflite.Uint16VectorAddValues, tflite.Uint16VectorEnd)
        )
        start(b)
        add(b, values)
        held.append((kind, end(b)))
    tflite.DimensionMetadataStart(b)
    tflite.DimensionMetadataAddFormat(b, 1)
    tflite.DimensionMetadataAddArraySegmentsType(b, held[0][0])
    tflite.DimensionMetadataAddArraySegments(b, held[0][1])
    tflite.DimensionMetadataAddArrayIndicesType(b, held[1][0])
    tflite.DimensionMetadataAddArrayIndices(b, held[1][1])
    return int(tflite.DimensionMetadataEnd(b))


def _operator(b: _Builder, operator: Operator, number: int) -> tuple[int, int]:
    custom = None if operator.custom is None else b.CreateString(operator.name)
    code = 32 if custom is not None else getattr(tflite.BuiltinOperator, operator.name)
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(code, 127))
    tflite.OperatorCodeAddBuiltinCode(b, code)
    tflite.OperatorCodeAddVersion(b, 1)
    if custom is not None:
        tflite.OperatorCodeAddCustomCode(b, custom)
    made = int(tflite.OperatorCodeEnd(b))
    inputs, outputs = b.integers(operator.inputs), b.integers(operator.outputs)
    options = b.CreateNumpyVector(np.frombuffer(operator.custom, np.uint8)) if operator.custom else None
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, number)
    tflite.OperatorAddInputs(b, inputs)
    tflite.OperatorAddOutputs(b, outputs)
    if options is not None:
        tflite.OperatorAddCustomOptions(b, options)
    return made, int(tflite.OperatorEnd(b))
