"""The oldest runtime that has each version of each TFLite operator.

Releases are TensorFlow's, then LiteRT's, which counts on: LiteRT 1.0 is 2.18, 1.1 is 2.19, 1.3 is 2.20,
2.1 is 2.21 and 2.2 is 2.23. Source: LiteRT's runtime_version.cc, August 2026, corrected where a
release did not have what it says. Each version of each operator was loaded in tflite-runtime 2.7 to
2.14 and in ai-edge-litert 1.0 to 2.3; releases before 2.7 and from 2.15 to 2.17 could not be tried, nor
which of 2.22 and 2.23 came with what LiteRT 2.2 added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby

from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.targets.tflite.element_types import NEWEST, OLDEST, TABLE

_ANY_PATCH = 999

# The release for version 1, 2, ...; "-" where there is none. The patch level is 0 unless given.
_RELEASES = {
    "ABS": "1.13 2.4 2.5 2.6 2.12",
    "ADD": "1.5 1.14 2.4 2.6 2.13 2.23",
    "ADD_N": "1.14",
    "ARG_MAX": "1.9 1.14 2.9",
    "ARG_MIN": "1.9 1.14 2.9",
    "ATAN2": "2.10",
    "AVERAGE_POOL_2D": "1.5 1.14 2.3",
    "BATCH_MATMUL": "2.3 2.3 2.4 2.5",
    "BATCH_TO_SPACE_ND": "1.6 1.14 2.3 2.13",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "1.14 1.14 1.14",
    "BIDIRECTIONAL_SEQUENCE_RNN": "1.14 1.14 2.3",
    "BITCAST": "2.13",
    "BITWISE_XOR": "2.13",
    "BROADCAST_ARGS": "2.6",
    "BROADCAST_TO": "- 2.5 2.5 2.23",
    "CAST": "1.5 2.7 2.8 2.9 2.13 2.15 2.19 2.21 2.23",
    "CEIL": "1.14",
    "COMPLEX_ABS": "2.5",
    "CONCATENATION": "1.5 1.14 2.3 2.14 2.22 2.23 2.23",
    "CONV_2D": "1.5 1.14 1.14 2.3 2.4 2.9 2.12 2.15",
    "CONV_3D": "2.5",
    "CONV_3D_TRANSPOSE": "2.6",
    "COS": "1.14 2.23",
    "CUMSUM": "2.4",
    "DEPTHWISE_CONV_2D": "1.5 1.12 1.14 2.2 2.3 2.3 2.13",
    "DEPTH_TO_SPACE": "2.1 2.5",
    "DEQUANTIZE": "1.13.1 1.14 1.15 2.2 2.7 2.18 2.21 2.22 2.23",
    "DIV": "1.6 2.3",
    "DYNAMIC_UPDATE_SLICE": "2.9 2.17 2.19 2.20 2.22 2.22",
    "ELU": "1.14",
    "EMBEDDING_LOOKUP": "1.13 1.14 1.14 2.18 2.22",
    "EQUAL": "1.14 1.14 2.3 2.13 2.21",
    "EXP": "1.7 2.13",
    "EXPAND_DIMS": "1.10",
    "FAKE_QUANT": "1.5 1.10",
    "FILL": "1.13 2.3 2.5 2.12 2.23",
    "FLOOR": "1.9",
    "FLOOR_DIV": "1.14 1.14 2.13",
    "FLOOR_MOD": "1.13 2.13",
    "FULLY_CONNECTED": "1.5 1.10 1.14 1.14 2.0 2.1 2.3 2.3 2.3 2.13 2.15 2.17 2.18 2.21",
    "GATHER": "1.6 1.14 1.15 2.4 2.5 2.13 2.15 2.23",
    "GATHER_ND": "1.14 2.3 2.5 2.13 2.16 2.23",
    "GELU": "2.8 2.9 2.23",
    "GREATER": "1.14 1.14",
    "GREATER_EQUAL": "1.14 1.14 2.13",
    "HARD_SWISH": "1.15",
    "IF": "1.15",
    "IMAG": "2.5",
    "L2_NORMALIZATION": "1.5 1.14",
    "L2_POOL_2D": "1.5",
    "LEAKY_RELU": "1.13.1 2.3",
    "LESS": "1.14 1.14 2.13",
    "LESS_EQUAL": "1.14 1.14",
    "LOCAL_RESPONSE_NORMALIZATION": "1.5",
    "LOG": "1.14 2.15",
    "LOGICAL_AND": "1.11",
    "LOGICAL_NOT": "1.11",
    "LOGICAL_OR": "1.11",
    "LOGISTIC": "1.14 1.14 2.3",
    "LOG_SOFTMAX": "1.14 1.14",
    "LSTM": "1.7 1.10 1.14 2.3",
    "MATRIX_DIAG": "1.14",
    "MATRIX_SET_DIAG": "1.14",
    "MAXIMUM": "1.14 1.14 2.3 2.3",
    "MAX_POOL_2D": "1.5 1.14 2.3",
    "MEAN": "1.6 1.14 2.4",
    "MINIMUM": "1.14 1.14 2.3 2.3",
    "MIRROR_PAD": "1.13.1 2.3 2.13",
    "MUL": "1.5 1.14 1.15 2.3 2.6 2.11 2.13 2.23",
    "NEG": "1.9",
    "NON_MAX_SUPPRESSION_V4": "2.1",
    "NON_MAX_SUPPRESSION_V5": "2.1",
    "NOT_EQUAL": "1.14 1.14 2.3 2.21",
    "ONE_HOT": "1.11",
    "PACK": "1.11 1.14 2.3 2.14 2.23",
    "PAD": "1.5 1.14 2.4 2.6 2.21 2.23",
    "PADV2": "1.9 1.14 2.4 2.6 2.21 2.23",
    "POW": "1.10",
    "PRELU": "1.8",
    "QUANTIZE": "1.14 1.15 2.7 2.21 2.22 2.22",
    "RANGE": "1.13 2.14",
    "RANK": "1.14",
    "REAL": "2.5",
    "REDUCE_ALL": "2.6",
    "REDUCE_ANY": "1.11",
    "REDUCE_MAX": "1.11 1.14 2.5",
    "REDUCE_MIN": "1.11 1.14 2.5",
    "REDUCE_PROD": "1.11 2.6",
    "RELU": "1.5 2.1 2.5",
    "RELU6": "1.5 1.14 2.5",
    "RELU_0_TO_1": "2.10",
    "RELU_N1_TO_1": "1.5",
    "RESHAPE": "1.5",
    "RESIZE_BILINEAR": "1.7 1.14 2.2 2.5",
    "RESIZE_NEAREST_NEIGHBOR": "1.13.1 1.14 2.3 2.4",
    "REVERSE_SEQUENCE": "1.14",
    "REVERSE_V2": "1.14 2.2 2.5 2.23",
    "RFFT2D": "2.5",
    "RIGHT_SHIFT": "2.13",
    "RNN": "1.5 1.14 2.3",
    "ROUND": "1.14",
    "RSQRT": "1.10 2.5 2.15",
    "SCATTER_ND": "2.1",
    "SEGMENT_SUM": "2.2",
    "SELECT": "1.14 1.14 2.12 2.14",
    "SELECT_V2": "2.2 2.14",
    "SHAPE": "1.10",
    "SIGN": "2.11 2.12",
    "SIN": "1.9 2.23",
    "SLICE": "1.14 1.14 1.14 2.4 2.5 2.14 2.21 2.23",
    "SOFTMAX": "1.5 1.14 2.3 2.23",
    "SPACE_TO_BATCH_ND": "1.6 1.14 2.3 2.13",
    "SPACE_TO_DEPTH": "1.5 1.14",
    "SPARSE_TO_DENSE": "1.9 1.14 1.15",
    "SPLIT": "1.5 1.14 1.14 2.3 2.23",
    "SPLIT_V": "1.13.1 2.3 2.23",
    "SQRT": "1.10 2.21",
    "SQUARE": "1.12",
    "SQUARED_DIFFERENCE": "1.13.1 2.5",
    "SQUEEZE": "1.6 2.5",
    "STRIDED_SLICE": "1.6 1.14 2.1 2.2 2.5 2.6 2.14 2.14",
    "SUB": "1.6 1.14 2.3 2.4 2.4",
    "SUM": "1.10 1.15",
    "SVDF": "1.5 1.14 2.2 2.3",
    "TANH": "1.14 1.14 2.3",
    "TILE": "1.10.1 2.2 2.8",
    "TOPK_V2": "1.7 1.14 2.13",
    "TRANSPOSE": "1.6 1.14 1.15 2.3 2.4 2.12 2.20 2.22 2.23",
    "TRANSPOSE_CONV": "1.9 2.2 2.3 2.12 2.15",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "1.13.1 1.14 2.3 2.12",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "1.14 1.14 2.3",
    "UNIQUE": "1.14",
    "UNPACK": "1.11 1.14 2.2 2.3 2.22 2.23",
    "UNSORTED_SEGMENT_MAX": "2.10",
    "UNSORTED_SEGMENT_MIN": "2.11",
    "UNSORTED_SEGMENT_PROD": "2.10",
    "UNSORTED_SEGMENT_SUM": "2.10",
    "WHERE": "1.14 2.8",
    "WHILE": "1.15",
    "ZEROS_LIKE": "1.12",
}


def minimum_runtime(versions: Mapping[str, int]) -> str:
    """The oldest release, such as "2.3.0", that runs these versions of these operators.

    Versions without a known release are passed over, as LiteRT does; with none known it is empty.
    """
    known = [release for type, version in versions.items() if (release := _release(type, version))]
    return ".".join(map(str, max(known))) if known else ""


def runtime_refusal(type: str, version: int, runtime: int) -> tuple[str, str] | None:
    """(reason, help) why the runtime 2.``runtime`` does not run this version; None when it does.

    The types of custom operators are none of TFLite's: whoever has their library runs them.
    """
    if type not in _RELEASES:
        return None
    release = _release(type, version)
    if not release:
        return f"no runtime has version {version} of TFLite's {type} yet", ""
    if release <= (2, runtime, _ANY_PATCH):
        return None
    oldest = ".".join(map(str, release[: 3 if release[2] else 2]))
    reason = f"this takes version {version} of TFLite's {type}, which the runtime 2.{runtime} has not"
    return reason, f"the runtime {oldest} and later have it: --runtime {oldest}"


def _release(type: str, version: int) -> tuple[int, ...]:
    releases = _RELEASES.get(type, "").split()
    if version > len(releases) or releases[version - 1] == "-":
        return ()
    numbers = [int(part) for part in releases[version - 1].split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


def types_refusal(operator: Operator, runtime: int) -> tuple[str, str] | None:
    """As ``runtime_refusal``, for the element types of an operator, which versions do not always tell."""
    types = types_of(operator)
    release = first_release(operator.type, types)
    if release <= max(runtime, OLDEST):
        return None
    given, _, made = types.replace("q", "").partition(">")
    what = f"TFLite's {operator.type} of {given}" + ("" if given == made else f" to {made}")
    if release > NEWEST:
        return f"no runtime runs {what}", ""
    reason = f"the runtime 2.{runtime} does not run {what}"
    return reason, f"the runtime 2.{release} and later do: --runtime 2.{release}"


def first_release(type: str, types: str) -> int:
    """The N of the first release 2.N that runs an operator with such ``types_of``; 0 if not measured."""
    return _types().get((type, types), 0)


def kernel_release(type: str, kind: str) -> int:
    """As ``first_release``, of the operator with quantized tensors of ``kind`` alone."""
    return _kernels().get((type, kind), 0)


@cache
def _types() -> dict[tuple[str, str], int]:
    rows = (line.split(" ") for line in TABLE.strip().splitlines())
    return {(type, types): int(release) for type, types, release in rows}


@cache
def _kernels() -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for (type, types), release in _types().items():
        kinds = {kind for kind in re.split("[,>]", types) if kind.endswith("q")} - {"int32q", "int64q"}
        weights = {"int8q"} if "int16q" in kinds else set()
        if len(kinds - weights) == 1:
            key = type, next(iter(kinds - weights)).removesuffix("q")
            found[key] = max(found.get(key, 0), release)
    return found


def types_of(operator: Operator) -> str:
    """The element types of an operator: "int8q,int32q>int8q", q where a tensor is quantized.

    Neighbours of one type are one, whatever their number.
    """
    sides = (operator.inputs, operator.outputs)
    inputs, outputs = ([_type(value) for value in side if value is not None] for side in sides)
    return types_text(inputs, outputs)


def types_text(inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """``types_of`` an operator with tensors of these types."""
    return ">".join(",".join(name for name, _ in groupby(side)) for side in (inputs, outputs))


def _type(value: Value) -> str:
    return name_of(value.dtype) + "q" * (value.quantization is not None)
