"""Gather, scatter and tensor factory operators."""

from __future__ import annotations

from tmconvert.targets.tflite.operators.record import COMMON, FLOAT32_INT32_INT64, IntegerKernel, OperatorSpec
from tmconvert.targets.tflite.operators.version_rules import V2_INT8, differs, is_type, per_channel

SPECS = (
    OperatorSpec(
        "GATHER",
        releases="1.6 1.14 1.15 2.4 2.5 2.13 2.15 2.23",
        versions=(
            (6, is_type("int16", input=1)),
            (5, differs("batch_dims", 0)),
            (4, is_type("int16")),
            (3, is_type("bool")),
            *V2_INT8,
        ),
        types=COMMON,
        index=1,
        index_is_checked=True,
        moves=True,
        integer=IntegerKernel("same"),
    ),
    OperatorSpec(
        "GATHER_ND",
        releases="1.14 2.3 2.5 2.13 2.16 2.23",
        versions=((5, is_type("bool")), (4, is_type("int16", input=1)), (3, is_type("int16"))),
        index=1,
        moves=True,
        integer=IntegerKernel("same"),
    ),
    OperatorSpec(
        "EMBEDDING_LOOKUP",
        releases="1.13 1.14 1.14 2.18 2.22",
        versions=((5, is_type("int2", input=1)), (4, per_channel(1))),
        data=(1,),
        index=0,
        index_is_checked=True,
    ),
    # No integer kernel: it knows no zero point.
    OperatorSpec(
        "SCATTER_ND", releases="2.1", types=("float32", "int8", "int32", "int64", "uint8", "bool"), data=(1,)
    ),
    OperatorSpec(
        "SPARSE_TO_DENSE",
        releases="1.9 1.14 1.15",
        versions=((3, is_type("int8", "uint8", input=2)), (2, is_type("int64", input=2))),
    ),
    OperatorSpec("ONE_HOT", releases="1.11", data=(2, 3), index=0, moves=True),
    OperatorSpec(
        "FILL",
        releases="1.13 2.3 2.5 2.12 2.23",
        versions=(
            (4, is_type("float16", input=1)),
            (3, is_type("int8", "int16", input=1)),
            (2, is_type("bool", input=1)),
        ),
        data=(1,),
        moves=True,
    ),
    OperatorSpec("RANGE", releases="1.13 2.14", versions=((2, is_type("int64")),), types=FLOAT32_INT32_INT64),
    OperatorSpec("RANDOM_UNIFORM", options_name="RandomOptions", releases="2.10", data=(), draws_random=True),
    OperatorSpec(
        "RANDOM_STANDARD_NORMAL", options_name="RandomOptions", releases="2.10", data=(), draws_random=True
    ),
    OperatorSpec("ZEROS_LIKE", releases="1.12"),
    OperatorSpec("MATRIX_DIAG", releases="1.14"),
    OperatorSpec("MATRIX_SET_DIAG", releases="1.14"),
)
