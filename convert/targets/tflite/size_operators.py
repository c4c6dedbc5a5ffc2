"""Operators of TFLite that compute dynamic sizes at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tmconvert.ir.symbolic.dims import Dim, Size
from tmconvert.lowering.size_operators import SizeOperators, is_same_size, plain_attributes
from tmconvert.lowering.target_graph import Value


class TfliteSizeOperators(SizeOperators):
    operators: ClassVar[Mapping[str, str]] = {
        **{name: name.upper() for name in ("Add", "Sub", "Mul", "Shape", "Gather", "Reshape")},
        "Concat": "CONCATENATION",
        "Div": "FLOOR_DIV",
        "Max": "MAXIMUM",
    }

    def constant_sizes(
        self, type: str, position: int, inputs: Sequence[Value | None], sizes: Sequence[Size]
    ) -> list[int] | None:
        first, second = (*inputs[:2], None)[:2]
        if first is None:
            return None
        if type == "RESHAPE" and position == 1:
            return _reshape_sizes(sizes)
        if type == "SLICE" and position == 2 and second is not None and second.data is not None:
            return _slice_sizes(sizes, second.data.tolist(), first.shape)
        return None

    def shape_of(self, value: Value) -> Value:
        dtype = self.g.index_dtype
        return self.op("Shape", value, shape=(len(value.shape),), dtype=dtype, out_type=dtype.name.upper())


def static_attributes(operator: str, options: dict[str, object]) -> dict[str, Any]:
    """Returns attributes of ``Builder.op`` with Dims specialized to numbers."""
    return plain_attributes(
        options, lambda name: f"requires a static size: TFLite's {operator} has {name} as an attribute"
    )


def _reshape_sizes(sizes: Sequence[Size]) -> list[int] | None:
    """Returns the target of RESHAPE as numbers: -1 for one size; None if more are dynamic."""
    if sum(isinstance(size, Dim) for size in sizes) != 1:
        return None
    if 0 in [size for size in sizes if isinstance(size, int)]:
        return None
    return [size if isinstance(size, int) else -1 for size in sizes]


def _slice_sizes(sizes: Sequence[Size], begin: list[int], shape: Sequence[Size]) -> list[int] | None:
    """Returns the sizes of SLICE as numbers: -1 for all remaining elements; None if others are dynamic."""
    numbers = [
        size if isinstance(size, int) else -1 if is_same_size(size + start, extent) else None
        for size, start, extent in zip(sizes, begin, shape, strict=True)
    ]
    return None if None in numbers else [size for size in numbers if size is not None]
