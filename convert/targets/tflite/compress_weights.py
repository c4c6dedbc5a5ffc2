"""Compresses TFLite weights: to float16, or to int8, int4 and int2 with scales (``quantize_weights.py``).

Operators with a kernel for such integers read them directly (``dynamic_range.py``). A GATHER selects rows of
the stored table, of int4 and int2 as EMBEDDING_LOOKUP. Any other operator has a DEQUANTIZE before it, which
runtimes run once, and XNNPACK folds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tmconvert.formats.tflite.schema import NARROW_BITS
from tmconvert.ir.lazy_constants import Array, computed, memory_of
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.lowering.block_scales import ScaleRule
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.lowering.type_rules import Rules, TypeRules
from tmconvert.lowering.weight_notes import size_notes
from tmconvert.targets.target import SharedWeights
from tmconvert.targets.tflite.dynamic_range import KERNEL_STEPS, takes, with_rounded_activations, with_stored
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.quantize_weights import (
    Form,
    Stored,
    form_of,
    halved,
    looks_up,
    quantized,
    stored_bytes,
)

# Elements; what is smaller does not matter to the file, and biases are best left alone.
_SMALL = 1024
_F32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Compressed:
    """``graph`` is written; ``restored`` has the same weights as float32 constants.

    ``stored`` are the weights that changed, as pairs of before and after. ``rounded`` are copies of
    ``restored`` that quantize activations where the kernels of ``graph`` do, the first with the same steps,
    the others with larger ones. It is empty if no kernel does.
    """

    graph: TargetGraph
    restored: TargetGraph
    rounded: tuple[TargetGraph, ...]
    stored: tuple[tuple[Value, Value], ...]

    @property
    def before(self) -> int:
        """Returns the bytes of the compressed weights before."""
        return sum(value.nbytes for value, _ in self.stored)

    @property
    def after(self) -> int:
        """Returns the bytes of the compressed weights after."""
        return sum(stored_bytes(value) for _, value in self.stored)

    def notes(self, kind: str) -> Iterator[str]:
        """Returns notes with the sizes; ``kind`` is the requested type."""
        return size_notes(
            kind,
            ((after.dtype.name, stored_bytes(before), stored_bytes(after)) for before, after in self.stored),
        )


# How many steps activations have in ``rounded``.
_STEPS = (KERNEL_STEPS, KERNEL_STEPS - 4, KERNEL_STEPS - 8, KERNEL_STEPS - 12)


def compress_weights(
    graph: TargetGraph,
    kind: str,
    rules: Rules = (),
    *,
    scales: ScaleRule = "max",
    is_exact: bool = False,
    known: SharedWeights | None = None,
) -> Compressed:
    """Returns a copy of ``graph`` with its large float32 weights as ``kind``, or as ``rules`` state.

    ``scales`` is the rule for the scales of int4 and int2. ``is_exact`` leaves weights that float16 would
    round. ``known`` gets what is compressed, for other signatures of the file, which have the same options.
    Raises UsageError TM6032 for a rule that matches nothing.
    """
    chosen = TypeRules(rules, graph)
    chosen.check()
    weights = _Weights(kind, scales, is_exact, chosen, {} if known is None else known)
    written = _Written(weights).graph(graph)
    restored = _Restored(weights).graph(graph)
    rounds = any(
        value is not None and value.quantization is not None and spec(operator.type).dynamic_range is not None
        for operator in written.all_operators()
        for value in operator.inputs
    )
    rounded = tuple(_Rounded(weights, steps).graph(graph) for steps in _STEPS) if rounds else ()
    stored = tuple((each.before, each.after) for each in weights.stored.values() if each is not None)
    return Compressed(written, restored, rounded, stored)


class _Weight(NamedTuple):
    """A weight before and after, and as a float32 constant of the same numbers."""

    before: Value
    after: Value
    restored: Value


class _Weights:
    """Compresses each weight once, for all operators that use it.

    ``known`` has what was compressed for other signatures of the file, by memory and form.
    """

    def __init__(
        self, kind: str, scales: ScaleRule, is_exact: bool, rules: TypeRules, known: SharedWeights
    ) -> None:
        self.kind, self.scales, self.is_exact, self.rules, self.known = kind, scales, is_exact, rules, known
        self.stored: dict[tuple[int, Form], _Weight | None] = {}

    def compressed(self, operator: Operator, index: int, value: Value, runtime: int) -> _Weight | None:
        """Returns the compressed form of an operator's input; None for inputs that stay."""
        if value.stored is None or value.dtype != np.float32 or math.prod(value.shape) < _SMALL:
            return None
        form = form_of(operator, index, value, self.rules.type_of([operator], self.kind), runtime)
        if form is None:
            return None
        key = id(value), form
        if key not in self.stored:
            self.stored[key] = self._converted(value, value.stored, form)
        return self.stored[key]

    def _converted(self, value: Value, data: Array, form: Form) -> _Weight | None:
        key = memory_of(data), value.shape, form
        if key not in self.known:
            array = data if data.shape == value.shape else computed(data).reshape(value.shape)
            is_half = form.axis is None
            made = halved(array, is_exact=self.is_exact) if is_half else quantized(array, form, self.scales)
            self.known[key] = made
        stored = self.known[key]
        if not isinstance(stored, Stored):  # it stays as it is
            return None
        elements, quantization = stored.elements, stored.quantization
        name = f"{value.name}_{form.kind}"
        after = Value(name, elements.dtype, value.shape, elements, quantization)
        if quantization is not None and 2 * stored_bytes(after) > value.nbytes:  # channels of few elements
            return None
        return _Weight(value, after, Value(f"{name}_restored", _F32, value.shape, stored.restored))


def rows_of(weight: Value) -> tuple[Value, Value]:
    """Returns an int8 table, and the scale of each row."""
    assert weight.quantization is not None
    scale = weight.quantization.scale.reshape(-1, *[1] * (len(weight.shape) - 1))
    rows = Value(f"{weight.name}_rows", weight.dtype, weight.shape, weight.stored)
    return rows, Value(f"{weight.name}_scale", scale.dtype, scale.shape, scale)


class _Rebuilt:
    """Copies a graph and its subgraphs with compressed weights, as ``operators`` defines."""

    def __init__(self, weights: _Weights) -> None:
        self.weights = weights
        self.graphs: dict[int, TargetGraph] = {}

    def graph(self, graph: TargetGraph) -> TargetGraph:
        if id(graph) not in self.graphs:
            made = self.graphs[id(graph)] = replace(graph, operators=[])
            self.begin()
            for operator in graph.operators:
                attributes = {
                    name: self.graph(value) if isinstance(value, TargetGraph) else value
                    for name, value in operator.attributes.items()
                }
                stored = {
                    index: after
                    for index, value in enumerate(operator.inputs)
                    if value is not None
                    and (after := self.weights.compressed(operator, index, value, int(graph.version)))
                }
                copy = replace(operator, inputs=list(operator.inputs), attributes=attributes)
                made.operators += self.operators(copy, stored, int(graph.version))
        return self.graphs[id(graph)]

    def begin(self) -> None:
        """Called before the first operator of each graph."""

    def operators(self, operator: Operator, stored: dict[int, _Weight], runtime: int) -> list[Operator]:
        """Returns the replacement of ``operator``, some of whose inputs are compressed."""
        raise NotImplementedError


class _Written(_Rebuilt):
    """The copy with the compressed weights."""

    def begin(self) -> None:
        self.floats: dict[int, Value] = {}

    def operators(self, operator: Operator, stored: dict[int, _Weight], runtime: int) -> list[Operator]:
        made: list[Operator] = []
        for index, (_, weight, _) in stored.items():
            if takes(operator, index, weight, runtime):
                operator = with_stored(operator, index, weight)
            elif weight.dtype.name in NARROW_BITS and looks_up(operator, index):
                return _lookup(operator, weight)
            elif _picks_rows(operator, weight):
                return _rows(operator, weight)
            else:
                made += self._dequantized(operator, index, weight)
        return [*made, operator]

    def _dequantized(self, operator: Operator, index: int, weight: Value) -> list[Operator]:
        value = operator.inputs[index]
        assert value is not None
        is_new = id(weight) not in self.floats
        made = self.floats.setdefault(id(weight), Value(value.name, value.dtype, value.shape))
        operator.inputs[index] = made
        name = f"{operator.name}/{value.name}_dequantize"
        return [Operator("DEQUANTIZE", [weight], [made], {}, name, operator.source)] if is_new else []


class _Restored(_Rebuilt):
    """The copy with the weights decompressed to float32."""

    def operators(self, operator: Operator, stored: dict[int, _Weight], runtime: int) -> list[Operator]:
        for index, weight in stored.items():
            operator.inputs[index] = weight.restored
        return [operator]


class _Rounded(_Restored):
    """Like restored, with activations rounded like in kernels for int8 weights."""

    def __init__(self, weights: _Weights, steps: int) -> None:
        super().__init__(weights)
        self.steps = steps

    def operators(self, operator: Operator, stored: dict[int, _Weight], runtime: int) -> list[Operator]:
        rounds = any(takes(operator, index, each.after, runtime) for index, each in stored.items())
        (plain,) = super().operators(operator, stored, runtime)
        return with_rounded_activations(plain, self.steps) if rounds else [plain]


def _picks_rows(operator: Operator, weight: Value) -> bool:
    is_whole = not operator.attributes.get("batch_dims", 0)
    return operator.type == "GATHER" and weight.quantization is not None and is_whole


def _rows(operator: Operator, weight: Value) -> list[Operator]:
    """Gathers int8 rows and their scales, so that the whole table is never decompressed."""
    indices, (rows,) = operator.inputs[1], operator.outputs
    table, scales = rows_of(weight)
    picked = Value(f"{rows.name}_int8", weight.dtype, rows.shape)
    steps = Value(f"{rows.name}_steps", rows.dtype, rows.shape)
    ranks = len(rows.shape) - len(weight.shape) + 1
    step = Value(f"{rows.name}_scale", rows.dtype, (*rows.shape[:ranks], *scales.shape[1:]))
    name, source = operator.name, operator.source
    return [
        replace(operator, inputs=[table, indices], outputs=[picked]),
        replace(operator, inputs=[scales, indices], outputs=[step], name=f"{name}/scale"),
        Operator("CAST", [picked], [steps], {}, f"{name}/cast", source),
        Operator("MUL", [steps, step], [rows], {}, f"{name}/mul", source),
    ]


def _lookup(operator: Operator, table: Value) -> list[Operator]:
    """Looks up rows, which EMBEDDING_LOOKUP restores; its indices are a list."""
    indices, (rows,) = operator.inputs[1], operator.outputs
    assert indices is not None
    name, source = operator.name, operator.source
    if len(indices.shape) == 1:
        return [replace(operator, type="EMBEDDING_LOOKUP", inputs=[indices, table], attributes={})]
    count = math.prod(indices.shape)
    flat = Value(f"{rows.name}_indices", indices.dtype, (count,))
    found = Value(f"{rows.name}_rows", rows.dtype, (count, rows.shape[-1]))
    return [
        _reshape(indices, flat, f"{name}/indices", operator),
        Operator("EMBEDDING_LOOKUP", [flat, table], [found], {}, name, source),
        _reshape(found, rows, f"{name}/shape", operator),
    ]


def _reshape(value: Value, made: Value, name: str, operator: Operator) -> Operator:
    sizes = [-1 if isinstance(extent, Dim) else extent for extent in made.shape]
    shape = Value(f"{name}_sizes", np.dtype(np.int32), (len(sizes),), np.array(sizes, np.int32))
    return Operator("RESHAPE", [value, shape], [made], {"new_shape": sizes}, name, operator.source)
