"""The element types that TFLite's operators take, where that is fewer than tmconvert has.

Operators that are not listed take all. The types are those of LiteRT's own kernels on tensors without
quantization: XNNPACK has float16 too, but not every runtime has XNNPACK. Whole numbers of few bits are
computed in a type that holds them all, and cast back. ONNX's types are in ``onnx_types.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.types import name_of

_SIGNED = ("int8", "int16", "int32", "int64")

# Measured with LiteRT 2.3, one operator a model.
_FLOAT32 = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL", "LOG_SOFTMAX"),
    *("RELU", "RELU6", "EXP", "LOG", "SQRT", "RSQRT", "LOGISTIC", "TANH", "FLOOR", "CEIL"),
    *("RELU_N1_TO_1", "RELU_0_TO_1", "MAX_POOL_2D", "AVERAGE_POOL_2D", "MEAN"),
    *("LOCAL_RESPONSE_NORMALIZATION", "RESIZE_BILINEAR", "ELU", "HARD_SWISH", "LEAKY_RELU", "PRELU"),
)
_NOT_FLOAT64 = ("CONCATENATION", "GATHER", "PAD", "PADV2", "SOFTMAX")
_TFLITE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_FLOAT32, ("float32",)),
    **dict.fromkeys(_NOT_FLOAT64, ("float16", "float32", *_SIGNED, "uint8", "bool")),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), ("float32", "int8", "int32", "uint8")),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), ("float32", *_SIGNED, "uint8")),
    "BITWISE_XOR": ("int8", "int16", "int32", "uint8"),
    "CUMSUM": ("float32", "int32", "int64"),
    "REDUCE_PROD": ("float32", *_SIGNED, "uint8"),
    "ABS": ("float32", "int16", "int32"),
    "ADD": ("float16", "float32", "int16", "int32", "int64"),
    **dict.fromkeys(("COS", "SIN", "GELU", "ROUND"), ("float16", "float32")),
    # bytes without quantization end the process, and int16 is not compared right
    **dict.fromkeys(("EQUAL", "NOT_EQUAL"), ("float32", "int32", "int64", "bool")),
    **dict.fromkeys(("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"), ("float32", "int32", "int64")),
    "DIV": ("float32", "int32"),
    "FLOOR_DIV": ("float32", "int8", "int16", "int32"),
    "FLOOR_MOD": ("float32", *_SIGNED),
    "MAXIMUM": ("float16", "float32", *_SIGNED, "uint8"),
    "MINIMUM": ("float16", "float32", *_SIGNED, "uint8"),
    "MUL": ("float16", "float32", "int16", "int32", "int64"),
    "POW": ("float32", "int32"),
    "NEG": ("float16", "float32", *_SIGNED),
    "RESIZE_NEAREST_NEIGHBOR": ("float16", "float32", "int16", "int8", "uint8"),
    "RIGHT_SHIFT": ("int8", "int16", "int32"),  # of bytes, all but seven bits at most
    "SCATTER_ND": ("float32", "int8", "int32", "int64", "uint8", "bool"),
    "SUM": ("float32", "int32", "int64"),
    "SUB": ("float32", "int32", "int64"),
    "TOPK_V2": ("float32", *_SIGNED, "uint8"),
    **dict.fromkeys((f"UNSORTED_SEGMENT_{name}" for name in ("MAX", "MIN", "PROD")), ("float32", "int32")),
    "RANGE": ("float32", "int32", "int64"),
    "WHERE": ("float32", "int8", "int32", "int64", "uint8", "bool"),
}


# The types that hold every value of one, the cheapest first.
_WIDER = {
    **dict.fromkeys(("bool", "uint8", "int8", "int16"), ("int32", "int64")),
    "int32": ("int64",),
}
# Operators that choose among numbers, for which floats are as good.
_CHOOSING = ("MAX_POOL_2D", "RESIZE_NEAREST_NEIGHBOR", "TOPK_V2")
# Operators whose first operand is not the one that says the type.
_OPERAND = {"SELECT_V2": 1, "SPLIT": 1, "SCATTER_ND": 1, "TRANSPOSE_CONV": 1}


def type_operand(operator: str) -> int:
    """The index of the operand whose element type an operator may not take."""
    return _OPERAND.get(operator, 0)


def computed_type(
    operator: str, dtype: np.dtype, runs: Callable[[str], bool] = lambda name: True
) -> np.dtype:
    """The type in which the operator computes ``dtype``. Raises Refusal where no type will do.

    ``runs`` says whether the runtime has the operator for a type.
    """
    own = name_of(dtype)
    taken = _TFLITE.get(operator, (own,))
    wider = _WIDER.get(own, ())
    if operator in _CHOOSING and "int32" in wider:
        wider = (*wider, "float32")
    names = [name for name in (own, *wider) if name in taken or operator not in _TFLITE]
    if not names:
        raise Refusal(f"TFLite's {operator} does not take {own}", "convert the model to float32")
    return np.dtype(next(filter(runs, names), names[0]))
