"""Bilinear resizing in integers: the behaviour of TFLite's kernel, and matrix products as its replacement.

The kernel represents positions and their distance as multiples of 1/1024 pixel: far from the first pixel the
error may be a fourth of a pixel, unless the distance is such a multiple, as for a factor of 2. XNNPACK has an
exact kernel for int8, but none for int16. Source: LiteRT's reference ResizeBilinearInteger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value
from tmconvert.symbolics.resizing import linear_matrix
from tmconvert.targets.tflite.integer.resolve import ResolvedGraph

_ONE, _HALF = 1024, 512
_STEPS = 32767  # of 1, in the matrices
_MOST = 1 << 20  # elements of a matrix


def kernel_matrix(extent: int, outputs: int, align_corners: bool) -> np.ndarray:
    """[outputs, extent]: the kernel's weights along one axis, for half-pixel centres or aligned corners."""
    if align_corners and outputs > 1:
        distance = (_ONE * (extent - 1) + (outputs - 1) // 2) // (outputs - 1)
    else:
        distance = (_ONE * extent + outputs // 2) // outputs
    rows = np.arange(outputs)
    places = rows * distance + (0 if align_corners else distance // 2 - _HALF)
    lower = np.clip(places // _ONE, 0, extent - 1)
    upper = np.clip(-(-places // _ONE), 0, extent - 1)
    fraction = (places - lower * _ONE) / _ONE
    matrix = np.zeros((outputs, extent))
    np.add.at(matrix, (rows, lower), 1 - fraction)
    np.add.at(matrix, (rows, upper), fraction)
    return matrix


def is_exact(extent: int, outputs: int, align_corners: bool) -> bool:
    """Whether the kernel's weights are exact along an axis."""
    exact = linear_matrix(extent, outputs, align_corners)
    return bool(np.allclose(kernel_matrix(extent, outputs, align_corners), exact, rtol=0, atol=1e-9))


def int16_matrix(extent: int, outputs: int, align_corners: bool) -> np.ndarray:
    """[outputs, extent] in int16, as products use it."""
    return np.rint(linear_matrix(extent, outputs, align_corners) * _STEPS) / _STEPS


def decompose_resizes(resolved: ResolvedGraph) -> TargetGraph:
    """Returns a copy of the graph with matrix products where the int16 kernel is not exact."""
    graph = resolved.graph
    if not any(operator.type == "RESIZE_BILINEAR" for operator in graph.operators):
        return graph
    all_qparams, operators = resolved.all_qparams, []
    for operator in graph.operators:
        x = operator.inputs[0] if operator.type == "RESIZE_BILINEAR" else None
        qparams, given = all_qparams.get(operator.outputs[0]), None if x is None else all_qparams.get(x)
        if qparams is not None and given is not None and qparams.dtype == "int16" and _is_better(operator):
            operators += _products(operator, given, qparams)
        else:
            operators.append(operator)
    return graph if operators == graph.operators else replace(graph, operators=operators)


def _is_better(resize: Operator) -> bool:
    x, result = resize.inputs[0], resize.outputs[0]
    assert x is not None
    pairs = list(zip(x.shape[1:3], result.shape[1:3], strict=True))
    if not any(resize.attributes.get(name) for name in ("align_corners", "half_pixel_centers")):
        return False  # pixels counted from their corners, which no source does
    return needs_products(pairs, bool(resize.attributes.get("align_corners")))


def needs_products(pairs: Sequence[tuple[int, int]], align_corners: bool) -> bool:
    """Whether resizing between these extents needs products in int16."""
    fits = all(extent * outputs <= _MOST for extent, outputs in pairs)
    return fits and not all(is_exact(*pair, align_corners) for pair in pairs)


def _products(resize: Operator, given: QParams, qparams: QParams) -> list[Operator]:
    """Resizes height, then width, by products with [outputs, extent].

    The tensor between the two has the QParams of the operand, within whose range it is.
    """
    value, result = resize.inputs[0], resize.outputs[0]
    assert value is not None
    (batch, height, width, channels), (rows, columns) = value.shape, result.shape[1:3]
    align_corners, operators = bool(resize.attributes.get("align_corners")), list[Operator]()

    def append(type: str, inputs: list[Value], made: Value, attributes: dict[str, Attribute]) -> Value:
        operators.append(
            Operator(type, list(inputs), [made], attributes, f"/{made.name}/{type}", resize.source)
        )
        return made

    def reshape(value: Value, made: Value) -> Value:
        sizes = np.array(made.shape, np.int32)
        shape = Value(f"{made.name}_shape", sizes.dtype, sizes.shape, sizes)
        return append("RESHAPE", [value, shape], made, {"new_shape": list(made.shape)})

    sides = (
        ("rows", height, rows, batch, width * channels),
        ("columns", width, columns, batch * rows, channels),
    )
    for side, extent, outputs, many, left in sides:
        if extent == outputs:
            continue
        name = f"{result.name}_{side}"
        flat = reshape(value, Value(f"{name}_flat", value.dtype, (many, extent, left)))
        data = linear_matrix(extent, outputs, align_corners).astype(np.float32)[None]
        matrix = Value(f"{name}_matrix", data.dtype, data.shape, data)
        own = given if side == "rows" and width != columns and given.dtype == qparams.dtype else qparams
        own = replace(own, inferred=qparams.inferred, quant_min=-_STEPS - 1, quant_max=_STEPS)
        made = Value(name, value.dtype, (many, outputs, left), qparams=own)
        value = append("BATCH_MATMUL", [matrix, flat], made, {"adj_x": False, "adj_y": False})
    reshape(value, result)
    return operators
