"""Shapes and layouts: views, slices, concatenation, padding, blocks."""

from __future__ import annotations

from typing import Any

from tmconvert.targets.tflite.operators.record import (
    COMMON,
    FLOAT32_AND_INTEGERS,
    INT8,
    INT16,
    IntegerKernel,
    OperatorSpec,
)
from tmconvert.targets.tflite.operators.version_rules import (
    PADDING,
    SPACE_AND_BATCH,
    V2_INT8,
    V2_INT8_V3_INT16,
    always,
    differs,
    either,
    is_type,
    rank_above,
)


def _moving(name: str, releases: str, **fields: Any) -> OperatorSpec:
    """An operator whose results consist of elements of its data."""
    fields = {"integer": IntegerKernel("same"), **fields}
    return OperatorSpec(name, releases=releases, moves=True, **fields)


SPECS = (
    _moving("RESHAPE", "1.5", keeps_all=True, integer=IntegerKernel("same", keeps_sign=True)),
    _moving("SQUEEZE", "1.6 2.5", keeps_all=True),
    _moving("EXPAND_DIMS", "1.10", keeps_all=True),
    _moving(
        "TRANSPOSE",
        "1.6 1.14 1.15 2.3 2.4 2.12 2.20 2.22 2.23",
        versions=(
            (9, is_type("float16")),
            (8, either(rank_above(6), is_type("bfloat16"))),
            (6, rank_above(5)),
            (5, is_type("int16")),
            (4, rank_above(4)),
            (3, is_type("bool")),
            *V2_INT8,
        ),
        keeps_all=True,
        integer=IntegerKernel("same", keeps_sign=True),
    ),
    _moving(
        "REVERSE_V2",
        "1.14 2.2 2.5 2.23",
        versions=((3, is_type("int8")), (2, is_type("bool"))),
        keeps_all=True,
    ),
    _moving("REVERSE_SEQUENCE", "1.14", integer=IntegerKernel("same", types=INT16)),
    _moving(
        "SLICE",
        "1.14 1.14 1.14 2.4 2.5 2.14 2.21 2.23",
        versions=(
            (8, is_type("float16")),
            (6, is_type("uint32")),
            (5, rank_above(4)),
            (4, is_type("int16")),
            *V2_INT8,
        ),
    ),
    _moving(
        "STRIDED_SLICE",
        "1.6 1.14 2.1 2.2 2.5 2.6 2.14 2.14",
        versions=(
            (8, differs("offset", False)),
            (7, is_type("uint32")),
            (6, either(differs("ellipsis_mask", 0), differs("new_axis_mask", 0))),
            (4, rank_above(4)),
            (3, is_type("bool")),
            *V2_INT8,
        ),
    ),
    _moving(
        "SPLIT",
        "1.5 1.14 1.14 2.3 2.23",
        # input 0 is the axis
        versions=tuple(
            (version, is_type(f"int{bits}", input=1)) for version, bits in ((4, 16), (3, 32), (2, 8))
        ),
        data=(1,),
        types=FLOAT32_AND_INTEGERS,
    ),
    _moving("SPLIT_V", "1.13.1 2.3 2.23", versions=V2_INT8),
    _moving(
        "UNPACK",
        "1.11 1.14 2.2 2.3 2.22 2.23",
        versions=(
            (5, is_type("float16", "bfloat16")),
            (4, is_type("int16")),
            (3, is_type("bool")),
            (2, is_type("int8", "uint8")),
        ),
    ),
    _moving(
        "PACK", "1.11 1.14 2.3 2.14 2.23", versions=((4, is_type("uint32")), *V2_INT8_V3_INT16), data=None
    ),
    _moving(
        "CONCATENATION",
        "1.5 1.14 2.3 2.14 2.22 2.23 2.23",
        versions=((6, is_type("float16")), (4, is_type("uint32")), *V2_INT8_V3_INT16),
        types=COMMON,
        data=None,
    ),
    _moving(
        "DYNAMIC_UPDATE_SLICE",
        "2.9 2.17 2.19 2.20 2.22 2.22",
        versions=(
            (6, is_type("bfloat16")),
            (4, is_type("int16")),
            (3, is_type("float16")),
            (2, is_type("int64", input=2)),
        ),
        data=(0, 1),
    ),
    _moving("TILE", "1.10.1 2.2 2.8", versions=((3, is_type("int8")),)),
    _moving(
        "BROADCAST_TO",
        "- 2.5 2.5 2.23",
        # version 1 was withdrawn together with its first code
        versions=((3, is_type("int8", "int16")), (2, always)),
    ),
    OperatorSpec("BROADCAST_ARGS", releases="2.6"),
    _moving(
        "PAD",
        "1.5 1.14 2.4 2.6 2.21 2.23",
        versions=PADDING,
        types=COMMON,
        keeps_all=True,
        adds_zeros=True,
        integer=IntegerKernel("same", keeps_sign=True),
    ),
    _moving("PADV2", "1.9 1.14 2.4 2.6 2.21 2.23", versions=PADDING, types=COMMON, data=(0, 2)),
    _moving("MIRROR_PAD", "1.13.1 2.3 2.13", versions=V2_INT8_V3_INT16),
    _moving("SPACE_TO_BATCH_ND", "1.6 1.14 2.3 2.13", versions=SPACE_AND_BATCH, adds_zeros=True),
    _moving("BATCH_TO_SPACE_ND", "1.6 1.14 2.3 2.13", versions=SPACE_AND_BATCH),
    _moving(
        "SPACE_TO_DEPTH",
        "1.5 1.14",
        is_spatial=True,
        versions=V2_INT8,
        integer=IntegerKernel("same", types=INT8),
    ),
    _moving(
        "DEPTH_TO_SPACE",
        "2.1 2.5",
        is_spatial=True,
        versions=V2_INT8,
        integer=IntegerKernel("same", types=INT8),
    ),
    OperatorSpec("SHAPE", releases="1.10", reads_sizes=True),
    OperatorSpec("RANK", releases="1.14", reads_sizes=True),
)
