"""What is known of a tensor without its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape of a tensor; extents are non-negative integers, or Dims (``dims.py``)."""

    dtype: np.dtype
    shape: tuple[Any, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Number of elements, an int or a Dim."""
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

    ``scale`` and ``zero_point`` have one entry, or one for each index of ``channel_axis``;
    ``dtype`` is the name of the integer type ("int8", "int8_narrow", "uint8", "int32", ...),
    ``quant_min`` and ``quant_max`` its range.
    """

    dtype: str
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    quant_min: int
    quant_max: int
    channel_axis: int | None = None
