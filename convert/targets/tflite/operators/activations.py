"""Activations, and lookup tables that replace them."""

from __future__ import annotations

import math

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

SPECS = (
    OperatorSpec(
        "RELU",
        code=19,
        releases="1.5 2.1 2.5",
        versions=((3, is_type("int16")), (2, is_type("int8", "uint8"))),
        types=FLOAT32,
        moves=True,
        adds_zeros=True,
        activation=(0.0, math.inf),
        integer=IntegerKernel("free"),
    ),
    OperatorSpec(
        "RELU6",
        code=21,
        releases="1.5 1.14 2.5",
        versions=V2_INT8_V3_INT16,
        types=FLOAT32,
        activation=(0.0, 6.0),
        integer=IntegerKernel("free", is_within=True),
    ),
    OperatorSpec(
        "RELU_N1_TO_1",
        code=20,
        releases="1.5",
        types=FLOAT32,
        activation=(-1.0, 1.0),
        integer=IntegerKernel("free", types=INT8),
    ),
    OperatorSpec(
        "RELU_0_TO_1",
        code=152,
        releases="2.10",
        types=FLOAT32,
        integer=IntegerKernel("free", types=INT8),
    ),
    OperatorSpec(
        "ELU",
        code=111,
        releases="1.14",
        types=FLOAT32,
        integer=IntegerKernel("free", types=INT8),
    ),
    OperatorSpec(
        "LEAKY_RELU",
        code=98,
        options="LeakyReluOptions",
        releases="1.13.1 2.3",
        versions=((2, is_type("int16")),),
        types=FLOAT32,
        result_range=ranges.of_leaky_relu,
        integer=IntegerKernel("free"),
    ),
    # In int16 it is off everywhere.
    OperatorSpec(
        "PRELU",
        code=54,
        releases="1.8",
        types=FLOAT32,
        data=(0, 1),
        integer=IntegerKernel("free", types=INT8),
    ),
    OperatorSpec(
        "HARD_SWISH",
        code=117,
        options="HardSwishOptions",
        releases="1.15",
        types=FLOAT32,
        integer=IntegerKernel("free", types=INT8),
    ),
    # In int16 it is off everywhere.
    OperatorSpec(
        "GELU",
        code=150,
        options="GeluOptions",
        releases="2.8 2.9 2.23",
        versions=((3, is_type("float16")), (2, is_type("int8", "uint8"))),
        types=FLOAT16_FLOAT32,
        integer=IntegerKernel("free", types=INT8),
    ),
    OperatorSpec(
        "LOGISTIC",
        code=14,
        releases="1.14 1.14 2.3",
        versions=V2_INT8_V3_INT16,
        types=FLOAT32,
        integer=IntegerKernel(
            "fixed",
            fixed={"int8": (1 / 256, -128), "int16": (1 / 32768, 0)},
            is_rough=True,
            slack={"int16": 7},
        ),
    ),
    OperatorSpec(
        "TANH",
        code=28,
        releases="1.14 1.14 2.3",
        versions=V2_INT8_V3_INT16,
        types=FLOAT32,
        integer=IntegerKernel(
            "fixed", fixed={"int8": (1 / 128, 0), "int16": (1 / 32768, 0)}, is_rough=True, slack={"int16": 12}
        ),
    ),
    OperatorSpec(
        "SOFTMAX",
        code=25,
        options="SoftmaxOptions",
        releases="1.5 1.14 2.3 2.23",
        versions=((4, is_type("float16")), *V2_INT8_V3_INT16),
        types=COMMON,
        not_empty=NotEmpty(axes=LAST_AXIS, filled_with=-math.inf),
        integer=IntegerKernel("fixed", fixed={"int8": (1 / 256, -128), "int16": (1 / 32768, 0)}),
    ),
    OperatorSpec(
        "LOG_SOFTMAX",
        code=50,
        options="LogSoftmaxOptions",
        releases="1.14 1.14",
        versions=V2_INT8,
        types=FLOAT32,
        not_empty=NotEmpty(axes=LAST_AXIS, filled_with=-math.inf),
        integer=IntegerKernel("fixed", types=INT8, fixed={"int8": (16 / 256, 127)}),
    ),
    OperatorSpec(
        TABLE,
        code=None,
        result_range=ranges.of_table,
        integer=IntegerKernel("free"),
    ),
    OperatorSpec(
        TABLE_OF_TWO,
        code=None,
        data=(0, 1),
        integer=IntegerKernel("free", types=INT8),
    ),
)
