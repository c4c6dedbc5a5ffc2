"""Reductions, sorting and segments."""

from __future__ import annotations

from typing import Any

from tmconvert.targets.tflite.operators import ranges
from tmconvert.targets.tflite.operators.record import (
    FLOAT32,
    FLOAT32_AND_INTEGERS,
    FLOAT32_INT32,
    FLOAT32_INT32_INT64,
    INT8,
    IntegerKernel,
    OperatorSpec,
    options_of,
)
from tmconvert.targets.tflite.operators.version_rules import (
    ARG_MAX_MIN,
    V2_INT8,
    V2_INT8_INT16,
    V2_INT8_V3_INT16,
    either,
    is_type,
)


def _reduction(name: str, code: int, releases: str, **fields: Any) -> OperatorSpec:
    return OperatorSpec(name, code=code, options="ReducerOptions", releases=releases, **fields)


def _extremum(name: str, code: int) -> OperatorSpec:
    return _reduction(
        name,
        code,
        "1.11 1.14 2.5",
        versions=V2_INT8_V3_INT16,
        types=FLOAT32_AND_INTEGERS,
        moves=True,
        integer=IntegerKernel("same"),
    )


def _index_of_extremum(name: str, code: int) -> OperatorSpec:
    return OperatorSpec(
        name,
        code=code,
        options=options_of(name),
        releases="1.9 1.14 2.9",
        versions=ARG_MAX_MIN,
        types=("float32", "int8", "int32", "uint8"),
        gives_indices=(0,),
        integer=IntegerKernel("compared", types=INT8),
    )


def _of_segments(name: str, code: int, releases: str, **fields: Any) -> OperatorSpec:
    return OperatorSpec(name, code=code, options=options_of(name), releases=releases, **fields)


SPECS = (
    _reduction(
        "SUM",
        74,
        "1.10 1.15",
        versions=V2_INT8,
        types=FLOAT32_INT32_INT64,
        result_range=ranges.of_reduced_sum,
        integer=IntegerKernel("free"),
    ),
    _reduction(
        "MEAN",
        40,
        "1.6 1.14 2.4",
        versions=V2_INT8_V3_INT16,
        types=FLOAT32,
        integer=IntegerKernel("free", is_within=True, keeps_sign=True, parts=ranges.elements_per_result),
    ),
    _extremum("REDUCE_MAX", 82),
    _extremum("REDUCE_MIN", 89),
    _reduction("REDUCE_PROD", 81, "1.11 2.6", versions=V2_INT8_INT16, types=FLOAT32_AND_INTEGERS),
    _reduction("REDUCE_ANY", 91, "1.11"),
    _reduction("REDUCE_ALL", 140, "2.6"),
    _index_of_extremum("ARG_MAX", 56),
    _index_of_extremum("ARG_MIN", 79),
    OperatorSpec(
        "TOPK_V2",
        code=48,
        options="TopKV2Options",
        releases="1.7 1.14 2.13",
        versions=((3, either(is_type("int16"), is_type("int16", input=1))), *V2_INT8),
        types=FLOAT32_AND_INTEGERS,
        gives_indices=(1,),
        moves=True,
        integer=IntegerKernel("same", results=(0,)),
    ),
    OperatorSpec(
        "CUMSUM",
        code=128,
        options="CumsumOptions",
        releases="2.4",
        types=FLOAT32_INT32_INT64,
        result_range=ranges.of_running_sum,
    ),
    OperatorSpec(
        "BUCKETIZE", code=147, options="BucketizeOptions", releases="2.8", types=FLOAT32_INT32_INT64
    ),
    OperatorSpec("UNIQUE", code=103, options="UniqueOptions", releases="1.14"),
    _of_segments("SEGMENT_SUM", 125, "2.2"),
    _of_segments("UNSORTED_SEGMENT_SUM", 155, "2.10"),
    _of_segments("UNSORTED_SEGMENT_MAX", 154, "2.10", types=FLOAT32_INT32),
    _of_segments("UNSORTED_SEGMENT_MIN", 157, "2.11", types=FLOAT32_INT32),
    _of_segments("UNSORTED_SEGMENT_PROD", 153, "2.10", types=FLOAT32_INT32),
    OperatorSpec("NON_MAX_SUPPRESSION_V4", code=120, options="NonMaxSuppressionV4Options", releases="2.1"),
    OperatorSpec("NON_MAX_SUPPRESSION_V5", code=121, options="NonMaxSuppressionV5Options", releases="2.1"),
)
