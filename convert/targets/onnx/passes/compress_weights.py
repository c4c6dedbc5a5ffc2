"""Compresses ONNX weights: to float16, to int8 with a scale per channel, or to int4 with scales per block.

What the operators compute stays float32. Weights are restored by a Cast and, with scales, a Mul: runtimes
do that once, when the file is loaded. A DequantizeLinear would be computed in each run, and ONNX Runtime
packs no weights after it: a network of convolutions took 25 times as long. Only into products of matrices
ONNX Runtime fuses it, as MatMulNBits, which is faster than float32: these have one. A Gather selects rows of
a table in float16 or int8, so that the whole table is never restored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np

from tmconvert.ir.lazy_constants import Array, computed, viewed
from tmconvert.lowering.names import Names
from tmconvert.lowering.rounded_constants import Narrowed, Rounded, largest
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.lowering.type_rules import TypeRules
from tmconvert.lowering.weight_notes import size_notes
from tmconvert.targets.onnx.operators import WeightAxes, axes_of_weight, spec
from tmconvert.targets.onnx.passes.matmul_n_bits import n_bits_product

SMALL = 1024  # elements; what is smaller does not matter to the file
_AXES_SINCE = 13
LIMITS = {"int8": 127, "int4": 7}
_TYPES = {"int8": np.dtype(np.int8), "int4": np.dtype(ml_dtypes.int4)}
_F32, _F16 = np.dtype(np.float32), np.dtype(np.float16)
_FLOAT = 1  # of TensorProto.DataType
# elements along the axis of blocks: few enough for small errors, many enough for small files
_BLOCK, _LEAST_BLOCK, _MOST_BLOCK = 32, 16, 128


@dataclass(frozen=True)
class StoredWeight:
    """A weight of the float32 graph, ``plain``, and its form in the file, ``stored``.

    ``restored`` has the same values in float32. Integers have scales, per channel of ``axis``, or, with
    ``block_size``, for so many elements along ``axis``: ``scale`` in the shape of DequantizeLinear,
    ``factor`` in one to multiply with. The file has those of them that its operators read; MatMulNBits reads
    the constants ``n_bits``.
    """

    plain: Value
    stored: Value
    restored: Value
    scale: Value | None = None
    factor: Value | None = None
    axis: int = 0
    block_size: int = 0
    n_bits: list[Value] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.stored.dtype.name

    @property
    def before(self) -> int:
        return self.plain.nbytes

    @property
    def after(self) -> int:
        """Returns the bytes of the weight in the file."""
        bits = 4 if self.kind == "int4" else 8 * self.stored.dtype.itemsize
        scales = 0 if self.scale is None else self.scale.nbytes
        return (math.prod(self.plain.shape) * bits + 7) // 8 + scales

    @property
    def scale_shape(self) -> tuple[int, ...]:
        """Returns the shape in which the scales are multiplied with a weight that has an axis of blocks."""
        shape = self.plain.shape
        if self.block_size:
            return (*shape[: self.axis], shape[self.axis] // self.block_size, 1, *shape[self.axis + 1 :])
        return tuple(extent if axis == self.axis else 1 for axis, extent in enumerate(shape))

    @property
    def split_shape(self) -> tuple[int, ...]:
        """Returns the shape of the weight with an axis of blocks."""
        if not self.block_size:
            return self.plain.shape
        before, after = self.plain.shape[: self.axis], self.plain.shape[self.axis + 1 :]
        return (*before, self.plain.shape[self.axis] // self.block_size, self.block_size, *after)


@dataclass(frozen=True)
class Compressed:
    """``graph`` is written; ``restored`` has the same weights as float32 constants.

    ``is_fused`` is true if ONNX Runtime may fuse products of some.
    """

    graph: TargetGraph
    restored: TargetGraph
    stored: tuple[StoredWeight, ...]
    is_fused: bool

    def notes(self, kind: str) -> Iterator[str]:
        """Returns notes with the sizes; ``kind`` is the requested type."""
        return size_notes(kind, ((each.kind, each.before, each.after) for each in self.stored))


def compress_weights(graph: TargetGraph, kind: str, rules: TypeRules, *, form: str = "") -> Compressed:
    """Returns a copy of ``graph`` with its large float32 weights as ``kind``, or as ``rules`` state.

    ``form`` "DequantizeLinear" restores all integers with that operator; "MatMulNBits" writes products with
    int4 weights as com.microsoft::MatMulNBits.
    """
    stored = {id(each.plain): each for each in _stored_weights(graph, kind, rules)}
    written = _Writing(graph, stored, form)
    made = written.graph(graph)
    others = {key: each.restored for key, each in stored.items()}
    return Compressed(made, _with_constants(graph, others), tuple(stored.values()), written.is_fused)


def _stored_weights(graph: TargetGraph, kind: str, rules: TypeRules) -> Iterator[StoredWeight]:
    names = Names(value.name for each in graph.nested() for value in each.values())
    uses: dict[int, list[tuple[Operator, int]]] = {}
    for operator in graph.all_operators():
        for index, value in enumerate(operator.inputs):
            if value is not None:
                uses.setdefault(id(value), []).append((operator, index))
    for value in graph.constants():
        if value.dtype != _F32 or math.prod(value.shape) < SMALL or id(value) not in uses:
            continue
        found = (
            axes_of_weight(operator.type, operator.attributes, index, len(value.shape))
            for operator, index in uses[id(value)]
        )
        axes = next(filter(None, found), None)
        type = rules.type_of([operator for operator, _ in uses[id(value)]], kind)
        made = _stored(value, type, axes, names)
        if made is not None and 2 * made.after <= made.before:
            yield made


def _stored(value: Value, kind: str, axes: WeightAxes | None, names: Names) -> StoredWeight | None:
    """Returns the form of a weight in the file; None for one that stays as it is."""
    assert value.stored is not None
    array: Array = (
        value.stored if value.stored.shape == value.shape else computed(value.stored).reshape(value.shape)
    )
    if kind == "float16":
        most = largest(array, range(array.ndim))
        if not np.all(most <= np.finfo(np.float16).max):
            return None
        stored = Value(names.free(f"{value.name}_float16"), _F16, value.shape, Narrowed(array, _F16))
        return StoredWeight(value, stored, replace(value, stored=Narrowed(array, _F32)))
    if kind not in LIMITS or axes is None:
        return None
    block = _block_size(value.shape[axes.block]) if kind == "int4" else 0
    empty = StoredWeight(value, value, value, axis=axes.block if block else axes.channel, block_size=block)
    parts = viewed(array, lambda each: each.reshape(empty.split_shape))
    over = [axis for axis, extent in enumerate(empty.scale_shape) if extent == 1]
    most = largest(parts, over)
    if not np.all(np.isfinite(most)):
        return None
    limit = LIMITS[kind]
    scale = np.where(most > 0, most / np.float32(limit), np.float32(1)).astype(np.float32)
    scale = np.maximum(scale, np.finfo(np.float32).tiny)
    broadcast = np.broadcast_to(scale, parts.shape)
    flat = scale.reshape(-1) if not block else scale.squeeze(axes.block + 1)
    dtype = _TYPES[kind]
    return replace(
        empty,
        stored=Value(
            names.free(f"{value.name}_{kind}"), dtype, value.shape, Rounded(parts, broadcast, limit, dtype)
        ),
        restored=replace(value, stored=Rounded(parts, broadcast, limit, _F32)),
        scale=Value(names.free(f"{value.name}_scale"), _F32, flat.shape, flat),
        factor=Value(names.free(f"{value.name}_factor"), _F32, scale.shape, scale),
    )


def _block_size(extent: int) -> int:
    """Returns how many elements have one scale: a divisor near 32; 0 where none is near.

    >>> _block_size(768), _block_size(100), _block_size(251), _block_size(3)
    (32, 25, 0, 0)
    """
    sizes = [size for size in range(_LEAST_BLOCK, _MOST_BLOCK + 1) if extent % size == 0]
    return min(sizes, key=lambda size: abs(math.log2(size / _BLOCK)), default=0)


class _Writing:
    """The copy of a graph that is written. Weights are restored in the outermost graph, before they are used,
    so that no loop does it again.
    """

    def __init__(self, graph: TargetGraph, stored: Mapping[int, StoredWeight], form: str) -> None:
        self.stored, self.form = stored, form
        self.names = Names(value.name for each in graph.nested() for value in each.values())
        for each in stored.values():
            self.names.take(value.name for value in (each.stored, each.scale, each.factor) if value)
        self.restored: dict[tuple[int, bool], Value] = {}
        self.before: list[Operator] = []
        self.opset = int(graph.version)
        self.is_fused = False

    def graph(self, graph: TargetGraph, *, is_inner: bool = False) -> TargetGraph:
        operators: list[Operator] = []
        for operator in graph.operators:
            attributes = {
                name: self.graph(value, is_inner=True) if isinstance(value, TargetGraph) else value
                for name, value in operator.attributes.items()
            }
            copy = replace(operator, inputs=list(operator.inputs), attributes=attributes)
            made = list(self._operators(copy))
            if not is_inner:
                operators += self.before
                self.before = []
            operators += made
        outputs = [self._whole(value) for value in graph.outputs]
        return replace(graph, operators=[*operators, *([] if is_inner else self.before)], outputs=outputs)

    def _operators(self, operator: Operator) -> Iterator[Operator]:
        for index, value in enumerate(operator.inputs):
            stored = None if value is None else self.stored.get(id(value))
            if value is None or stored is None:
                continue
            if self._selects_rows(operator, index, stored):
                yield from self._rows(operator, stored)
                return
            if self.form == "MatMulNBits" and stored.kind == "int4" and index == 1:
                product = self._product(operator, stored)
                if product:
                    yield from product
                    return
            dequantizes = self._dequantizes(operator, index, stored)
            weights = spec(operator.type).weights
            self.is_fused |= dequantizes and weights is not None and weights.is_matrix
            operator.inputs[index] = self._whole(value, dequantizes=dequantizes)
        yield operator

    def _dequantizes(self, operator: Operator, index: int, stored: StoredWeight) -> bool:
        """Whether a weight is restored with DequantizeLinear."""
        if stored.scale is None or self.opset < _AXES_SINCE:
            return False
        size = stored.block_size
        is_fused = operator.type == "MatMul" and index == 1 and len(stored.plain.shape) == 2
        return self.form == "DequantizeLinear" or (is_fused and not size & (size - 1))

    def _whole(self, value: Value, *, dequantizes: bool = False) -> Value:
        """Returns the restored weight; other values as they are."""
        stored = self.stored.get(id(value))
        if stored is None:
            return value
        key = id(value), dequantizes
        if key not in self.restored:
            name = (
                value.name if (key[0], not dequantizes) not in self.restored else self.names.free(value.name)
            )
            made = self.restored[key] = Value(name, _F32, value.shape)
            self.before += self._dequantized(stored, made) if dequantizes else self._multiplied(stored, made)
        return self.restored[key]

    def _dequantized(self, stored: StoredWeight, made: Value) -> list[Operator]:
        attributes = {"axis": stored.axis}
        if stored.block_size:
            attributes["block_size"] = stored.block_size
        name = f"{made.name}/dequantize"
        return [Operator("DequantizeLinear", [stored.stored, stored.scale], [made], {**attributes}, name)]

    def _multiplied(self, stored: StoredWeight, made: Value) -> list[Operator]:
        """Returns operators that restore a weight: Cast, and Mul with scales, between reshapes for blocks."""
        operators: list[Operator] = []

        def op(type: str, *inputs: Value, shape: tuple[int, ...], **attributes: int) -> Value:
            ending = type.lower()
            result = Value(self.names.free(f"{made.name}_{ending}"), _F32, shape)
            operators.append(Operator(type, [*inputs], [result], {**attributes}, f"{result.name}/{ending}"))
            return result

        def reshaped(x: Value, shape: tuple[int, ...]) -> Value:
            data = np.array(shape, np.int64)
            return op(
                "Reshape",
                x,
                Value(self.names.free(f"{made.name}_shape"), data.dtype, data.shape, data),
                shape=shape,
            )

        result = op("Cast", stored.stored, shape=made.shape, to=_FLOAT)
        if stored.factor is not None:
            split = stored.split_shape
            result = reshaped(result, split) if stored.block_size else result
            result = op("Mul", result, stored.factor, shape=split)
            result = reshaped(result, made.shape) if stored.block_size else result
        operators[-1].outputs[0] = made
        return operators

    def _selects_rows(self, operator: Operator, index: int, stored: StoredWeight) -> bool:
        """Whether rows are selected before they are restored; for int4 ONNX has no such Gather."""
        if operator.type != "Gather" or index or stored.kind == "int4":
            return False
        return stored.scale is None or (not operator.attributes.get("axis", 0) and stored.axis == 0)

    def _rows(self, operator: Operator, stored: StoredWeight) -> Iterator[Operator]:
        indices, (rows,) = operator.inputs[1], operator.outputs
        name, source = operator.name, operator.source

        def value(ending: str, dtype: np.dtype, shape: tuple[int, ...]) -> Value:
            return Value(self.names.free(f"{rows.name}_{ending}"), dtype, shape)

        picked = value(stored.kind, stored.stored.dtype, rows.shape)
        yield replace(operator, inputs=[stored.stored, indices], outputs=[picked])
        if stored.scale is None:
            yield Operator("Cast", [picked], [rows], {"to": _FLOAT}, f"{name}/cast", source)
            return
        assert stored.factor is not None
        ones = stored.factor.shape[1:]
        steps = value("steps", _F32, rows.shape)
        step = value("scale", _F32, (*rows.shape[: len(rows.shape) - len(ones)], *ones))
        yield replace(operator, inputs=[stored.factor, indices], outputs=[step], name=f"{name}/scale")
        yield Operator("Cast", [picked], [steps], {"to": _FLOAT}, f"{name}/cast", source)
        yield Operator("Mul", [steps, step], [rows], {}, f"{name}/mul", source)

    def _product(self, operator: Operator, stored: StoredWeight) -> list[Operator]:
        """Returns a MatMulNBits in place of a product; nothing where it does not compute it."""
        assert stored.stored.data is not None and stored.scale is not None and stored.scale.data is not None
        if len(stored.plain.shape) != 2 or not stored.block_size:
            return []
        steps, scale = stored.stored.data.astype(np.int8), stored.scale.data
        if stored.axis == 0:
            steps, scale = steps.T, scale.T
        made = n_bits_product(operator, steps, scale, None)
        if made:
            constants = made[0].inputs[1:]
            if not stored.n_bits:
                for value in constants:
                    assert value is not None
                    value.name = self.names.free(value.name)
                    stored.n_bits.append(value)
            made[0].inputs[1:] = stored.n_bits
            for each in made[:-1]:
                each.outputs[0].name = self.names.free(each.outputs[0].name)
        return made


def _with_constants(graph: TargetGraph, others: Mapping[int, Value]) -> TargetGraph:
    """Returns a copy of a graph and its subgraphs with other constants, by id."""
    operators = [
        replace(
            operator,
            inputs=[value and others.get(id(value), value) for value in operator.inputs],
            attributes={
                name: _with_constants(value, others) if isinstance(value, TargetGraph) else value
                for name, value in operator.attributes.items()
            },
        )
        for operator in graph.operators
    ]
    return replace(graph, operators=operators, outputs=[others.get(id(each), each) for each in graph.outputs])
