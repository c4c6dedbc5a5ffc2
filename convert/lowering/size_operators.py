"""Operators that compute dynamic sizes at run time from the shapes of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Atom, Dim, Floor, Positive, Size, Symbol, is_symbolic, sole_symbol
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.lowering.target_graph import Value

if TYPE_CHECKING:
    from tmconvert.targets.onnx.builder import OnnxBuilder
    from tmconvert.targets.tflite.builder import TfliteBuilder

# ONNX's operators by their names in TFLite, whose division rounds down
TFLITE = {
    **{name: name.upper() for name in ("Add", "Sub", "Mul", "Shape", "Gather", "Reshape")},
    "Concat": "CONCATENATION",
    "Div": "FLOOR_DIV",
    "Max": "MAXIMUM",
}
# The first opset in which an operator takes as an input what is an attribute before.
SINCE_INPUTS = {"Slice": 10, "Upsample": 9, "Pad": 11, "Resize": 11}


@dataclass(eq=False, slots=True)
class SizeVector(Value):
    """A vector of symbolic sizes, for which operators are written when the first operator needs them.

    A Reshape with one unknown size needs none: its shape is a constant with -1.
    """

    sizes: Any = ()


class SizeOperators:
    """Writes the operators that compute sizes, each once.

    Sizes are vectors of one element inside. A symbol is read off the first tensor that has it as an extent.
    """

    def __init__(self, g: OnnxBuilder | TfliteBuilder) -> None:
        self.g = g
        self.is_onnx = g.graph.target == "onnx"
        self.places: dict[str, tuple[Value, int, int]] = {}  # tensor, axis, and how much more its extent is
        self.shapes: dict[int, Value] = {}
        self.known: dict[Dim, Value] = {}

    def inside(self, g: OnnxBuilder) -> SizeOperators:
        """Returns the size operators of a subgraph: known sizes stay known, new ones are computed inside.

        Sizes that only the data tells have names of their own there; those of its inputs get defined.
        """
        duplicate = SizeOperators(g)
        duplicate.shapes = dict(self.shapes)
        duplicate.known = {size: value for size, value in self.known.items() if not data_symbols(size)}
        duplicate.places = {
            name: (value, axis, more)
            for name, (value, axis, more) in self.places.items()
            if not data_symbols(value.shape[axis])
        }
        return duplicate

    def define(self, value: Value) -> None:
        """Records the extents of ``value``."""
        for axis, extent in enumerate(value.shape):
            more = sum(factor for monomial, factor in _terms(extent) if not monomial)
            symbol = sole_symbol(extent - more)
            if symbol is not None:
                self.places.setdefault(symbol.name, (value, axis, more))

    def vector(self, sizes: Any) -> Value:
        """Returns a vector of sizes, or a scalar of one; its operators are written with the operator that
        uses it.
        """
        shape = () if isinstance(sizes, Dim) else (len(sizes),)
        return SizeVector("", self.g.index_dtype, shape, sizes=sizes if shape == () else list(sizes))

    def resolved(self, type: str, inputs: Sequence[Value | None]) -> list[Value | None]:
        """Returns the inputs of an operator of this type, with SizeVectors computed."""
        result: list[Value | None] = list(inputs)
        for position, value in enumerate(inputs):
            if isinstance(value, SizeVector):
                template = self._template(type, position, inputs, value.sizes)
                result[position] = self._computed(value.sizes) if template is None else self.g.ints(template)
        return result

    def _template(
        self, type: str, position: int, inputs: Sequence[Value | None], sizes: Any
    ) -> list[int] | None:
        """Returns the sizes as numbers, where the operator has special values for unchanged ones."""
        first, second = (*inputs[:2], None)[:2]
        if first is None or isinstance(sizes, Dim):
            return None
        if type == "Reshape" and position == 1:
            return _reshape_template(sizes, first.shape)
        if type == "RESHAPE" and position == 1:
            return _with_one_open(sizes)
        if type == "SLICE" and position == 2 and second is not None and second.data is not None:
            return _slice_template(sizes, second.data.tolist(), first.shape)
        return None

    def _op(self, type: str, *inputs: Value, **options: object) -> Value:
        made: Value = self.g.op(type if self.is_onnx else TFLITE[type], *inputs, **options)
        return made

    def _computed(self, sizes: Any) -> Value:
        if isinstance(sizes, Dim):
            nothing = self.g.const(np.zeros(0, self.g.index_dtype))
            return self._op("Reshape", self._size(sizes), nothing, shape=())
        parts: list[Any] = []
        for size in sizes:  # neighbouring numbers are one constant
            if isinstance(size, Dim):
                parts.append(size)
            elif parts and isinstance(parts[-1], list):
                parts[-1].append(size)
            else:
                parts.append([size])
        values = [self._size(part) if isinstance(part, Dim) else self.g.ints(part) for part in parts]
        return values[0] if len(values) == 1 else self._op("Concat", *values, axis=0, shape=(len(sizes),))

    def _size(self, size: Size) -> Value:
        if not isinstance(size, Dim):
            return self.g.ints([size])
        if size not in self.known:
            self.known[size] = self._sum(size)
        return self.known[size]

    def _sum(self, size: Dim) -> Value:
        # numbers and negative terms last: x - 1, not -1 + x
        terms = sorted(size.terms, key=lambda term: (term[1] < 0, not term[0]))
        total: Value | None = None
        for monomial, factor in terms:
            if total is None or factor > 0:
                value = self._product(monomial, factor)
                total = value if total is None else self._op("Add", total, value)
            else:
                total = self._op("Sub", total, self._product(monomial, -factor))
        assert total is not None
        return total

    def _product(self, monomial: Sequence[Atom], factor: int) -> Value:
        values = [self._atom(atom) for atom in monomial]
        if factor != 1 or not values:
            values.append(self.g.ints([factor]))
        product, *others = values
        for value in others:
            product = self._op("Mul", product, value)
        return product

    def _atom(self, atom: Atom) -> Value:
        size = Dim((((atom,), 1),))
        if size in self.known:
            return self.known[size]
        if isinstance(atom, Floor):
            if self.is_onnx and any(
                factor < 0 for part in (atom.numerator, atom.denominator) for _, factor in _terms(part)
            ):
                current_journal().specialize(
                    size, ("requires a static size: ONNX's Div does not round down below zero")
                )
            self.known[size] = self._op("Div", self._size(atom.numerator), self._size(atom.denominator))
        elif isinstance(atom, Positive):
            self.known[size] = self._positive(self._size(atom.size))
        else:
            self.known[size] = self._symbol(atom)
        return self.known[size]

    def _positive(self, size: Value) -> Value:
        """Emits max(size, 0); before opset 12 ONNX has no integer maximum."""
        if not self.is_onnx or int(self.g.graph.version) >= 12:
            return self._op("Max", size, self.g.ints([0]))
        floats = self.g.op("Cast", size, to=1, dtype=np.dtype(np.float32))
        made: Value = self.g.op("Cast", self.g.op("Relu", floats), to=7, dtype=np.dtype(np.int64))
        return made

    def _symbol(self, symbol: Symbol) -> Value:
        if symbol.name not in self.places:
            current_journal().specialize(
                Dim((((symbol,), 1),)), ("requires it, and no earlier tensor has this size")
            )
            return self.g.ints([symbol.example])
        value, axis, more = self.places[symbol.name]
        if id(value) not in self.shapes:
            options = {} if self.is_onnx else {"out_type": self.g.index_dtype.name.upper()}
            shape = self._op("Shape", value, shape=(len(value.shape),), dtype=self.g.index_dtype, **options)
            self.shapes[id(value)] = shape
        size = self._op("Gather", self.shapes[id(value)], self.g.ints([axis]), axis=0, shape=(1,))
        if more:
            size = self._op("Sub", size, self.g.ints([more]))
        return size if symbol.unit == 1 else self._op("Div", size, self.g.ints([symbol.unit]))


def plain_attributes(operator: str, options: dict[str, object], opset: int | None = None) -> dict[str, Any]:
    """Returns attributes of ``Builder.op`` with Dims specialized to numbers.

    ``opset`` None: it is an operator of TFLite.
    """
    attributes = {name: value for name, value in options.items() if name not in ("shape", "shapes", "dtype")}
    if not is_symbolic(attributes):
        return options
    return options | {name: _plain(operator, name, value, opset) for name, value in attributes.items()}


def _plain(operator: str, name: str, value: object, opset: int | None) -> Any:
    reason = f"requires a static size: TFLite's {operator} has {name} as an attribute"
    if opset is not None:
        since = SINCE_INPUTS.get(operator, 0)
        remedy = f"; --opset {since} keeps it dynamic" if since > opset else ""
        reason = (
            f"requires a static size: ONNX's {operator} has {name} as an attribute at opset {opset}{remedy}"
        )
    with current_journal().because(reason):
        return map_leaves(lambda leaf: int(leaf) if isinstance(leaf, Dim) else leaf, value)


def _terms(size: Size) -> tuple[tuple[tuple[Atom, ...], int], ...]:
    return size.terms if isinstance(size, Dim) else (((), size),)


def _reshape_template(sizes: Any, shape: Sequence[Size]) -> list[int] | None:
    """Returns the target of a Reshape as numbers: -1 for one size, 0 for unchanged ones; None if more are
    dynamic.

    Beside a size of the data, which may be 0, a -1 has no meaning.
    """
    if isinstance(sizes, Dim) or 0 in [size for size in sizes if isinstance(size, int)]:
        return None
    template: list[int] = []
    for axis, size in enumerate(sizes):
        stays = axis < len(shape) and _same(size, shape[axis])
        template.append(size if isinstance(size, int) else 0 if stays else -1)
    moved = sum(isinstance(leaf, Dim) for leaf in leaves(sizes))
    if moved == 1:
        return [size if isinstance(size, int) else -1 for size in sizes]
    may_be_empty = 0 in template and data_symbols(list(sizes))
    return template if template.count(-1) <= (0 if may_be_empty else 1) else None


def _with_one_open(sizes: Sequence[Size]) -> list[int] | None:
    """Returns the target of TFLite's RESHAPE as numbers: -1 for one size; None if more are dynamic."""
    if sum(isinstance(size, Dim) for size in sizes) != 1 or 0 in [
        size for size in sizes if isinstance(size, int)
    ]:
        return None
    return [size if isinstance(size, int) else -1 for size in sizes]


def _slice_template(sizes: Sequence[Size], begin: list[int], shape: Sequence[Size]) -> list[int] | None:
    """Returns the sizes of TFLite's SLICE as numbers: -1 for all remaining elements; None if others are
    dynamic.
    """
    template = [
        size if isinstance(size, int) else -1 if _same(size + start, extent) else None
        for size, start, extent in zip(sizes, begin, shape, strict=True)
    ]
    return None if None in template else [size for size in template if size is not None]


def _same(first: Size, second: Size) -> bool:
    return isinstance(first, Dim) and isinstance(second, Dim) and first.terms == second.terms
