"""Operators of ONNX that compute dynamic sizes at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim, Floor, Size, same_size
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.lowering.builder import Builder
from tmconvert.lowering.size_operators import SizeOperators, is_same_size, plain_attributes, terms_of
from tmconvert.lowering.target_graph import Value
from tmconvert.targets.onnx.operators import spec


class OnnxSizeOperators(SizeOperators):
    operators: ClassVar[Mapping[str, str]] = {
        name: name
        for name in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Concat", "Shape", "Gather", "Reshape")
    }

    def inside(self, g: Builder) -> OnnxSizeOperators:
        """Returns the size operators of a subgraph: known sizes stay known, new ones are computed inside.

        Data-dependent sizes have names of their own there; those of its inputs get defined.
        """
        duplicate = OnnxSizeOperators(g)
        duplicate.shapes = dict(self.shapes)
        duplicate.known = {size: value for size, value in self.known.items() if not data_symbols(size)}
        duplicate.vectors = {
            sizes: value for sizes, value in self.vectors.items() if not data_symbols([sizes])
        }
        duplicate.places = {
            name: (value, axis, more, factor)
            for name, (value, axis, more, factor) in self.places.items()
            if not data_symbols(value.shape[axis])
        }
        return duplicate

    def constant_sizes(
        self, type: str, position: int, inputs: Sequence[Value | None], sizes: Sequence[Size]
    ) -> list[int] | None:
        x = inputs[0]
        return (
            _reshape_sizes(sizes, x.shape) if type == "Reshape" and position == 1 and x is not None else None
        )

    def quotient(self, size: Dim, floor: Floor) -> Value:
        """Writes a quotient that is rounded down, by Mod where it may be negative: ONNX's Div truncates."""
        parts = floor.numerator, floor.denominator
        if all(factor >= 0 for part in parts for _, factor in terms_of(part)):
            return super().quotient(size, floor)
        if int(self.g.graph.version) < 10:
            current_journal().specialize(size, f"computes {size}, which takes Mod, of opset 10")
            return super().quotient(size, floor)
        above, below = map(self.size, parts)
        return self.op("Div", self.op("Sub", above, self.op("Mod", above, below)), below)

    def float_size(self, size: Dim, atom: Any) -> Value:
        """Writes a size that is computed in float64, before opset 11 without rounding half to even."""
        if atom.name == "round" and int(self.g.graph.version) < 11:
            return super().float_size(size, atom)
        floats = self.g.op(atom.name.capitalize(), self._in_float64(atom.steps))
        made: Value = self.g.op("Cast", floats, to=7, dtype=np.dtype(np.int64))
        return made

    def _in_float64(self, value: Any) -> Value:
        """Writes the operators of ``Steps``, of a size, or of a float."""
        from tmconvert.ir.symbolic.rounded import Steps

        made: Value
        if isinstance(value, Steps) and value.name == "float32":
            narrow = self.g.op("Cast", self._in_float64(value.left), to=1, dtype=np.dtype(np.float32))
            made = self.g.op("Cast", narrow, to=11, dtype=np.dtype(np.float64))
        elif isinstance(value, Steps):
            operator = "Div" if value.name == "truediv" else value.name.capitalize()
            made = self.g.op(operator, *map(self._in_float64, value.operands))
        elif isinstance(value, Dim):
            made = self.g.op("Cast", self.size(value), to=11, dtype=np.dtype(np.float64))
        else:
            made = self.g.const(np.array([value], np.float64))
        return made

    def not_negative(self, size: Value) -> Value:
        """Writes max(size, 0); before opset 12 ONNX has no integer maximum."""
        if int(self.g.graph.version) >= 12:
            return super().not_negative(size)
        floats = self.g.op("Cast", size, to=1, dtype=np.dtype(np.float32))
        made: Value = self.g.op("Cast", self.g.op("Relu", floats), to=7, dtype=np.dtype(np.int64))
        return made


def static_attributes(operator: str, options: dict[str, object], opset: int) -> dict[str, Any]:
    """Returns attributes of ``Builder.op`` with Dims specialized to numbers."""

    def reason(name: str) -> str:
        since = spec(operator).inputs_since
        remedy = f"; --opset {since} keeps it dynamic" if since > opset else ""
        return (
            f"requires a static size: ONNX's {operator} has {name} as an attribute at opset {opset}{remedy}"
        )

    return plain_attributes(options, reason)


def _reshape_sizes(sizes: Sequence[Size], shape: Sequence[Size]) -> list[int] | None:
    """Returns the target of a Reshape as numbers: -1 for one size, 0 for unchanged ones; None if more are
    dynamic.

    -1 has no meaning next to a data-dependent size, which may be 0.
    """
    if 0 in [size for size in sizes if isinstance(size, int)]:
        return None
    numbers: list[int] = []
    for axis, size in enumerate(sizes):
        stays = axis < len(shape) and is_same_size(size, shape[axis])
        numbers.append(size if isinstance(size, int) else 0 if stays else -1)
    if sum(isinstance(size, Dim) for size in sizes) == 1:
        return [size if isinstance(size, int) else -1 for size in sizes]
    may_be_empty = 0 in numbers and data_symbols(list(sizes))
    return numbers if numbers.count(-1) <= (0 if may_be_empty else 1) else None


def has_empty_axis(x: Value, target: Value, shape: Sequence[Size]) -> bool:
    """Whether the target of a Reshape to ``shape`` may have a 0 that is a size, and not that of ``x``.

    Caches of no positions have such sizes. Without ``allowzero``, a 0 copies the size of the same axis.
    """
    kept = [*x.shape[: len(shape)], *[-1] * (len(shape) - len(x.shape))]
    if target.data is not None:
        return any(size == 0 != old for size, old in zip(shape, kept, strict=True) if isinstance(size, int))
    return any(_may_be_zero(size) and not same_size(size, old) for size, old in zip(shape, kept, strict=True))


def _may_be_zero(size: Size) -> bool:
    terms = terms_of(size)
    return any(factor < 0 for _, factor in terms) or all(monomial for monomial, _ in terms)
