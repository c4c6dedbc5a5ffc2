"""The element types that operators of a target take, where that is fewer than tmconvert has.

Operators that are not listed take all. For TFLite the types are those of LiteRT's own kernels on
tensors without quantization: XNNPACK has float16 too, but not every runtime has XNNPACK.
"""

from __future__ import annotations

import numpy as np

_FLOATS = ("float16", "float32", "float64")
_SIGNED = ("int8", "int16", "int32", "int64")
_WIDE = (*_FLOATS, "int32", "int64")
_ALL = (*_FLOATS, *_SIGNED, "uint8")

# Operator: (opset, types) in ascending order. Source: ONNX's Changelog.md.
_ONNX: dict[str, tuple[tuple[int, tuple[str, ...]], ...]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), ((7, _WIDE), (14, _ALL))),
    **dict.fromkeys(("Max", "Min"), ((1, _FLOATS), (12, _ALL))),
    "Clip": ((1, _FLOATS), (12, _ALL)),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), ((1, _WIDE), (12, (*_WIDE, "int8", "uint8")))),
    "Neg": ((6, (*_FLOATS, *_SIGNED)),),
    "Pad": ((2, _FLOATS), (11, _ALL)),
    "ReduceSum": ((1, _WIDE),),
    "Relu": ((1, _FLOATS), (14, (*_FLOATS, *_SIGNED))),
}

# Measured with LiteRT 2.3, one operator a model.
_FLOAT32 = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"),
    *("RELU", "RELU6", "EXP", "LOG", "SQRT", "RSQRT", "LOGISTIC", "TANH", "FLOOR", "CEIL"),
    *("RELU_N1_TO_1", "RELU_0_TO_1", "MAX_POOL_2D", "AVERAGE_POOL_2D", "MEAN"),
    "RESIZE_BILINEAR",
)
_NOT_FLOAT64 = ("CONCATENATION", "GATHER", "PAD", "PADV2", "SOFTMAX")
_TFLITE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_FLOAT32, ("float32",)),
    **dict.fromkeys(_NOT_FLOAT64, ("float16", "float32", *_SIGNED, "uint8", "bool")),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), ("float32", "int8", "int32", "uint8")),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), ("float32", *_SIGNED, "uint8")),
    "ABS": ("float32", "int16", "int32"),
    "ADD": ("float16", "float32", "int16", "int32", "int64"),
    "DIV": ("float32", "int32"),
    "MAXIMUM": ("float16", "float32", *_SIGNED, "uint8"),
    "MINIMUM": ("float16", "float32", *_SIGNED, "uint8"),
    "MUL": ("float16", "float32", "int16", "int32", "int64"),
    "NEG": ("float16", "float32", *_SIGNED),
    "RESIZE_NEAREST_NEIGHBOR": ("float16", "float32", "int16", "int8", "uint8"),
    "SUM": ("float32", "int32", "int64"),
    "SUB": ("float32", "int32", "int64"),
}


def onnx_refusal(operator: str, dtype: np.dtype, opset: int) -> tuple[str, str] | None:
    """(reason, help) why ONNX's operator does not take ``dtype`` at ``opset``; None when it does."""
    forms = _ONNX.get(operator, ())
    known = [types for since, types in forms if since <= opset]
    if not known or dtype.name in known[-1]:
        return None
    later = [since for since, types in forms if dtype.name in types]
    if not later:
        return f"ONNX's {operator} does not take {dtype.name}", ""
    return (
        f"ONNX's {operator} does not take {dtype.name} at opset {opset}",
        f"use --opset {later[0]} or later",
    )


def tflite_refusal(operator: str, dtype: np.dtype) -> tuple[str, str] | None:
    """(reason, help) why TFLite's operator does not take ``dtype``; None when it does."""
    if dtype.name in _TFLITE.get(operator, (dtype.name,)):
        return None
    return f"TFLite's {operator} does not take {dtype.name}", "convert the model to float32"
