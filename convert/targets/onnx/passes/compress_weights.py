"""Compresses ONNX weights: to float16, to int8 with a scale per channel, or to int4 with scales per block.

What the operators compute stays float32. Weights are restored by a Cast and, with scales, a Mul: runtimes
do that once, when the file is loaded. A DequantizeLinear would be computed in each run, and ONNX Runtime
packs no weights after it: a network of convolutions took 25 times as long. Only into products of matrices
ONNX Runtime fuses it, as MatMulNBits, which is faster than float32: these have one. A Gather selects rows of
a table in float16 or int8, or with ONNX Runtime's GatherBlockQuantized in int4, so that the whole table is
never restored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np

from tmconvert.ir.lazy_constants import Array, computed, viewed
from tmconvert.lowering.block_scales import ScaleRule, Steps, block_scales
from tmconvert.lowering.names import Names
from tmconvert.lowering.rounded_constants import Narrowed, Rounded, largest
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.lowering.type_rules import TypeRules
from tmconvert.lowering.weight_notes import size_notes
from tmconvert.targets.onnx.operators import WeightAxes, axes_of_weight, spec
from tmconvert.targets.onnx.passes.matmul_n_bits import Blocks, n_bits_operators, takes

SMALL = 1024  # elements; what is smaller does not matter to the file
_AXES_SINCE = 13
_INT8, _INT4, _UINT4 = (np.dtype(each) for each in (np.int8, ml_dtypes.int4, ml_dtypes.uint4))
_F32, _F16 = np.dtype(np.float32), np.dtype(np.float16)
_FLOAT = 1  # of TensorProto.DataType
# elements along the axis of blocks: few enough for small errors, many enough for small files
_BLOCK, _LEAST_BLOCK, _MOST_BLOCK = 32, 16, 128


@dataclass(frozen=True)
class StoredWeight:
    """A weight of the float32 graph, ``plain``, and its form in the file, ``stored``.

    ``restored`` has the same values in float32. Integers have scales, per channel of ``axis``, or, with
    ``block_size``, for so many elements along ``axis``: ``scale`` and ``zero_point`` in the shape of
    DequantizeLinear, ``factor`` and ``offset`` in one to compute with. The file has those of them that its
    operators read. The operators of ONNX Runtime for blocks read the constants ``n_bits``, those of
    ``blocks``: the rows of a matrix.
    """

    plain: Value
    stored: Value
    restored: Value
    scale: Value | None = None
    factor: Value | None = None
    zero_point: Value | None = None
    offset: Value | None = None
    axis: int = 0
    block_size: int = 0
    steps: Steps | None = None
    blocks: Blocks | None = None
    n_bits: list[Value] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return "float16" if self.steps is None else "int8" if self.steps.high == 127 else "int4"

    @property
    def before(self) -> int:
        return self.plain.nbytes

    @property
    def after(self) -> int:
        """Returns the bytes of the weight in the file."""
        bits = 4 if self.kind == "int4" else 8 * self.stored.dtype.itemsize
        scales = sum(each.nbytes for each in (self.scale, self.zero_point) if each is not None)
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


def compress_weights(
    graph: TargetGraph,
    kind: str,
    rules: TypeRules,
    *,
    form: str = "",
    scales: ScaleRule = "max",
    scale_type: np.dtype = _F32,
) -> Compressed:
    """Returns a copy of ``graph`` with its large float32 weights as ``kind``, or as ``rules`` state.

    ``form`` "DequantizeLinear" restores all integers with that operator; "MatMulNBits" writes products with
    int4 weights as com.microsoft::MatMulNBits, and rows of int4 tables as GatherBlockQuantized. ``scales``
    is the rule for blocks of four bits. The scales are float32, with values of ``scale_type``.
    """
    found = _stored_weights(graph, kind, rules, (scales, scale_type))
    stored = {id(each.plain): each for each in found}
    written = _Writing(graph, stored, form)
    made = written.graph(graph)
    others = {key: each.restored for key, each in stored.items()}
    return Compressed(made, _with_constants(graph, others), tuple(stored.values()), written.is_fused)


def _stored_weights(
    graph: TargetGraph, kind: str, rules: TypeRules, scales: tuple[ScaleRule, np.dtype]
) -> Iterator[StoredWeight]:
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
        made = _stored(value, type, axes, names, scales)
        if made is not None and 2 * made.after <= made.before:
            yield made


def _stored(
    value: Value, kind: str, axes: WeightAxes | None, names: Names, scales: tuple[ScaleRule, np.dtype]
) -> StoredWeight | None:
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
    if kind not in ("int8", "int4") or axes is None:
        return None
    block = _block_size(value.shape[axes.block]) if kind == "int4" else 0
    made = StoredWeight(value, value, value, axis=axes.block if block else axes.channel, block_size=block)
    parts = viewed(array, lambda each: each.reshape(made.split_shape))
    with np.errstate(all="ignore"):
        if block:
            steps, blocks = _block_steps(parts, made.axis + 1, scales)
        else:
            steps, blocks = _channel_steps(parts, made.axis, kind, scales[1]), None
    if not np.all(np.isfinite(steps.scale)):  # of elements that are not, or too large for scales in float16
        return None
    return _with_steps(replace(made, steps=steps, blocks=blocks), parts, names)


def _channel_steps(parts: Array, channel: int, kind: str, scale_type: np.dtype) -> Steps:
    limit = 127 if kind == "int8" else 7
    most = largest(parts, [axis for axis in range(parts.ndim) if axis != channel])
    scale = np.where(most == 0, np.float32(1), most / np.float32(limit)).astype(scale_type)
    scale = np.maximum(scale, np.finfo(scale_type).tiny).astype(np.float32)
    return Steps(scale, None, -limit, limit)


def _block_steps(parts: Array, axis: int, scales: tuple[ScaleRule, np.dtype]) -> tuple[Steps, Blocks | None]:
    """Returns the parameters in the layout of ``parts``; and for a matrix its rows, each with its blocks.

    The parameters of a matrix are in memory by rows, as the operators of ONNX Runtime read them.
    """
    if parts.ndim > 3:
        return block_scales(parts, axis, *scales), None
    back = (1, 2, 0) if axis == 1 else (0, 1, 2)
    rows = viewed(parts, lambda each: each.transpose(2, 0, 1)) if axis == 1 else parts
    found = block_scales(rows, 2, *scales)
    zero_point = None if found.zero_point is None else found.zero_point.transpose(back)
    arranged = found._replace(scale=found.scale.transpose(back), zero_point=zero_point)
    return arranged, Blocks.of(rows, found)


def _with_steps(empty: StoredWeight, parts: Array, names: Names) -> StoredWeight:
    value, steps = empty.plain, empty.steps
    assert steps is not None
    kind = "int8" if steps.high == 127 else "int4"
    dtype = _INT8 if kind == "int8" else _UINT4 if steps.low == 0 else _INT4
    scale, zero = (
        None if each is None else np.broadcast_to(each, parts.shape)
        for each in (steps.scale, steps.zero_point)
    )
    assert scale is not None

    def constant(ending: str, data: np.ndarray | None, *, is_flat: bool = False) -> Value | None:
        if data is None:
            return None
        data = data if not is_flat else data.squeeze(empty.axis + 1) if empty.block_size else data.reshape(-1)
        return Value(names.free(f"{value.name}_{ending}"), data.dtype, data.shape, data)

    def rounded(dtype: np.dtype) -> Rounded:
        return Rounded(parts, scale, steps[2:], dtype, zero)

    zero_point = steps.zero_point
    return replace(
        empty,
        stored=Value(names.free(f"{value.name}_{kind}"), dtype, value.shape, rounded(dtype)),
        restored=replace(value, stored=rounded(_F32)),
        scale=constant("scale", steps.scale, is_flat=True),
        factor=constant("factor", steps.scale),
        zero_point=constant(
            "zero_point", None if zero_point is None else zero_point.astype(_UINT4), is_flat=True
        ),
        offset=constant("offset", None if zero_point is None else zero_point.astype(np.float32)),
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
        self.known = {id(value): value for each in graph.nested() for value in each.values()}
        self.names = Names(value.name for value in self.known.values())
        for each in stored.values():
            parts = (each.stored, each.scale, each.factor, each.zero_point, each.offset)
            self.names.take(value.name for value in parts if value)
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
            if self.form == "MatMulNBits" and (made := self._in_blocks(operator, index, stored)):
                yield from made
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
        inputs = [stored.stored, stored.scale, *([stored.zero_point] if stored.zero_point else [])]
        return [Operator("DequantizeLinear", inputs, [made], {**attributes}, f"{made.name}/dequantize")]

    def _multiplied(self, stored: StoredWeight, made: Value) -> list[Operator]:
        """Returns operators that restore a weight: Cast, Sub and Mul, between reshapes for blocks."""
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
            result = op("Sub", result, stored.offset, shape=split) if stored.offset else result
            result = op("Mul", result, stored.factor, shape=split)
            result = reshaped(result, made.shape) if stored.block_size else result
        operators[-1].outputs[0] = made
        return operators

    def _selects_rows(self, operator: Operator, index: int, stored: StoredWeight) -> bool:
        """Whether rows are selected before they are restored; for int4 ONNX itself has no such Gather."""
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

    def _in_blocks(self, operator: Operator, index: int, stored: StoredWeight) -> list[Operator]:
        """Returns ONNX Runtime's operators in blocks for a product or Gather, none if not the same."""
        blocks = stored.blocks
        if blocks is None or not takes(operator, index, blocks, stored.plain.shape):
            return []
        if not stored.n_bits:
            stored.n_bits.extend(blocks.constants(stored.plain.name))
            for value in stored.n_bits:
                self.known[id(value)] = value
                value.name = self.names.free(value.name)
        made = n_bits_operators(operator, blocks, stored.n_bits)
        for result in (value for each in made for value in (*each.inputs[:2], *each.outputs)):
            if result is not None and id(result) not in self.known:
                self.known[id(result)] = result
                result.name = self.names.free(result.name)
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
