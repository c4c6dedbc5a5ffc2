"""Every op with every element type that its signature declares, on every target: right or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.opsets import skip_for_old_runtime
from tests.symbolics.ops.harness import (
    NEWEST_OPSET,
    TFLITE_RUNTIME,
    Const,
    layouts_of,
    prepared,
    reference,
    run_lowered,
    store_as,
)
from tests.symbolics.ops.samples import SAMPLES, Sample
from tmconvert.conversion.support import op_support
from tmconvert.errors import VerificationError
from tmconvert.ir import InternalGraph
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, NHWC_TO_NCHW
from tmconvert.symbolics.op import ANY_DTYPE, INDICES, Attribute, Tensor, Tensors
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.results import fits
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.options import OLDEST_OPSET
from tmconvert.targets.registry import lower
from tmconvert.verification.compare import check


class Case(NamedTuple):
    dtype: str
    target: str
    version: int
    sample: int
    delegates: bool

    def __str__(self) -> str:
        return "{} on {} {}, sample {}, delegates={}".format(*self)


VERSIONS = [
    *(("onnx", opset) for opset in sorted({7, 11, 13, 17, NEWEST_OPSET})),
    ("tflite", TFLITE_RUNTIME),
    ("caffe", 0),
]
# where every sample is tried; the versions between see the first sample only
ENDS = (OLDEST_OPSET, NEWEST_OPSET, TFLITE_RUNTIME, 0)
# what ONNX Runtime says of a valid operator for which it has no kernel
MISSING = ("Could not find an implementation", "NOT_IMPLEMENTED", "does not support double yet")


def dtypes_of(name: str) -> tuple[str, ...]:
    """What all tensor arguments may be: bound by the first that may be of several types."""
    arguments = [each for each in catalogue()[name].args if isinstance(each, (Tensor, Tensors))]
    return next((each for each in arguments if len(each.dtypes) > 1), arguments[0]).dtypes


def small(array: np.ndarray, dtype: str) -> np.ndarray:
    """Small positive integers in the shape of ``array``: no quotient or root of them is undefined."""
    numbers = np.arange(array.size).reshape(array.shape) * 3 % 5 + 1
    return np.asarray(numbers % 2 == 0 if dtype == "bool" else numbers, dtype)


# what arguments that say where something goes may be; they keep what they say
PLACES = {*INDICES, "bool"}
# functions of numbers between -1 and 1, or that tell no others apart
FUNCTIONS = (
    *("asin", "acos", "atanh", "erfinv", "logit", "special_ndtri", "quantile", "nanquantile"),
    *("lstm", "gru", "rnn_tanh", "rnn_relu"),
)
UNIT = {f"aten::{name}" for name in FUNCTIONS}
# the argument whose elements ascend
ASCENDING = {"aten::bucketize": 1, "aten::searchsorted": 0}
# in the middle of the small integers
BOUNDS = {
    "aten::clamp": {"min": 2, "max": 4},
    "aten::hardtanh": {"min_val": 2, "max_val": 4},
    "aten::threshold": {"threshold": 2},
}


def defaults_of(name: str) -> dict[str, Any]:
    attributes = (each for each in catalogue()[name].args if isinstance(each, Attribute))
    given = {each.name: each.default for each in attributes if not each.is_required}
    return {key: value for key, value in given.items() if value is not None}


def fitting(value: float, dtype: str) -> float:
    """The number, or one like it that the type has."""
    if fits(value, np.dtype(dtype)):
        return value
    return 1 if dtype == "bool" else abs(value)


def ascending(value: np.ndarray | Const) -> np.ndarray | Const:
    return Const(ascending(value.array)) if isinstance(value, Const) else np.sort(value)


def samples_of(name: str, dtype: str, constant: int | None) -> list[Sample]:
    """The op's samples with other values; ``constant`` is the operand to be a constant of the file."""

    def leaf(value: Any) -> Any:
        if isinstance(value, Const):
            return Const(leaf(value.array))
        if value is None:
            return None
        return np.asarray(small(value, dtype) / np.array(8, dtype)) if name in UNIT else small(value, dtype)

    if name == "aten::to":
        return [Sample([small(np.zeros((2, 5)), dtype)], {"dtype": other}) for other in ANY_DTYPE]
    result = []
    for sample in SAMPLES[name]:
        args = [
            _with_type(arg, argument, dtype, leaf)
            for argument, arg in zip(TENSORS[name], sample.args, strict=False)
        ]
        if name in ASCENDING:
            args[ASCENDING[name]] = map_leaves(ascending, args[ASCENDING[name]])
        if name in ("aten::linalg_cholesky_ex", "aten::linalg_inv"):  # positive definite matrices
            args = [np.eye(args[0].shape[-1], dtype=dtype) + args[0] @ np.swapaxes(args[0], -1, -2)]
        if name == "tm::geqp3":  # columns of other lengths: rounding decides between equal ones
            args = [args[0] * np.arange(1, args[0].shape[-1] + 1, dtype=dtype)]
        if constant is not None and isinstance(args[constant], np.ndarray):
            args[constant] = Const(args[constant] // 2 + 1)
        bounds = BOUNDS.get(name, {})
        given = defaults_of(name) | sample.attributes
        attributes = {key: bounds.get(key, value) for key, value in given.items()}
        if isinstance(attributes.get("value"), float):
            attributes["value"] = 2.0
        for key in {"value", "alpha"} & set(attributes):
            attributes[key] = fitting(attributes[key], dtype)
        if dtype == "bool" and attributes.get("reduce") == "mean":  # there is none
            continue
        result.append(replace(sample, args=args, attributes=attributes))
    return result


def _with_type(arg: Any, argument: Tensor | Tensors, dtype: str, leaf: Callable[[Any], Any]) -> Any:
    """``arg`` with other values of ``dtype``, or as it is if that cannot be its type; boxes stay boxes."""
    if PLACES.issuperset(argument.dtypes) or dtype not in argument.dtypes:
        return arg
    return arg.astype(dtype) if argument.name == "boxes" else map_leaves(leaf, arg)


def stored(graph: InternalGraph, arrays: list[np.ndarray], *, to_file: bool) -> list[np.ndarray]:
    nodes, order = (graph.inputs, NCHW_TO_NHWC) if to_file else (graph.outputs, NHWC_TO_NCHW)
    return [
        np.ascontiguousarray(array.transpose(order)) if getattr(node, "layout", None) == "nhwc" else array
        for node, array in zip(nodes, arrays, strict=True)
    ]


def outcome(name: str, sample: Sample, target: str, version: int, *, delegates: bool) -> str:
    """ "right", "refused: ...", "no kernel"; or what went wrong."""
    graph = prepared(target, version, name, sample.args, sample.attributes)
    if target == "tflite":
        store_as(graph, layouts_of(graph)[0])
    lowering = lower(graph, catalogue(), target, version)
    if lowering.unsupported:
        reasons = "; ".join(each.reason for each in lowering.unsupported)
        return f"refused: {reasons}" if reasons else "refused without a reason"
    inputs: list[np.ndarray] = []
    map_leaves(lambda leaf: inputs.append(leaf) if isinstance(leaf, np.ndarray) else None, sample.args)
    feeds = dict(zip(lowering.graph.input_names, stored(graph, inputs, to_file=True), strict=True))
    try:
        results = run_lowered(lowering, feeds, delegates=delegates)
        expected = reference(name, sample.args, sample.attributes)
        actual = stored(graph, results, to_file=False)
        check(actual, expected, ["y"] * len(expected))
        types = [array.dtype for array in actual]
        if target != "caffe" and types != [array.dtype for array in expected]:
            return f"gives {types}"
        return "right"
    except VerificationError as error:
        if target == "onnx" and any(text in error.message for text in MISSING):
            return "no kernel"
        return f"{error.code} {error.message}"
    except Exception as error:
        return f"{type(error).__name__} {error}"


def _is_gap(name: str, case: Case, result: str) -> bool:
    """Whether ONNX lacks a type that can be cast: nothing holds int64, or float64, but itself.

    Below the opset at which the op begins it is refused by its name.
    """
    if case.target != "onnx" or "onnx" in catalogue()[name].reasons:
        return False
    support = op_support(catalogue()[name], "onnx", case.version)
    if support.support == "no":
        return result != f"refused: no ONNX symbolic for {name} at opset {case.version}"
    return result != "right" and case.dtype not in ("int64", "float64")


def _holds_graphs(name: str) -> bool:
    """Whether attributes are graphs: of what types its operands are is theirs to say."""
    attributes = [value for sample in SAMPLES[name] for value in sample.attributes.values()]
    return any(isinstance(value, InternalGraph) for value in attributes)


TENSORS = {
    name: [each for each in op.args if isinstance(each, (Tensor, Tensors))]
    for name, op in catalogue().items()
}
CONSTANTS = ["aten::add", "aten::sub", "aten::mul", "aten::div", "aten::maximum", "aten::minimum"]


@pytest.mark.one_in(120)
@pytest.mark.parametrize(
    ("name", "constant"),
    [
        *((name, None) for name in catalogue() if TENSORS[name] and not _holds_graphs(name)),
        *((name, i) for name in CONSTANTS for i in (0, 1)),
    ],
)
def test_every_element_type_is_right_or_refused(name: str, constant: int | None) -> None:
    """``constant`` is the operand that is a constant of the file, if one is."""
    skip_for_old_runtime(name)
    outcomes = {
        Case(dtype, target, version, i, delegates): outcome(
            name, sample, target, version, delegates=delegates
        )
        for dtype in dtypes_of(name)
        for i, sample in enumerate(samples_of(name, dtype, constant))
        if any(isinstance(leaf, np.ndarray) for leaf in leaves(list(sample.args)))
        for target, version in VERSIONS
        if sample.suits(target, version) and (i == 0 or version in ENDS)
        for delegates in ((True, False) if target == "tflite" and i == 0 else (True,))
    }
    wrong = {
        case: result
        for case, result in outcomes.items()
        if result not in ("right", "no kernel") and not result.startswith("refused: ")
    }
    wrong |= {case: result for case, result in outcomes.items() if _is_gap(name, case, result)}
    assert not wrong, "\n".join(f"{case}: {result}" for case, result in wrong.items())
    assert "right" in outcomes.values() or set(catalogue()[name].reasons) == set(TARGETS)
