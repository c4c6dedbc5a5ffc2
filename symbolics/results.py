"""Type rules that many ops share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.types import TensorType


def same_as(name: str) -> Callable[..., TensorType]:
    """The result has the type of the argument ``name``."""

    def rule(**arguments: Any) -> TensorType:
        return arguments[name]

    return rule


def broadcast(*names: str, dtype: str | None = None) -> Callable[..., TensorType]:
    """Equal dtypes, shapes broadcast as in NumPy; ``dtype`` overrides the element type of the result."""

    def rule(**arguments: Any) -> TensorType:
        types = [arguments[name] for name in names]
        if len({type_.dtype for type_ in types}) > 1:
            raise TypeError(f"different dtypes: {', '.join(map(str, types))}")
        shape = np.broadcast_shapes(*(type_.shape for type_ in types))
        return TensorType(np.dtype(dtype) if dtype else types[0].dtype, shape)

    return rule


def normalized_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front. Raises ValueError when it is out of range."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def window_extent(
    extent: int, kernel: int, stride: int, padding: int, dilation: int = 1, *, ceil_mode: bool = False
) -> int:
    """Outputs of a sliding window along one axis.

    floor((extent + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, or ceil; then the last
    window is dropped if it starts in the padding behind the end. Raises ValueError if none fits.
    Source: torch.nn.MaxPool2d, ONNX MaxPool-12 and later.
    """
    reach = extent + 2 * padding - dilation * (kernel - 1) - 1
    if reach < 0:
        raise ValueError(f"a window of {dilation * (kernel - 1) + 1} is larger than {extent} + 2 x {padding}")
    if not ceil_mode:
        return reach // stride + 1
    count = -(-reach // stride) + 1
    return count - 1 if (count - 1) * stride >= extent + padding else count
