"""Argument conversions of TFLite's adapters: those of all frontends, and axes, layouts and activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.arguments import axis_of, known_numbers, rank, scalar, stacked, static_ints
from tmconvert.frontends.shared.arguments import like as number
from tmconvert.frontends.tflite.layout import like, value_of
from tmconvert.ir import Constant, TensorNode
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.fake_quant import with_qparams

__all__ = [
    "PREFIX", "activated", "axes_in", "check_rank", "known_numbers", "number", "permuted", "scalar",
    "stacked", "without_axes",
]  # fmt: skip
PREFIX = "tflite."


def axes_in(g: Emitter, x, axes) -> list[int]:
    """Returns the axes that a tensor names, in ascending order."""
    return sorted({axis_of(g, x, each) for each in static_ints(g, axes, "the axes")})


def permuted(g: Emitter, x: Any, order: Sequence[int]) -> Any:
    """Permutes a tensor; of a parameter it makes another one, which keeps its quantization parameters."""
    known = g.known(x)
    if known is None or not isinstance(x, TensorNode) or not isinstance(x.expr, Constant):
        return g.call("aten::permute", x, list(order))
    array = np.transpose(known, order)
    if x.qparams is not None:
        array = with_qparams(array, x.qparams.permuted(order))
    return g.parameter(array, f"{x.expr.name or x.name}_{''.join(map(str, order))}")


def without_axes(g: Emitter, x: Any, axes: Sequence[int]) -> Any:
    """Removes axes of one element."""
    shape = g.type(x).shape
    return g.call("aten::reshape", x, [n for axis, n in enumerate(shape) if axis not in axes])


def activated(g: Emitter, result: Any, name: str) -> Any:
    """Applies a fused activation to a result, in its layout. Raises Refusal."""
    value = value_of(result)
    if name == "NONE":
        return result
    if name == "RELU_N1_TO_1":
        return like(result, g.call("aten::hardtanh", value, -1.0, 1.0))
    ops = {"RELU": "aten::relu", "RELU6": "aten::relu6", "TANH": "aten::tanh"}
    if name not in ops:
        raise Refusal(f"the fused activation {name} is not supported")
    return like(result, g.call(ops[name], value))


def check_rank(g: Emitter, x, *ranks: int) -> None:
    """Raises Refusal for a tensor of another rank."""
    if rank(g, x) not in ranks:
        raise Refusal(f"a tensor has {rank(g, x)} axes, not {' or '.join(map(str, ranks))}")
