"""Options of custom operators that are read: bytes, which only the code of the operator defines.

Source: mediapipe/util/tflite/operations.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

_PADDING = {1: "SAME", 2: "VALID"}


def _transposed_convolution(data: bytes) -> dict[str, Any]:
    """Reads TfLiteTransposeConvParams of TensorFlow 2.4: padding, width and height of the stride."""
    padding, width, height = struct.unpack_from("<3i", data.ljust(12, b"\0"))
    if padding not in _PADDING or not 0 < width < 1 << 16 or not 0 < height < 1 << 16:
        raise ValueError(
            f"the options {padding}, {width}, {height} of a transposed convolution are not valid"
        )
    return {"padding": _PADDING[padding], "stride_w": width, "stride_h": height}


CUSTOM_OPTIONS: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "custom.Convolution2DTransposeBias": _transposed_convolution
}
