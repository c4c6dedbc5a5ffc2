"""Options of custom operators that are read: bytes, which only the code of the operator defines.

Source: mediapipe/util/tflite/operations, and tensorflow/lite/kernels/detection_postprocess.cc.
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


_DETECTION: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("max_detections", "max_classes_per_detection", "num_classes"), lambda value: int(value.AsInt)
    ),
    **dict.fromkeys(
        ("nms_score_threshold", "nms_iou_threshold", "y_scale", "x_scale", "h_scale", "w_scale"),
        lambda value: float(value.AsFloat),
    ),
}
_MOST = 64  # options of an operator


def _detection(data: bytes) -> dict[str, Any]:
    """Reads the map of a flexbuffer."""
    from flatbuffers import flexbuffers

    try:
        given = flexbuffers.GetRoot(data).AsMap
        names = [key.AsKey for key in given.Keys] if len(given) <= _MOST else []
        values = dict(zip(map(str, names), given.Values, strict=True))
        made = {name: read(values[name]) for name, read in _DETECTION.items()}
        made["use_regular_nms"] = "use_regular_nms" in values and bool(values["use_regular_nms"].AsBool)
    except (ValueError, TypeError, LookupError, ArithmeticError, struct.error) as error:
        raise ValueError(
            f"the options of TFLite_Detection_PostProcess are not valid: {error!r:.100}"
        ) from error
    return made


CUSTOM_OPTIONS: dict[str, Callable[[bytes], dict[str, Any]]] = {
    "custom.Convolution2DTransposeBias": _transposed_convolution,
    "custom.TFLite_Detection_PostProcess": _detection,
}
