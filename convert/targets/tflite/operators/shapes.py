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
    options_of,
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


def _moving(name: str, code: int, releases: str, **fields: Any) -> OperatorSpec:
    """An operator whose results consist of elements of its data."""
    fields = {"options": options_of(name), "integer": IntegerKernel("same"), **fields}
    return OperatorSpec(name, code=code, releases=releases, moves=True, **fields)


SPECS = (
    _moving("RESHAPE", 22, "1.5", keeps_all=True, integer=IntegerKernel("same", keeps_sign=True)),
    _moving("SQUEEZE", 43, "1.6 2.5", keeps_all=True),
    _moving("EXPAND_DIMS", 70, "1.10", keeps_all=True),
    _moving(
        "TRANSPOSE",
        39,
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
        105,
        "1.14 2.2 2.5 2.23",
        versions=((3, is_type("int8")), (2, is_type("bool"))),
        keeps_all=True,
    ),
    _moving("REVERSE_SEQUENCE", 112, "1.14", integer=IntegerKernel("same", types=INT16)),
    _moving(
        "SLICE",
        65,
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
        45,
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
        49,
        "1.5 1.14 1.14 2.3 2.23",
        # input 0 is the axis
        versions=tuple(
            (version, is_type(f"int{bits}", input=1)) for version, bits in ((4, 16), (3, 32), (2, 8))
        ),
        data=(1,),
        types=FLOAT32_AND_INTEGERS,
    ),
    _moving("SPLIT_V", 102, "1.13.1 2.3 2.23", versions=V2_INT8),
    _moving(
        "UNPACK",
        88,
        "1.11 1.14 2.2 2.3 2.22 2.23",
        versions=(
            (5, is_type("float16", "bfloat16")),
            (4, is_type("int16")),
            (3, is_type("bool")),
            (2, is_type("int8", "uint8")),
        ),
    ),
    _moving(
        "PACK", 83, "1.11 1.14 2.3 2.14 2.23", versions=((4, is_type("uint32")), *V2_INT8_V3_INT16), data=None
    ),
    _moving(
        "CONCATENATION",
        2,
        "1.5 1.14 2.3 2.14 2.22 2.23 2.23",
        versions=((6, is_type("float16")), (4, is_type("uint32")), *V2_INT8_V3_INT16),
        types=COMMON,
        data=None,
    ),
    _moving(
        "DYNAMIC_UPDATE_SLICE",
        151,
        "2.9 2.17 2.19 2.20 2.22 2.22",
        versions=(
            (6, is_type("bfloat16")),
            (4, is_type("int16")),
            (3, is_type("float16")),
            (2, is_type("int64", input=2)),
        ),
        data=(0, 1),
    ),
    _moving("TILE", 69, "1.10.1 2.2 2.8", versions=((3, is_type("int8")),)),
    _moving(
        "BROADCAST_TO",
        130,
        "- 2.5 2.5 2.23",
        # version 1 was withdrawn together with its first code
        versions=((3, is_type("int8", "int16")), (2, always)),
    ),
    OperatorSpec("BROADCAST_ARGS", code=145, releases="2.6"),
    _moving(
        "PAD",
        34,
        "1.5 1.14 2.4 2.6 2.21 2.23",
        versions=PADDING,
        types=COMMON,
        keeps_all=True,
        adds_zeros=True,
        integer=IntegerKernel("same", keeps_sign=True),
    ),
    _moving(
        "PADV2",
        60,
        "1.9 1.14 2.4 2.6 2.21 2.23",
        options="PadV2Options",
        versions=PADDING,
        types=COMMON,
        data=(0, 2),
    ),
    _moving("MIRROR_PAD", 100, "1.13.1 2.3 2.13", versions=V2_INT8_V3_INT16),
    _moving(
        "SPACE_TO_BATCH_ND",
        38,
        "1.6 1.14 2.3 2.13",
        options="SpaceToBatchNDOptions",
        versions=SPACE_AND_BATCH,
        adds_zeros=True,
    ),
    _moving(
        "BATCH_TO_SPACE_ND",
        37,
        "1.6 1.14 2.3 2.13",
        options="BatchToSpaceNDOptions",
        versions=SPACE_AND_BATCH,
    ),
    _moving(
        "SPACE_TO_DEPTH",
        26,
        "1.5 1.14",
        is_spatial=True,
        versions=V2_INT8,
        integer=IntegerKernel("same", types=INT8),
    ),
    _moving(
        "DEPTH_TO_SPACE",
        5,
        "2.1 2.5",
        is_spatial=True,
        versions=V2_INT8,
        integer=IntegerKernel("same", types=INT8),
    ),
    OperatorSpec("SHAPE", code=77, options="ShapeOptions", releases="1.10", reads_sizes=True),
    OperatorSpec("RANK", code=110, options="RankOptions", releases="1.14", reads_sizes=True),
)
