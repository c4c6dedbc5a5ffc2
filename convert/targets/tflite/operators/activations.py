"""Activations, and lookup tables that replace them."""

from __future__ import annotations

import math
from typing import Any

from tmconvert.targets.tflite.operators import ranges
from tmconvert.targets.tflite.operators.record import (
    COMMON,
    FLOAT16_FLOAT32,
    FLOAT32,
    INT8,
    LAST_AXIS,
    IntegerKernel,
    NotEmpty,
    OperatorSpec,
)
from tmconvert.targets.tflite.operators.version_rules import V2_INT8, V2_INT8_V3_INT16, is_type

# No operators of TFLite: GATHERs that look up each quantized value, or two (integer/lookup_tables.py).
TABLE, TABLE_OF_TWO = TABLES = ("TABLE", "TABLE_OF_TWO")


def _activation(name: str, releases: str, **fields: Any) -> OperatorSpec:
    """A function of float32 or int8 elements; one with int16 too passes its own ``integer``."""
    fields = {"types": FLOAT32, "integer": IntegerKernel("free", types=INT8), **fields}
    return OperatorSpec(name, releases=releases, **fields)


SPECS = (
    _activation(
        "RELU",
        "1.5 2.1 2.5",
        versions=((3, is_type("int16")), (2, is_type("int8", "uint8"))),
        moves=True,
        adds_zeros=True,
        activation=(0.0, math.inf),
        integer=IntegerKernel("free"),
    ),
    _activation(
        "RELU6",
        "1.5 1.14 2.5",
        versions=V2_INT8_V3_INT16,
        activation=(0.0, 6.0),
        integer=IntegerKernel("free", is_within=True),
    ),
    _activation("RELU_N1_TO_1", "1.5", activation=(-1.0, 1.0)),
    _activation("RELU_0_TO_1", "2.10"),
    _activation("ELU", "1.14"),
    _activation(
        "LEAKY_RELU",
        "1.13.1 2.3",
        versions=((2, is_type("int16")),),
        result_range=ranges.of_leaky_relu,
        integer=IntegerKernel("free"),
    ),
    # In int16 it is off everywhere.
    _activation("PRELU", "1.8", data=(0, 1)),
    _activation("HARD_SWISH", "1.15"),
    # In int16 it is off everywhere.
    _activation(
        "GELU",
        "2.8 2.9 2.23",
        versions=((3, is_type("float16")), (2, is_type("int8", "uint8"))),
        types=FLOAT16_FLOAT32,
    ),
    _activation(
        "LOGISTIC",
        "1.14 1.14 2.3",
        versions=V2_INT8_V3_INT16,
        integer=IntegerKernel(
            "fixed",
            fixed={"int8": (1 / 256, -128), "int16": (1 / 32768, 0)},
            is_rough=True,
            slack={"int16": 7},
        ),
    ),
    _activation(
        "TANH",
        "1.14 1.14 2.3",
        versions=V2_INT8_V3_INT16,
        integer=IntegerKernel(
            "fixed", fixed={"int8": (1 / 128, 0), "int16": (1 / 32768, 0)}, is_rough=True, slack={"int16": 12}
        ),
    ),
    OperatorSpec(
        "SOFTMAX",
        releases="1.5 1.14 2.3 2.23",
        versions=((4, is_type("float16")), *V2_INT8_V3_INT16),
        types=COMMON,
        not_empty=NotEmpty(axes=LAST_AXIS, filled_with=-math.inf),
        integer=IntegerKernel("fixed", fixed={"int8": (1 / 256, -128), "int16": (1 / 32768, 0)}),
    ),
    OperatorSpec(
        "LOG_SOFTMAX",
        releases="1.14 1.14",
        versions=V2_INT8,
        types=FLOAT32,
        not_empty=NotEmpty(axes=LAST_AXIS, filled_with=-math.inf),
        integer=IntegerKernel("fixed", types=INT8, fixed={"int8": (16 / 256, 127)}),
    ),
    OperatorSpec(TABLE, result_range=ranges.of_table, integer=IntegerKernel("free")),
    OperatorSpec(TABLE_OF_TWO, data=(0, 1), integer=IntegerKernel("free", types=INT8)),
)
