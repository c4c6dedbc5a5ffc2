"""Error bounds of TFLite's integer kernels beyond rounding.

Measured over all integers and many QParams, in LiteRT 2.3 (tests/targets/tflite/test_integer_kernels.py
checks it): all but these are within 1.6 steps. SOFTMAX in int16 reads each exponential from a table of 513
entries that is up to two steps off, and their sum likewise; TANH and LOGISTIC in int16 have another, coarser
way for scales that are powers of two.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.resizing import linear_matrix
from tmconvert.symbolics.traits import Distribution, FixedRange, Interpolates, SelfGated, Trait
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.integer.resizes import int16_matrix, kernel_matrix, needs_products
from tmconvert.targets.tflite.operators import spec
from tmconvert.verification.integer_rules import Slack

_STEP = 2.0**-15  # of the results of these kernels in int16


def _slack_in_int16(operator: str) -> float:
    """Returns the error of the int16 kernel beyond rounding."""
    kernel = spec(operator).integer
    assert kernel is not None
    return kernel.slack["int16"] * _STEP


def _softmax(expr: CallFunction, operands: list[object], result: np.ndarray, step: float) -> np.ndarray:
    """Error of softmax: two steps of each e, and as many of their sum."""
    axis = expr.kwargs["dim"]
    largest, count = np.max(result, axis=axis, keepdims=True, initial=0), result.shape[axis]
    return np.asarray((largest * (2 + 2 * count * result) + 1) * _STEP)


def _curve(expr: CallFunction, operands: list[object], result: np.ndarray, step: float) -> float:
    """Error of LOGISTIC or TANH."""
    fixed = trait_of(expr, FixedRange)
    if fixed is None or not fixed.in_int16:
        return 0.0
    return _LOGISTIC if fixed.low == 0 else _TANH


def _silu(expr: CallFunction, operands: list[Any], result: np.ndarray, step: float) -> np.ndarray:
    """Error of a product with LOGISTIC."""
    return np.asarray(np.abs(operands[0]) * _LOGISTIC)


def _resized(
    expr: CallFunction, operands: list[Any], result: np.ndarray, step: float, kind: IntegerType
) -> Any:
    """Error of resized pixels due to fixed-point positions, or rounded weights, as in the file."""
    x, align_corners = operands[0].astype(np.float64), bool(expr.kwargs.get("align_corners"))
    if expr.kwargs.get("scales") is not None:
        return 0.0
    sizes = list(zip(x.shape[2:], expr.kwargs["output_size"], strict=True))
    in_products = kind == "int16" and needs_products(sizes, align_corners)
    matrix = int16_matrix if in_products else kernel_matrix
    moved, right = (
        np.einsum("nchw,ah,bw->ncab", x, *(made(*size, align_corners) for size in sizes), optimize=True)
        for made in (matrix, linear_matrix)
    )
    return np.abs(moved - right) + (_PRODUCT * step if in_products else 0.0)


_LOGISTIC, _TANH = _slack_in_int16("LOGISTIC"), _slack_in_int16("TANH")
_PRODUCT = 1.5  # steps, of what is between two products: its multiplier has fifteen bits
# By the trait of a call and the type of its result: how much further off all elements, or each, may be.
# Given are the call, its operands, what it gives for them, and the step of the first of them.
_SLACK: dict[tuple[type[Trait], str], Slack] = {
    (Distribution, "int16"): _softmax,
    (SelfGated, "int16"): _silu,
    (FixedRange, "int16"): _curve,
    (Interpolates, "int8"): partial(_resized, kind="int8"),
    (Interpolates, "int16"): partial(_resized, kind="int16"),
}


def slack_of(expr: CallFunction, kind: str) -> Slack | None:
    """Returns a bound of a kernel's error beyond rounding; None where there is none."""
    return next(
        (slack for (trait, of), slack in _SLACK.items() if of == kind and has_trait(expr, trait)), None
    )
