"""Replaces averages by products where these are more accurate.

An average pooling whose result has other QParams than its operand becomes a depthwise convolution with equal
weights, which rounds once; the kernel of average pooling has the same QParams for both, so that a
requantization would follow. An average over all positions and a following matrix product are one product.

The source does not round the average; in eight bits that rounding would be the largest error. W mean(x) is
the product of [W W ... W] / positions with x, whose integers are those of W: exact, for weights of moderate
size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.rewriting import producers
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite.integer.resolve import ResolvedGraph

_MOST = 1 << 18  # elements of the longer matrix


def fold_averages(graph: TargetGraph) -> TargetGraph:
    """Returns a copy of ``graph`` with averages as products where these are more accurate."""
    makers = producers(graph)
    uses = graph.use_counts()
    replaced: dict[int, list[Operator]] = {}
    for operator in graph.operators:
        if operator.type != "FULLY_CONNECTED" or operator.outputs[0].qparams is None:
            continue
        chain = _chain(operator, makers, uses)
        if chain is not None:
            replaced |= {id(gone): [] for gone in chain} | {id(operator): _product(operator, chain[-1])}
    if not replaced:
        return graph
    operators = [new for operator in graph.operators for new in replaced.get(id(operator), [operator])]
    return replace(graph, operators=operators)


def convolve_averages(resolved: ResolvedGraph) -> TargetGraph:
    """Returns a copy of the graph with average pooling as convolutions where it changes QParams."""
    graph = resolved.graph
    if not any(operator.type == "AVERAGE_POOL_2D" for operator in graph.operators):
        return graph
    operators = [
        _depthwise(operator) if _changes_qparams(operator, resolved.all_qparams) else operator
        for operator in graph.operators
    ]
    return graph if operators == graph.operators else replace(graph, operators=operators)


def _changes_qparams(operator: Operator, all_qparams: Mapping[Value, QParams]) -> bool:
    """Whether this is an average over full windows that has other QParams than its operand."""
    x = operator.inputs[0] if operator.type == "AVERAGE_POOL_2D" else None
    if x is None or operator.attributes.get("padding") != "VALID":
        return False
    given, own = all_qparams.get(x), all_qparams.get(operator.outputs[0])
    return given is not None and own is not None and given.dtype == own.dtype and given != own


def _depthwise(average: Operator) -> Operator:
    """Returns a depthwise convolution with equal weights."""
    attributes, x = dict(average.attributes), average.inputs[0]
    assert x is not None
    window = [attributes.pop("filter_height"), attributes.pop("filter_width")]
    data = np.full((1, *window, x.shape[3]), 1 / math.prod(window), np.float32)  # type: ignore[arg-type]
    scales = (float(np.float32(data.flat[0] / np.float32(127))),) * x.shape[3]
    qparams = QParams(
        "int8_narrow", scales, (0,) * x.shape[3], -127, 127, 3, symmetric=True, source="average"
    )
    weight = Value(f"{average.outputs[0].name}_equal", data.dtype, data.shape, data, qparams=qparams)
    none = np.zeros(x.shape[3], np.float32)
    bias = Value(f"{average.outputs[0].name}_none", none.dtype, none.shape, none)
    attributes |= {"depth_multiplier": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    return replace(average, type="DEPTHWISE_CONV_2D", inputs=[x, weight, bias], attributes=attributes)


def _chain(product: Operator, makers: dict[int, Operator], uses: dict[int, int]) -> list[Operator] | None:
    """Returns the operators from the average to a product, the average last."""
    chain: list[Operator] = []
    value, weight = product.inputs[0], product.inputs[1]
    while value is not None and id(value) in makers and uses[id(value)] == 1:
        operator = makers[id(value)]
        chain.append(operator)
        if value.qparams is not None and not value.qparams.inferred:
            return None
        if _is_average(operator):
            return chain if _fits(operator, weight) else None
        value = operator.inputs[0]
        if operator.type != "RESHAPE" or value is None or value.shape[-1] != operator.outputs[0].shape[-1]:
            return None
    return None


def _fits(average: Operator, weight: Value | None) -> bool:
    x = average.inputs[0]
    if x is None or weight is None or weight.data is None or weight.shape[1] != x.shape[3]:
        return False
    return bool(weight.data.size * x.shape[1] * x.shape[2] <= _MOST)


def _is_average(operator: Operator) -> bool:
    """Whether it averages H and W of all channels, without a fused activation."""
    x = operator.inputs[0]
    if (
        x is None
        or len(x.shape) != 4
        or operator.attributes.get("fused_activation_function", "NONE") != "NONE"
    ):
        return False
    if not all(isinstance(extent, int) for extent in x.shape):
        return False
    if operator.type == "MEAN":
        axes = operator.inputs[1]
        return axes is not None and axes.data is not None and sorted(axes.data.reshape(-1) % 4) == [1, 2]
    window = operator.attributes.get("filter_height"), operator.attributes.get("filter_width")
    return (
        operator.type == "AVERAGE_POOL_2D"
        and window == x.shape[1:3]
        and operator.outputs[0].shape[1:3] == (1, 1)
        and operator.attributes.get("padding") == "VALID"
    )


def _product(product: Operator, average: Operator) -> list[Operator]:
    x, weight = average.inputs[0], product.inputs[1]
    assert x is not None and weight is not None and weight.data is not None
    batch, height, width, channels = x.shape
    places = height * width
    row = Value(f"{average.outputs[0].name}_places", x.dtype, (batch, places * channels), qparams=x.qparams)
    sizes = np.array(row.shape, np.int32)
    shape = Value(f"{row.name}_shape", sizes.dtype, sizes.shape, sizes)
    data = np.tile(weight.data, (1, places)) / np.float32(places)
    qparams = None if weight.qparams is None else _divide_scales(weight.qparams, places)
    matrix = Value(f"{weight.name}_places", data.dtype, data.shape, data, qparams=qparams)
    flat = Operator(
        "RESHAPE", [x, shape], [row], {"new_shape": list(row.shape)}, f"{average.name}/places", average.source
    )
    result = product.outputs[0]
    options = dict(product.attributes)
    if len(result.shape) != 2:
        return [flat, *_reshape_product(product, row, matrix, options)]
    return [flat, replace(product, inputs=[row, matrix, *product.inputs[2:]], attributes=options)]


def _reshape_product(product: Operator, row: Value, matrix: Value, options: dict[str, Any]) -> list[Operator]:
    """Returns a product whose result has additional axes of extent 1."""
    result = product.outputs[0]
    flat = replace(result, name=f"{result.name}_row", shape=(row.shape[0], result.shape[-1]))
    sizes = np.array(result.shape, np.int32)
    shape = Value(f"{result.name}_shape", sizes.dtype, sizes.shape, sizes)
    options["keep_num_dims"] = False
    return [
        replace(product, inputs=[row, matrix, *product.inputs[2:]], outputs=[flat], attributes=options),
        Operator(
            "RESHAPE", [flat, shape], [result], {"new_shape": list(result.shape)}, f"{product.name}/shape"
        ),
    ]


def _divide_scales(qparams: QParams, places: int) -> QParams:
    return replace(qparams, scale=tuple(float(np.float32(scale / places)) for scale in qparams.scale))
