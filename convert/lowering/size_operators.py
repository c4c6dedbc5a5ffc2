"""Operators that compute dynamic sizes at run time from the shapes of tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tmconvert.ir.symbolic.dims import Atom, Dim, Floor, Positive, Size, Symbol, is_symbolic
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.ir.tree import map_leaves
from tmconvert.lowering.builder import Builder
from tmconvert.lowering.target_graph import Value


@dataclass(eq=False, slots=True)
class SizeVector(Value):
    """A vector of symbolic sizes, whose operators are written when the first operator has it as an operand.

    A Reshape to one unknown size has no such operand: its shape is a constant with -1.
    """

    sizes: Any = ()


class SizeOperators(ABC):
    """Writes the operators that compute sizes, each once. Each target has a subclass.

    Sizes are vectors of one element. The value of a symbol is an extent of the first tensor that has it.
    ``operators`` are the target's names of what ONNX calls Add, Sub, Mul, Div, Max, Concat, Shape, Gather and
    Reshape; its Div has to round down.
    """

    operators: ClassVar[Mapping[str, str]]

    def __init__(self, g: Builder) -> None:
        self.g = g
        # tensor and axis with an extent of some times the symbol, and some more
        self.places: dict[str, tuple[Value, int, int, int]] = {}
        self.shapes: dict[int, Value] = {}
        self.known: dict[Dim, Value] = {}
        self.vectors: dict[Any, Value] = {}  # of a size as a scalar, or of several

    @abstractmethod
    def constant_sizes(
        self, type: str, position: int, inputs: Sequence[Value | None], sizes: Sequence[Size]
    ) -> list[int] | None:
        """Returns symbolic sizes as numbers where an operand of an operator has special values for them, such
        as -1; None where it has not.
        """

    def quotient(self, size: Dim, floor: Floor) -> Value:
        """Writes the operators of ``size``, a quotient that is rounded down."""
        return self.op("Div", self.size(floor.numerator), self.size(floor.denominator))

    def float_size(self, size: Dim, atom: Any) -> Value:
        """Writes the operators of ``size``, which is ``Rounded``, with integers.

        They are valid for the sizes that were tried, up to the first one where float64 gives another.
        """
        from tmconvert.ir.symbolic.rounded import MOST

        symbols = size.symbols.values()
        differing = atom.differing_sizes() if len(symbols) in MOST else []
        first = max(differing[0].values()) if differing else MOST.get(len(symbols), 0) + 1
        if atom.is_rational and all(symbol.example * symbol.unit < first for symbol in symbols):
            for symbol in symbols:
                limit = Dim((((symbol,), symbol.unit),)) - (first - 1)
                current_journal().take(limit, {-1, 0}, is_of_target=True)
            return self.size(atom.integers)
        current_journal().specialize(size, f"computes {size} in float64, which the target cannot")
        return self.g.ints([size.example])

    def not_negative(self, size: Value) -> Value:
        """Writes max(size, 0)."""
        return self.op("Max", size, self.g.ints([0]))

    def shape_of(self, value: Value) -> Value:
        """Writes the operator that returns the shape of a tensor."""
        return self.op("Shape", value, shape=(len(value.shape),), dtype=self.g.index_dtype)

    def op(self, name: str, *inputs: Value, **options: Any) -> Value:
        """Writes the operator that ``operators`` has under the name."""
        made: Value = self.g.op(self.operators[name], *inputs, **options)
        return made

    def define(self, value: Value) -> None:
        """Records the extents of ``value``."""
        for axis, extent in enumerate(value.shape):
            more = sum(factor for monomial, factor in terms_of(extent) if not monomial)
            rest = extent - more
            if isinstance(rest, Dim) and len(rest.terms) == 1:
                ((symbol, *others), factor), *_ = rest.terms
                if isinstance(symbol, Symbol) and not others and factor > 0:
                    known = self.places.get(symbol.name)
                    if known is None or (known[3] != symbol.unit and factor == symbol.unit):
                        self.places[symbol.name] = value, axis, more, factor

    def vector(self, sizes: Any) -> Value:
        """Returns a vector of sizes, or a scalar of one; its operators are written with its user."""
        if isinstance(sizes, Dim):
            return SizeVector("", self.g.index_dtype, (), sizes=sizes)
        return SizeVector("", self.g.index_dtype, (len(sizes),), sizes=list(sizes))

    def resolved(self, type: str, inputs: Sequence[Value | None]) -> list[Value | None]:
        """Returns the inputs of an operator of this type, with SizeVectors computed."""
        result: list[Value | None] = list(inputs)
        for position, value in enumerate(inputs):
            if isinstance(value, SizeVector):
                constant = None
                if not isinstance(value.sizes, Dim):
                    constant = self.constant_sizes(type, position, inputs, value.sizes)
                result[position] = self._computed(value.sizes) if constant is None else self.g.ints(constant)
        return result

    def _computed(self, sizes: Any) -> Value:
        """Returns the value of a size, or of several; equal ones are written once."""
        key = sizes if isinstance(sizes, Dim) else tuple(sizes)
        if key not in self.vectors:
            self.vectors[key] = self._scalar(key) if isinstance(key, Dim) else self._joined(key)
        return self.vectors[key]

    def _scalar(self, size: Dim) -> Value:
        nothing = self.g.const(np.zeros(0, self.g.index_dtype))
        return self.op("Reshape", self.size(size), nothing, shape=())

    def _joined(self, sizes: Sequence[Size]) -> Value:
        parts: list[Any] = []
        for size in sizes:  # neighbouring numbers are one constant
            if isinstance(size, Dim):
                parts.append(size)
            elif parts and isinstance(parts[-1], list):
                parts[-1].append(size)
            else:
                parts.append([size])
        values = [self.size(part) if isinstance(part, Dim) else self.g.ints(part) for part in parts]
        return values[0] if len(values) == 1 else self.op("Concat", *values, axis=0, shape=(len(sizes),))

    def size(self, size: Size) -> Value:
        """Returns a size as a vector of one element; its operators are written once."""
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
                total = value if total is None else self.op("Add", total, value)
            else:
                total = self.op("Sub", total, self._product(monomial, -factor))
        assert total is not None
        return total

    def _product(self, monomial: Sequence[Atom], factor: int) -> Value:
        values = [self._atom(atom) for atom in monomial]
        if factor != 1 or not values:
            values.append(self.g.ints([factor]))
        product, *others = values
        for value in others:
            product = self.op("Mul", product, value)
        return product

    def _atom(self, atom: Atom) -> Value:
        size = Dim((((atom,), 1),))
        if size in self.known:
            return self.known[size]
        if isinstance(atom, Floor):
            self.known[size] = self.float_size(size, atom) if atom.is_float else self.quotient(size, atom)
        elif isinstance(atom, Positive):
            self.known[size] = self.not_negative(self.size(atom.size))
        else:
            self.known[size] = self._symbol(atom)
        return self.known[size]

    def _symbol(self, symbol: Symbol) -> Value:
        if symbol.name not in self.places:
            current_journal().specialize(
                Dim((((symbol,), 1),)), ("requires it, and no earlier tensor has this size")
            )
            return self.g.ints([symbol.example])
        value, axis, more, factor = self.places[symbol.name]
        if id(value) not in self.shapes:
            self.shapes[id(value)] = self.shape_of(value)
        size = self.op("Gather", self.shapes[id(value)], self.g.ints([axis]), axis=0, shape=(1,))
        if more:
            size = self.op("Sub", size, self.g.ints([more]))
        return size if factor == 1 else self.op("Div", size, self.g.ints([factor]))


def plain_attributes(options: dict[str, object], reason: Callable[[str], str]) -> dict[str, Any]:
    """Returns attributes of ``Builder.op`` with Dims specialized to numbers.

    ``reason`` returns, for the name of an attribute, why its sizes have to be static.
    """
    attributes = {name: value for name, value in options.items() if name not in ("shape", "shapes", "dtype")}
    if not is_symbolic(attributes):
        return options
    return options | {name: _plain(value, reason(name)) for name, value in attributes.items()}


def _plain(value: object, reason: str) -> Any:
    with current_journal().because(reason):
        return map_leaves(lambda leaf: int(leaf) if isinstance(leaf, Dim) else leaf, value)


def terms_of(size: Size) -> tuple[tuple[tuple[Atom, ...], int], ...]:
    """Returns the terms of a size: products of atoms, and their factors."""
    return size.terms if isinstance(size, Dim) else (((), size),)


def is_same_size(first: Size, second: Size) -> bool:
    """Whether both are the same symbolic size."""
    return isinstance(first, Dim) and isinstance(second, Dim) and first.terms == second.terms
