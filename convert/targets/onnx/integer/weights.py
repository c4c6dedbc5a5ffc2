"""Weights that the source holds as integers with scales are stored that way in ONNX, on request.

Quantized weights of torchao, or of a user's own code, reach the lowered graph as float constants, since the
product of integers and scales is folded. Here each such constant is compared with the integers of the source.
Where it is ``(integers - zero_points) * scales`` in all elements, per tensor, per row or per block of a row,
it is replaced by the integers and a DequantizeLinear, or by the com.microsoft operator MatMulNBits.

Both are not the default: MatMulNBits is an operator of ONNX Runtime alone, and into the other form ONNX
Runtime fuses an approximation, see ``FUSED``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import ml_dtypes
import numpy as np

from tmconvert.ir import Constant, InternalGraph
from tmconvert.ir.fake_quant import RestoredArray
from tmconvert.lowering.names import Names, name_of_form
from tmconvert.lowering.origins import Role
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx.operators import spec
from tmconvert.targets.onnx.passes.matmul_n_bits import Blocks, n_bits_operators, takes

SMALL = 1024  # elements; what is smaller does not matter to the file
_BLOCKS_SINCE, _AXES_SINCE, _PAIRS_SINCE = 21, 13, 10
_EXACT = 4e-7  # of the largest weight of a block; one or two roundings of float32
FUSED = (
    "ONNX Runtime rounds the activations of products with such weights to 8 bits, unless the session entry "
    "session.qdq_matmulnbits_accuracy_level is 1; the file was compared without that rounding"
)
_INT4 = {"int8": np.dtype(ml_dtypes.int4), "uint8": np.dtype(ml_dtypes.uint4)}


class Integers(NamedTuple):
    """Integers of the source, rows last; ``zero_points`` and ``blocks`` are candidates from its graph."""

    values: np.ndarray
    zero_points: tuple[np.ndarray, ...]
    blocks: tuple[int, ...]


class Stored(NamedTuple):
    """A weight ``(values - zero_point) * scale``: rows of ``values``, each in blocks of one scale.

    ``values`` has shape [N, K], ``scale`` and ``zero_point`` [N, blocks]; one element each if ``is_whole``.
    ``is_transposed`` is true for a constant of shape [K, N]. ``order`` has the column of each of ``values``,
    where these are in another order.
    """

    values: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | None
    is_transposed: bool
    shape: tuple[int, ...]
    order: np.ndarray | None = None

    @property
    def is_plain(self) -> bool:
        """Whether a DequantizeLinear computes the weight."""
        return self.order is None and (self.zero_point is None or self.zero_point.dtype.kind in "iu")

    @property
    def is_whole(self) -> bool:
        return self.scale.size == 1

    @property
    def block_size(self) -> int:
        return self.values.shape[1] // self.scale.shape[1]

    @property
    def has_blocks(self) -> bool:
        return self.scale.shape[1] > 1

    @property
    def dtype(self) -> np.dtype:
        """Returns the smallest type that holds the integers."""
        least = -8 if self.values.dtype == np.int8 else 0
        parts = [self.values] if self.zero_point is None else [self.values, self.zero_point]
        fits = all(part.min() >= least and part.max() < least + 16 for part in parts)
        return _INT4[self.values.dtype.name] if fits else self.values.dtype


@dataclass
class IntegerWeights:
    """``graph`` is written; ``stored`` counts its weights in integers by the name of their type.

    ``refused`` are the weights that the opset cannot store, by the opset that can, ``floats`` those of which
    DequantizeLinear does not compute; ``is_fused`` is true if ONNX Runtime may fuse products of some.
    """

    graph: TargetGraph
    stored: dict[str, int] = field(default_factory=dict)
    refused: dict[int, int] = field(default_factory=dict)
    floats: int = 0
    is_fused: bool = False

    def notes(self) -> list[str]:
        """Returns notes for the report."""
        notes = [
            f"{_count(count)} of the source in integers {'is' if count == 1 else 'are'} stored as {name}"
            for name, count in self.stored.items()
        ]
        notes += [FUSED] * self.is_fused
        if self.floats:
            notes.append(
                f"{_count(self.floats)} of the source in integers, with zero points in fractions or columns "
                "in another order, are stored as floats: only MatMulNBits takes such"
            )
        return notes + [
            f"{_count(count)} of the source in integers {'is' if count == 1 else 'are'} stored as floats: "
            f"--opset {opset} stores {'it' if count == 1 else 'them'} as integers"
            for opset, count in self.refused.items()
        ]


def _count(count: int) -> str:
    return f"{count} weight{'s' * (count > 1)}"


def store_integer_weights(graph: TargetGraph, source: InternalGraph, kind: str) -> IntegerWeights:
    """Returns a copy of ``graph`` with its weights as ``source`` holds them.

    ``kind`` is "DequantizeLinear", or "MatMulNBits" for products that this operator can compute.
    """
    made = IntegerWeights(graph)
    arrays = [expr.value for expr in source if isinstance(expr, Constant)]
    held = [each for each in arrays if isinstance(each, RestoredArray) and each.integers is not None]
    candidates = list(_integers_of(source))
    if candidates or held:
        made.graph = _Rewriting(candidates, held, kind, made, graph).graph(graph)
    return made


class _Rewriting:
    def __init__(
        self,
        candidates: Sequence[Integers],
        held: Sequence[RestoredArray],
        kind: str,
        made: IntegerWeights,
        graph: TargetGraph,
    ) -> None:
        self.candidates, self.kind, self.made = candidates, kind, made
        self.held = {_address(each): each.integers for each in held}
        self.named = {id(value): value for each in graph.nested() for value in each.values()}
        self.names = Names(value.name for value in self.named.values())
        self.found: dict[int, tuple[Value, Stored | None]] = {}
        self.restored: dict[int, Value] = {}
        self.constants: dict[int, list[Value]] = {}

    def graph(self, graph: TargetGraph) -> TargetGraph:
        """Returns a copy of a graph and its subgraphs."""
        copy = replace(graph, operators=[])
        around, self.restored = self.restored, {}
        for operator in graph.operators:
            attributes = {
                name: self.graph(value) if isinstance(value, TargetGraph) else value
                for name, value in operator.attributes.items()
            }
            each = replace(operator, inputs=list(operator.inputs), attributes=attributes)
            copy.operators += self._operators(each, int(graph.version))
        self.restored = around
        return copy

    def _operators(self, operator: Operator, opset: int) -> Iterator[Operator]:
        for index, value in enumerate(operator.inputs):
            stored = None if value is None else self._find_integers(value)
            if value is None or stored is None:
                continue
            if self.kind == "MatMulNBits" and (products := self._in_blocks(operator, index, value, stored)):
                yield from products
                return
            if not stored.is_plain:
                self.made.floats += id(value) not in self.restored
                self.restored[id(value)] = value
                continue
            since = self._since(stored)
            if since > opset:
                self.made.refused[since] = self.made.refused.get(since, 0) + (id(value) not in self.restored)
                self.restored[id(value)] = value
                continue
            if id(value) not in self.restored:
                made = self._dequantize(operator, value, stored, opset)
                self._rename([made])
                self.restored[id(value)] = made.outputs[0]
                yield made
            weights = spec(operator.type).weights
            self.made.is_fused |= weights is not None and weights.is_matrix and not stored.is_whole
            operator.inputs[index] = self.restored[id(value)]
        yield operator

    def _in_blocks(self, operator: Operator, index: int, value: Value, stored: Stored) -> list[Operator]:
        """Returns ONNX Runtime's operators for blocks; none where they do not compute the same."""
        if stored.order is not None and operator.type == "Gather":
            return []
        blocks = Blocks.of_integers(stored.values, stored.scale, stored.zero_point)
        if not takes(operator, index, blocks, value.shape):
            return []
        before = [] if stored.order is None else [self._reorder(operator, stored.order)]
        if id(value) not in self.constants:
            self.constants[id(value)] = blocks.constants(value.name)
            self._count("MatMulNBits", value)
        operators = n_bits_operators(operator, blocks, self.constants[id(value)])
        self._rename([*before, *operators])
        return [*before, *operators]

    def _reorder(self, operator: Operator, order: np.ndarray) -> Operator:
        """Selects the columns of the first operand in the order of the weight's; changes the operand."""
        x = operator.inputs[0]
        assert x is not None
        made = Value(f"{x.name}_columns", x.dtype, x.shape)
        operator.inputs[0] = made
        indices = _constant(f"{x.name}_order", order.astype(np.int64))
        axis = {"axis": len(x.shape) - 1}
        return Operator("Gather", [x, indices], [made], {**axis}, f"{operator.name}/order", operator.source)

    def _rename(self, operators: Sequence[Operator]) -> None:
        """Gives the new values of operators names of their own."""
        for operator in operators:
            for value in (*operator.inputs, *operator.outputs):
                if value is not None and id(value) not in self.named:
                    self.named[id(value)] = value
                    value.name = self.names.free(value.name)

    def _since(self, stored: Stored) -> int:
        if stored.has_blocks:
            return _BLOCKS_SINCE
        return _PAIRS_SINCE if stored.is_whole else _AXES_SINCE

    def _find_integers(self, value: Value) -> Stored | None:
        if value.stored is None or value.dtype != np.float32 or value.stored.size < SMALL:
            return None
        if id(value) not in self.found:
            found = self._held_integers(value)
            if found is None and self.candidates and value.data is not None:
                matches = (_match_integers(value.data, each) for each in self.candidates)
                found = next((each for each in matches if each is not None), None)
            self.found[id(value)] = value, found
        return self.found[id(value)][1]

    def _held_integers(self, value: Value) -> Stored | None:
        """Returns the integers of a matrix of the source that a constant is, as it is or transposed."""
        array = value.stored
        matrix = self.held.get(_address(array)) if isinstance(array, np.ndarray) else None
        if matrix is None or not isinstance(array, np.ndarray):
            return None
        for rows, is_transposed in ((array, False), (array.T, True)):
            if rows.shape == matrix.values.shape and rows.flags.c_contiguous:
                return Stored(*matrix[:3], is_transposed, array.shape, matrix.order)
        return None

    def _dequantize(self, operator: Operator, value: Value, stored: Stored, opset: int) -> Operator:
        dtype = stored.dtype if opset >= _BLOCKS_SINCE else stored.values.dtype
        self._count(dtype.name, value)
        values, scale, zero_point = stored.values, stored.scale, stored.zero_point
        attributes: dict[str, int] = {}
        axis = 1 if stored.is_transposed else 0
        if stored.is_whole:
            scale = scale.reshape(())
        elif stored.has_blocks:
            attributes = {"axis": 1 - axis, "block_size": stored.block_size}
            scale = scale.T if stored.is_transposed else scale
        else:
            attributes, scale = {"axis": axis}, scale.reshape(-1)
        inputs: list[Value | None] = [
            _constant(f"{value.name}_{dtype.name}", _laid_out(values, stored).astype(dtype)),
            _constant(f"{value.name}_scale", np.ascontiguousarray(scale)),
        ]
        if zero_point is not None:
            zeros = zero_point.T if stored.is_transposed else zero_point
            inputs.append(_constant(f"{value.name}_zero_point", zeros.reshape(scale.shape).astype(dtype)))
        result = Value(name_of_form(value.name, Role.DEQUANTIZED), value.dtype, value.shape)
        name = f"{operator.name}/{value.name}_dequantize"
        return Operator("DequantizeLinear", inputs, [result], dict(attributes), name, operator.source)

    def _count(self, name: str, value: Value) -> None:
        self.made.stored[name] = self.made.stored.get(name, 0) + 1


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _constant(name: str, data: np.ndarray) -> Value:
    return Value(name, data.dtype, data.shape, data)


def _laid_out(values: np.ndarray, stored: Stored) -> np.ndarray:
    return np.ascontiguousarray(values.T if stored.is_transposed else values).reshape(stored.shape)


# ---- what the source holds


def _integers_of(source: InternalGraph) -> Iterator[Integers]:
    """Returns the large constants of 8-bit integers, with the numbers that may be their parameters.

    A normalized graph has these as constants, too. They are near: after the integers of another weight, and
    before those of the next.
    """
    arrays = [expr.value for expr in source if isinstance(expr, Constant)]
    arrays = [each for each in arrays if isinstance(each, np.ndarray) and each.dtype.kind in "fiu"]
    places = [place for place, each in enumerate(arrays) if _are_integers(each)]
    for before, place, after in zip([-1, *places], places, [*places[1:], len(arrays)], strict=False):
        values = arrays[place].reshape(len(arrays[place]), -1)
        near = [each for each in arrays[before + 1 : after] if each.size < values.size]
        zeros = {each.tobytes(): each for each in near if np.array_equal(each, np.rint(each))}
        blocks = {each.size // len(values) for each in near if each.size and each.size % len(values) == 0}
        sizes = {count for count in (1, *blocks) if values.shape[1] % count == 0}
        yield Integers(values, tuple(zeros.values()), tuple(sorted(sizes)))


def _are_integers(array: np.ndarray) -> bool:
    return array.dtype in (np.int8, np.uint8) and array.ndim >= 2 and array.size >= SMALL


# ---- comparison


def _match_integers(weight: np.ndarray, integers: Integers) -> Stored | None:
    """Returns how integers of the source make a constant of the lowered graph; None if they do not."""
    values = integers.values
    if weight.size != values.size:
        return None
    forms = [(weight.reshape(len(weight), -1), False)] if weight.ndim >= 1 else []
    forms += [(weight.T, True)] if weight.ndim == 2 else []
    for rows, is_transposed in forms:
        if rows.shape != values.shape:
            continue
        for count in integers.blocks:
            zeros = [None, *(each for each in integers.zero_points if each.size in (1, len(rows) * count))]
            for zero in zeros:
                found = _scales(rows, values, count, zero)
                if found is not None:
                    return Stored(values, *found, is_transposed, weight.shape)
    return None


def _scales(
    rows: np.ndarray, values: np.ndarray, count: int, zero: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None] | None:
    """Returns scales [N, count] and zero points with which ``values`` are ``rows``, in blocks of a row."""
    height, width = rows.shape
    shape = height, count, width // count
    zeros = None if zero is None else np.broadcast_to(zero.reshape(-1), (height * count,)).astype(np.int64)
    if zeros is not None and (not zeros.any() or not _fits(zeros, values.dtype)):
        return None
    zeros = None if zeros is None else zeros.reshape(height, count)
    for part in (slice(0, 1), slice(None)):  # most candidates fail in the first row
        steps = values[part].reshape(-1, *shape[1:]).astype(np.float32)
        if zeros is not None:
            steps = steps - zeros[part, :, None].astype(np.float32)
        blocks = rows[part].reshape(steps.shape)
        largest = np.argmax(np.abs(steps), axis=2)[..., None]
        step = np.take_along_axis(steps, largest, 2)[..., 0]
        weight = np.take_along_axis(blocks, largest, 2)[..., 0]
        scale = np.where(step == 0, np.float32(1), weight / np.where(step == 0, np.float32(1), step))
        error = np.abs(steps * scale[..., None] - blocks).max(axis=2)
        if np.any(error > np.abs(weight) * _EXACT) or not np.all(np.isfinite(scale)):
            return None
    scale = scale.astype(np.float32)
    if count == 1 and zeros is None and np.all(scale == scale[0, 0]):
        scale = scale[:1]
    return scale, None if zeros is None else zeros.astype(values.dtype)


def _fits(zeros: np.ndarray, dtype: np.dtype) -> bool:
    limits = np.iinfo(dtype)
    return bool(zeros.min() >= limits.min and zeros.max() <= limits.max)
