"""Comparisons, logic and selections."""

from __future__ import annotations

from typing import Any

from tmconvert.targets.tflite.operators.record import FLOAT32_INT32_INT64, IntegerKernel, OperatorSpec
from tmconvert.targets.tflite.operators.version_rules import (
    V2_INT8,
    V2_INT8_V3_INT16,
    always,
    any_rank_5,
    is_type,
)


def _comparison(name: str, releases: str, **fields: Any) -> OperatorSpec:
    fields = {"versions": V2_INT8, "types": FLOAT32_INT32_INT64, **fields}
    return OperatorSpec(
        name, releases=releases, data=(0, 1), compares=True, integer=IntegerKernel("compared"), **fields
    )


def _logical(name: str, *, data: tuple[int, ...] = (0, 1)) -> OperatorSpec:
    return OperatorSpec(name, releases="1.11", data=data)


SPECS = (
    # bytes without quantization end the process in EQUAL and NOT_EQUAL, and int16 is not compared right
    _comparison(
        "EQUAL",
        "1.14 1.14 2.3 2.13 2.21",
        versions=((5, is_type("int16")), *V2_INT8),
        types=(*FLOAT32_INT32_INT64, "bool"),
    ),
    _comparison(
        "NOT_EQUAL",
        "1.14 1.14 2.3 2.21",
        versions=((4, is_type("int16")), *V2_INT8),
        types=(*FLOAT32_INT32_INT64, "bool"),
    ),
    _comparison("LESS", "1.14 1.14 2.13", versions=V2_INT8_V3_INT16),
    _comparison("LESS_EQUAL", "1.14 1.14"),
    _comparison("GREATER", "1.14 1.14"),
    _comparison("GREATER_EQUAL", "1.14 1.14 2.13", versions=V2_INT8_V3_INT16),
    _logical("LOGICAL_AND"),
    _logical("LOGICAL_OR"),
    _logical("LOGICAL_NOT", data=(0,)),
    OperatorSpec(
        "SELECT",
        releases="1.14 1.14 2.12 2.14",
        # input 0 is the condition; LiteRT looks at its type all the same
        versions=((4, is_type("uint32")), (3, any_rank_5), *V2_INT8),
        data=(1, 2),
        moves=True,
    ),
    OperatorSpec(
        "SELECT_V2",
        releases="2.2 2.14",
        versions=((2, is_type("uint32")),),
        data=(1, 2),
        moves=True,
        integer=IntegerKernel("same"),
    ),
    OperatorSpec(
        "WHERE",
        releases="1.14 2.8",
        versions=((1, is_type("bool")), (2, always)),
        types=("float32", "int8", "int32", "int64", "uint8", "bool"),
    ),
)
