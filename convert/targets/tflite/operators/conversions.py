"""Conversions of element types, quantization, complex numbers."""

from __future__ import annotations

from tmconvert.targets.tflite.operators.record import OperatorSpec
from tmconvert.targets.tflite.operators.version_rules import (
    V2_INT8,
    both,
    differs,
    either,
    is_type,
    output_is,
    output_per_channel,
    per_channel,
)

SPECS = (
    OperatorSpec(
        "CAST",
        releases="1.5 2.7 2.8 2.9 2.13 2.15 2.19 2.21 2.23",
        versions=(
            (7, either(is_type("bfloat16"), output_is("bfloat16"))),
            (5, either(is_type("float16", "float64"), output_is("float16", "float64"))),
            (4, either(is_type("uint16"), output_is("uint16"))),
            (3, either(is_type("int8"), output_is("int8"))),
            (2, either(is_type("uint32"), output_is("uint32"))),
        ),
    ),
    OperatorSpec("BITCAST", releases="2.13"),
    OperatorSpec(
        "QUANTIZE",
        releases="1.14 1.15 2.7 2.21 2.22 2.22",
        versions=((3, output_per_channel), (2, output_is("int16"))),
    ),
    OperatorSpec(
        "DEQUANTIZE",
        releases="1.13.1 1.14 1.15 2.2 2.7 2.18 2.21 2.22 2.23",
        versions=((3, is_type("int16", "float16")), (5, both(is_type("int8"), per_channel(0))), *V2_INT8),
    ),
    OperatorSpec("FAKE_QUANT", releases="1.5 1.10", versions=((2, differs("narrow_range", False)),)),
    OperatorSpec("RFFT2D", releases="2.5"),
    OperatorSpec("REAL", releases="2.5"),
    OperatorSpec("IMAG", releases="2.5"),
    OperatorSpec("COMPLEX_ABS", releases="2.5"),
)
