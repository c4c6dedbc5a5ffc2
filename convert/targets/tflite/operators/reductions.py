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
)
from tmconvert.targets.tflite.operators.version_rules import (
    ARG_MAX_MIN,
    V2_INT8,
    V2_INT8_INT16,
    V2_INT8_V3_INT16,
    either,
    is_type,
)


def _reduction(name: str, releases: str, **fields: Any) -> OperatorSpec:
    return OperatorSpec(name, options_name="ReducerOptions", releases=releases, **fields)


def _extremum(name: str) -> OperatorSpec:
    return _reduction(
        name,
        "1.11 1.14 2.5",
        versions=V2_INT8_V3_INT16,
        types=FLOAT32_AND_INTEGERS,
        moves=True,
        integer=IntegerKernel("same"),
    )


def _index_of_extremum(name: str) -> OperatorSpec:
    return OperatorSpec(
        name,
        releases="1.9 1.14 2.9",
        versions=ARG_MAX_MIN,
        types=("float32", "int8", "int32", "uint8"),
        gives_indices=(0,),
        integer=IntegerKernel("compared", types=INT8),
    )


def _of_segments(name: str, releases: str, **fields: Any) -> OperatorSpec:
    return OperatorSpec(name, releases=releases, **fields)


SPECS = (
    _reduction(
        "SUM",
        "1.10 1.15",
        versions=V2_INT8,
        types=FLOAT32_INT32_INT64,
        result_range=ranges.of_reduced_sum,
        integer=IntegerKernel("free"),
    ),
    _reduction(
        "MEAN",
        "1.6 1.14 2.4",
        versions=V2_INT8_V3_INT16,
        types=FLOAT32,
        integer=IntegerKernel("free", is_within=True, keeps_sign=True, parts=ranges.elements_per_result),
    ),
    _extremum("REDUCE_MAX"),
    _extremum("REDUCE_MIN"),
    _reduction("REDUCE_PROD", "1.11 2.6", versions=V2_INT8_INT16, types=FLOAT32_AND_INTEGERS),
    _reduction("REDUCE_ANY", "1.11"),
    _reduction("REDUCE_ALL", "2.6"),
    _index_of_extremum("ARG_MAX"),
    _index_of_extremum("ARG_MIN"),
    OperatorSpec(
        "TOPK_V2",
        releases="1.7 1.14 2.13",
        versions=((3, either(is_type("int16"), is_type("int16", input=1))), *V2_INT8),
        types=FLOAT32_AND_INTEGERS,
        gives_indices=(1,),
        moves=True,
        integer=IntegerKernel("same", results=(0,)),
    ),
    OperatorSpec("CUMSUM", releases="2.4", types=FLOAT32_INT32_INT64, result_range=ranges.of_running_sum),
    OperatorSpec("BUCKETIZE", releases="2.8", types=FLOAT32_INT32_INT64),
    OperatorSpec("UNIQUE", releases="1.14"),
    _of_segments("SEGMENT_SUM", "2.2"),
    _of_segments("UNSORTED_SEGMENT_SUM", "2.10"),
    _of_segments("UNSORTED_SEGMENT_MAX", "2.10", types=FLOAT32_INT32),
    _of_segments("UNSORTED_SEGMENT_MIN", "2.11", types=FLOAT32_INT32),
    _of_segments("UNSORTED_SEGMENT_PROD", "2.10", types=FLOAT32_INT32),
    OperatorSpec("NON_MAX_SUPPRESSION_V4", releases="2.1"),
    OperatorSpec("NON_MAX_SUPPRESSION_V5", releases="2.1"),
)
