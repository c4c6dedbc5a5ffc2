"""Tensor types and quantization parameters, and names of types that many signatures have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray]
NamedArrays = Mapping[str, np.ndarray]
Shapes = Sequence[Sequence[int]]
Ints = list[int]
Shape = tuple[int, ...]
Paths = Sequence[Path]
Args = tuple[Any, ...]  # positional arguments of a call
Kwargs = dict[str, Any]
AnyCallable = Callable[..., Any]

# Short names as in the text form; order is that of documentation tables.
DTYPE_NAMES: dict[str, str] = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "uint16": "u16",
    "bool": "bool",
}
DTYPES_BY_NAME: dict[str, np.dtype] = {short: np.dtype(name) for name, short in DTYPE_NAMES.items()}


@cache
def name_of(dtype: np.dtype) -> str:
    """Returns ``dtype.name``, cached, since NumPy builds it on each access."""
    return str(dtype.name)


class TensorType:
    """Element type and shape of a tensor; extents are non-negative integers, or Dims (``dims.py``).

    Types compare by value. The class is not a tuple, since types are leaves of trees.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: np.dtype, shape: tuple[Any, ...]) -> None:
        self.dtype = dtype
        self.shape = shape

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorType):
            return NotImplemented
        return self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __repr__(self) -> str:
        return f"TensorType({self.dtype!r}, {self.shape!r})"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Returns the number of elements, an int or a Dim."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def __str__(self) -> str:
        name = DTYPE_NAMES.get(self.dtype.name, self.dtype.name)
        return f"{name}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class QParams:
    """Quantization of a tensor: real = scale * (q - zero_point).

    ``scale`` and ``zero_point`` have one entry, or one for each index of ``channel_axis``; ``dtype`` is the
    name of the integer type ("int8", "int8_narrow", "uint8", "int4", "int32", ...), ``quant_min`` and
    ``quant_max`` its range. ``symmetric`` states that the zero points are 0 by definition; ``source`` names
    the origin of the parameters ("MinMaxObserver", "TQT", "PyTorch", ...): for people, and for the rounding
    of that framework (``fake_quant.rounding_of``). ``inferred`` parameters are not those of the source: the
    op that makes the tensor keeps those of its operand.
    """

    dtype: str
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    quant_min: int
    quant_max: int
    channel_axis: int | None = None
    symmetric: bool = False
    source: str = ""
    inferred: bool = field(default=False, compare=False)

    @property
    def is_signed(self) -> bool:
        return not self.dtype.startswith("u")

    def reshaped(self, old: tuple[int, ...], new: tuple[int, ...]) -> QParams | None:
        """Returns the QParams after a reshape from shape ``old``; None if channels are split."""
        if self.channel_axis is None:
            return self
        before = math.prod(old[: self.channel_axis])
        for axis, extent in enumerate(new):
            if extent == old[self.channel_axis] and math.prod(new[:axis]) == before:
                return replace(self, channel_axis=axis)
        return None

    def permuted(self, order: Sequence[int]) -> QParams:
        """Returns the QParams after a permutation of axes."""
        if self.channel_axis is None:
            return self
        return replace(self, channel_axis=list(order).index(self.channel_axis))

    def problem(self, shape: tuple[int, ...], name: str = "the tensor") -> str:
        """Returns why these cannot quantize a tensor of that shape; empty when they can."""
        axis = self.channel_axis
        if axis is not None and not 0 <= axis < len(shape):
            return f"{name} has no axis {axis}"
        channels = 1 if axis is None else shape[axis]
        if not len(self.scale) == len(self.zero_point) == channels:
            return f"{name} has {len(self.scale)} scales for {channels} channels"
        if not all(math.isfinite(scale) and scale > 0 for scale in self.scale):
            return f"a scale of {name} is not positive and finite"
        if not all(self.quant_min <= zero <= self.quant_max for zero in self.zero_point):
            return f"a zero point of {name} is outside of the integer range"
        return ""
