"""The oldest runtime that supports each version of each TFLite operator.

Releases are TensorFlow's, then LiteRT's, with continued numbers: LiteRT 1.0 is 2.18, 1.1 is 2.19, 1.3 is
2.20, 2.1 is 2.21 and 2.2 is 2.23. Source: LiteRT's runtime_version.cc, August 2026, corrected where
measurements differ. Each version of each operator was loaded in tflite-runtime 2.7 to 2.14 and in
ai-edge-litert 1.0 to 2.3; releases before 2.7 and from 2.15 to 2.17 could not be tested, nor could 2.22 be
distinguished from 2.23 for the additions of LiteRT 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby

from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.targets.tflite.element_types import NEWEST, OLDEST
from tmconvert.targets.tflite.operators import spec

_ANY_PATCH = 999


def minimum_runtime(versions: Mapping[str, int]) -> str:
    """The oldest release, such as "2.3.0", that runs these versions of these operators.

    Versions without a known release are ignored, as in LiteRT; without any known release the result is empty.
    """
    known = [release for type, version in versions.items() if (release := _release(type, version))]
    return ".".join(map(str, max(known))) if known else ""


def runtime_refusal(type: str, version: int, runtime: int) -> tuple[str, str] | None:
    """Returns (reason, help) if the runtime 2.``runtime`` does not support this version; else None.

    Types of custom operators are not checked, since their library defines them.
    """
    if not spec(type).releases:
        return None
    release = _release(type, version)
    if not release:
        return f"no runtime supports version {version} of TFLite's {type} yet", ""
    if release <= (2, runtime, _ANY_PATCH):
        return None
    oldest = ".".join(map(str, release[: 3 if release[2] else 2]))
    reason = (
        f"this needs version {version} of TFLite's {type}, which the runtime 2.{runtime} does not support"
    )
    return reason, f"the runtime {oldest} and later support it: --runtime {oldest}"


@cache
def _release(type: str, version: int) -> tuple[int, ...]:
    releases = spec(type).releases.split()
    if version > len(releases) or releases[version - 1] == "-":
        return ()
    numbers = [int(part) for part in releases[version - 1].split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


def types_refusal(operator: Operator, runtime: int) -> tuple[str, str] | None:
    """Like ``runtime_refusal``, for element types, which operator versions do not always define."""
    types = types_of(operator)
    release = first_release(operator.type, types)
    if release <= max(runtime, OLDEST):
        return None
    given, _, made = types.replace("q", "").partition(">")
    what = f"TFLite's {operator.type} of {given}" + ("" if given == made else f" to {made}")
    if release > NEWEST:
        return f"no runtime supports {what}", ""
    reason = f"the runtime 2.{runtime} does not support {what}"
    return reason, f"the runtime 2.{release} and later support it: --runtime 2.{release}"


def first_release(type: str, types: str) -> int:
    """Returns the N of the first release 2.N that runs an operator of these ``types_of``; 0 if unknown."""
    return spec(type).measured.get(types, 0)


@cache
def kernel_release(type: str, kind: str) -> int:
    """Like ``first_release``, for the operator with quantized tensors of ``kind``."""
    newest = 0
    for types, release in spec(type).measured.items():
        kinds = {kind for kind in re.split("[,>]", types) if kind.endswith("q")} - {"int32q", "int64q"}
        weights = {"int8q"} if "int16q" in kinds else set()
        if kinds - weights == {f"{kind}q"}:
            newest = max(newest, release)
    return newest


def types_of(operator: Operator) -> str:
    """Returns the element types of an operator: "int8q,int32q>int8q", q where a tensor is quantized.

    Consecutive tensors of one type appear once.
    """
    sides = (operator.inputs, operator.outputs)
    inputs, outputs = ([_type(value) for value in side if value is not None] for side in sides)
    return types_text(inputs, outputs)


def types_text(inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """Returns ``types_of`` an operator with tensors of these types."""
    return ">".join(",".join(name for name, _ in groupby(side)) for side in (inputs, outputs))


def _type(value: Value) -> str:
    return name_of(value.dtype) + "q" * (value.quantization is not None)
