"""Arithmetic, element by element."""

from __future__ import annotations

from typing import Any

from tmconvert.targets.tflite.operators import ranges
from tmconvert.targets.tflite.operators.record import (
    FLOAT16_FLOAT32,
    FLOAT32,
    FLOAT32_INT32,
    FLOAT32_INT32_INT64,
    INT8,
    IntegerKernel,
    OperatorSpec,
    RangeRule,
)
from tmconvert.targets.tflite.operators.version_rules import (
    MAXIMUM_MINIMUM,
    POT_SCALE,
    V2_INT8,
    V2_INT8_INT16,
    V2_INT8_V3_INT16,
    both,
    broadcasts_above_rank_4,
    either,
    is_plain_int16,
    is_type,
    product_is_scaled_up,
)


def _binary(name: str, releases: str, **fields: Any) -> OperatorSpec:
    """An operator on two tensors, which it broadcasts."""
    return OperatorSpec(name, releases=releases, data=(0, 1), **fields)


def _extremum(name: str, result_range: RangeRule) -> OperatorSpec:
    return _binary(
        name,
        "1.14 1.14 2.3 2.3",
        options_name="MaximumMinimumOptions",
        versions=MAXIMUM_MINIMUM,
        types=("float16", "float32", "int8", "int16", "int32", "int64", "uint8"),
        moves=True,
        result_range=result_range,
        integer=IntegerKernel("same"),
    )


def _float(name: str, releases: str, **fields: Any) -> OperatorSpec:
    """A function of float elements."""
    return OperatorSpec(name, releases=releases, **{"types": FLOAT32, **fields})


SPECS = (
    _binary(
        "ADD",
        "1.5 1.14 2.4 2.6 2.13 2.23",
        versions=(
            (6, is_type("float16")),
            (5, is_plain_int16),
            (4, is_type("int64")),
            (3, both(is_type("int16"), POT_SCALE)),
            *V2_INT8,
        ),
        types=("float16", "float32", "int16", "int32", "int64"),
        result_range=ranges.of_sum,
        needed_ranges=ranges.needed_by_sum,
        fuses_activation=True,
        integer=IntegerKernel("free", aligns_summands=True),
    ),
    _binary(
        "SUB",
        "1.6 1.14 2.3 2.4 2.4",
        versions=(
            (5, both(is_type("int16"), POT_SCALE)),
            (4, is_type("int64")),
            (3, broadcasts_above_rank_4),
            *V2_INT8,
        ),
        types=FLOAT32_INT32_INT64,
        result_range=ranges.of_difference,
        needed_ranges=ranges.needed_by_difference,
        fuses_activation=True,
        integer=IntegerKernel("free", aligns_summands=True),
    ),
    _binary(
        "MUL",
        "1.5 1.14 1.15 2.3 2.6 2.11 2.13 2.23",
        versions=(
            (8, is_type("float16")),
            (7, either(is_plain_int16, is_type("uint32"))),
            (6, is_type("complex64")),
            (5, is_type("int64")),
            (4, is_type("int16")),
            (3, product_is_scaled_up),
            *V2_INT8,
        ),
        types=("float16", "float32", "int16", "int32", "int64"),
        result_range=ranges.of_product,
        fuses_activation=True,
        integer=IntegerKernel("free"),
    ),
    # No integer kernel: it overflows where quotients are large.
    _binary(
        "DIV", "1.6 2.3", versions=((2, broadcasts_above_rank_4),), types=FLOAT32_INT32, fuses_activation=True
    ),
    _binary(
        "FLOOR_DIV",
        "1.14 1.14 2.13",
        versions=((3, is_type("int8", "int16")), (2, is_type("float32"))),
        types=("float32", "int8", "int16", "int32"),
    ),
    _binary(
        "FLOOR_MOD",
        "1.13 2.13",
        versions=V2_INT8_INT16,
        types=("float32", "int8", "int16", "int32", "int64"),
        result_range=ranges.of_remainder,
    ),
    _binary("POW", "1.10", types=FLOAT32_INT32),
    _extremum("MAXIMUM", ranges.of_maximum),
    _extremum("MINIMUM", ranges.of_minimum),
    _binary("SQUARED_DIFFERENCE", "1.13.1 2.5", versions=V2_INT8, integer=IntegerKernel("free", types=INT8)),
    OperatorSpec("ADD_N", releases="1.14", data=None),
    _binary("ATAN2", "2.10"),
    # No integer kernel: it knows no zero point.
    OperatorSpec(
        "NEG",
        releases="1.9",
        types=("float16", "float32", "int8", "int16", "int32", "int64"),
        result_range=ranges.of_negation,
    ),
    OperatorSpec(
        "ABS",
        releases="1.13 2.4 2.5 2.6 2.12",
        versions=(
            (5, is_type("int32")),
            (4, is_plain_int16),
            (3, is_type("int16")),
            (2, is_type("int8", "uint8")),
        ),
        types=("float32", "int16", "int32"),
        result_range=ranges.of_magnitude,
        integer=IntegerKernel("free"),
    ),
    OperatorSpec("SIGN", releases="2.11 2.12", versions=((2, is_type("int32")),)),
    OperatorSpec("SQUARE", releases="1.12"),
    # SQRT and RSQRT have no integer kernel: they stop at what is not positive.
    _float("SQRT", "1.10 2.21", versions=V2_INT8_INT16),
    _float("RSQRT", "1.10 2.5 2.15", versions=V2_INT8_V3_INT16),
    # In int16 it has 513 entries for its range, and is 63 steps off between them.
    _float(
        "EXP",
        "1.7 2.13",
        versions=V2_INT8_INT16,
        result_range=ranges.of_exponential,
        integer=IntegerKernel("free", types=INT8),
    ),
    # In int16 it is hundreds of steps off near 0.
    _float("LOG", "1.14 2.15", versions=V2_INT8_INT16, integer=IntegerKernel("free", types=INT8)),
    _float("SIN", "1.9 2.23", versions=((2, is_type("float16")),), types=FLOAT16_FLOAT32),
    _float("COS", "1.14 2.23", versions=((2, is_type("float16")),), types=FLOAT16_FLOAT32),
    _float("FLOOR", "1.9"),
    _float("CEIL", "1.14"),
    _float("ROUND", "1.14", types=FLOAT16_FLOAT32),
    _binary("BITWISE_XOR", "2.13", types=("int8", "int16", "int32", "uint8")),
    _binary(
        "RIGHT_SHIFT",
        "2.13",
        # of bytes, all but seven bits at most
        types=("int8", "int16", "int32"),
    ),
)
