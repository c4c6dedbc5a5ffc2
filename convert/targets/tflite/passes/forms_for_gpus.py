"""TFLite: other forms of what LiteRT's GPU accelerator computes wrongly, for which a processor needs as long.

Each was seen in LiteRT 2.3: ``tests/models/test_litert_gpu.py`` compares the forms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.lowering.names import Names
from tmconvert.lowering.rewriting import names_of_values, producers
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.idioms.tflite import has_odd_groups, is_misread, pooling_scheme
from tmconvert.targets.tflite.operators import spec

# operators, by their names
_PADS = "PAD PADV2"
_MERGED = "ADD MUL"
_ELEMENTWISE = "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE POW"
MOST_DENSE = 16  # channels, up to which a convolution without groups takes as long


class _Graph(NamedTuple):
    makers: Mapping[int, Operator]
    uses: Mapping[int, int]
    outputs: frozenset[int]
    names: Names

    def constant(self, like: Value, data: np.ndarray) -> Value:
        return Value(self.names.free(like.name), data.dtype, data.shape, data)


def choose_forms_for_gpus(graph: TargetGraph) -> PassRecord:
    """Rewrite operators in place. Those that others do not need any more are removed."""
    record = PassRecord("forms_for_gpus")
    outputs = frozenset(id(value) for value in graph.outputs)
    around = _Graph(producers(graph), graph.use_counts(), outputs, names_of_values(graph))
    operators: list[Operator] = []
    known: dict[int, Value] = {}
    for operator in graph.operators:
        operator.inputs = [known.get(id(value), value) for value in operator.inputs]
        product = _known_product(operator, around)
        if product is not None:
            known[id(operator.outputs[0])] = product
            record.did(operator, "is a constant now, which GPUs do not multiply")
            continue
        is_float = bool(operator.inputs) and all(
            value is None or value.is_constant or value.dtype == np.float32 for value in operator.inputs
        )
        made = (rule(operator, around) for rule in (_average, _dense, _top, _elementwise) if is_float)
        new = next(filter(None, made), None)
        operators += [operator] if new is None else new
        if new is not None:
            record.did(operator, f"is computed by {' and '.join(each.type for each in new)} on GPUs, too")
    uses = {id(value) for operator in operators for value in operator.inputs} | outputs
    graph.operators = [
        each for each in operators if each.type not in _PADS.split() or id(each.outputs[0]) in uses
    ]
    return record


def _known_product(operator: Operator, graph: _Graph) -> Value | None:
    """Returns the product of constants, such as the first state of a recurrent layer and its weights."""
    arrays = [None if value is None else value.data for value in operator.inputs]
    result = operator.outputs[0]
    if operator.type != "FULLY_CONNECTED" or id(result) in graph.outputs or is_symbolic(result.shape):
        return None
    x, weight, bias = (*arrays, None)[:3]
    is_plain = operator.attributes.get("fused_activation_function", "NONE") == "NONE"
    if (
        x is None
        or weight is None
        or not is_plain
        or (bias is None and operator.inputs[2:] not in ([], [None]))
    ):
        return None
    data = x.reshape(-1, weight.shape[1]) @ weight.T + (0 if bias is None else bias)
    return graph.constant(result, data.astype(result.dtype).reshape(result.shape))


def _average(operator: Operator, graph: _Graph) -> list[Operator] | None:
    """A PAD before an average is merged with it, and the average then counts the padding no more.

    A depthwise convolution with equal weights does, and takes the amounts of PAD as its own where SAME has
    them.
    """
    x, result = operator.inputs[0], operator.outputs[0]
    pad = None if x is None else graph.makers.get(id(x))
    if operator.type != "AVERAGE_POOL_2D" or pad is None or pad.type not in _PADS.split():
        return None
    if x is None or is_symbolic((x.shape, result.shape)):
        return None
    attributes: dict[str, Any] = dict(operator.attributes)
    window: tuple[int, int] = attributes.pop("filter_height"), attributes.pop("filter_width")
    stride: tuple[int, int] = attributes["stride_h"], attributes["stride_w"]
    if graph.uses[id(x)] == 1 and attributes["padding"] == "VALID" and _pads_zeros(pad):
        amounts, given = pad.inputs[1], pad.inputs[0]
        assert amounts is not None and amounts.data is not None and given is not None
        (_, _), (top, _), (left, _), (_, _) = amounts.data.tolist()
        before, size, places = (top, left), given.shape[1:3], result.shape[1:3]
        after = [(places[i] - 1) * stride[i] + window[i] - size[i] - before[i] for i in (0, 1)]
        if pooling_scheme(size, places, stride, before, after) == "SAME":
            x, attributes["padding"] = given, "SAME"
    weight = graph.constant(result, np.full((1, *window, x.shape[3]), 1 / math.prod(window), np.float32))
    bias = graph.constant(result, np.zeros(x.shape[3], np.float32))
    attributes |= {"depth_multiplier": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    return [replace(operator, type="DEPTHWISE_CONV_2D", inputs=[x, weight, bias], attributes=attributes)]


def _pads_zeros(pad: Operator) -> bool:
    """Whether a padding is of zeros around H and W."""
    amounts = pad.inputs[1]
    if amounts is None or amounts.data is None or amounts.data.shape != (4, 2):
        return False
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    is_zero = len(pad.inputs) < 3 or (value is not None and value.data is not None and not value.data.any())
    return is_zero and not amounts.data[[0, 3]].any()


def _dense(operator: Operator, graph: _Graph) -> list[Operator] | None:
    """Groups of few channels are wrong, or abort; weights between all channels are zero between groups."""
    if operator.type != "CONV_2D":
        return None
    x, weight, *rest = operator.inputs
    if x is None or weight is None or weight.data is None or is_symbolic(x.shape[-1]):
        return None
    channels, (filters, *window, part) = x.shape[-1], weight.shape
    if max(channels, filters) > MOST_DENSE or not has_odd_groups(x.shape, weight.shape):
        return None
    groups = channels // part
    data = np.zeros((groups, filters // groups, *window, groups, part), weight.dtype)
    for group, own in enumerate(np.split(weight.data, groups)):
        data[group, ..., group, :] = own
    whole = graph.constant(weight, data.reshape(filters, *window, channels))
    return [replace(operator, inputs=[x, whole, *rest])]


def _top(operator: Operator, graph: _Graph) -> list[Operator] | None:
    """The largest along an axis whose size 4 does not divide are wrong, or abort; minus infinity fills it."""
    x = operator.inputs[0]
    if operator.type != "TOPK_V2" or x is None or x.is_constant or is_symbolic(x.shape):
        return None
    if x.shape[-1] % 4 == 0:
        return None
    width = -(-x.shape[-1] // 4) * 4
    low = graph.constant(x, np.full((*x.shape[:-1], width - x.shape[-1]), -np.inf, np.float32))
    filled = Value(graph.names.free(x.name), x.dtype, (*x.shape[:-1], width))
    attributes: dict[str, Any] = {"axis": len(x.shape) - 1, "fused_activation_function": "NONE"}
    name = graph.names.free(operator.name)
    return [
        Operator("CONCATENATION", [x, low], [filled], dict(attributes), name, operator.source),
        replace(operator, inputs=[filled, *operator.inputs[1:]]),
    ]


def _elementwise(operator: Operator, graph: _Graph) -> list[Operator] | None:
    if operator.type not in _ELEMENTWISE.split():
        return None
    shapes = [value.shape for value in operator.inputs if value is not None]
    for place, value in enumerate(operator.inputs):
        other = operator.inputs[1 - place]
        if value is None or other is None or value.data is None or other.is_constant:
            continue
        if is_misread(value.shape, shapes):
            return _reshaped(operator, place, graph)
        type, inverse = ("SUB", np.negative) if operator.type == "ADD" else ("DIV", np.reciprocal)
        if operator.type in _MERGED.split() and _hides(other, value, graph):
            with np.errstate(all="ignore"):
                data = inverse(value.data)
            is_normal = type == "SUB" or bool(np.all(np.abs(data) >= np.finfo(np.float32).tiny))
            if np.isfinite(data).all() and is_normal:
                return [replace(operator, type=type, inputs=[other, graph.constant(value, data)])]
    return None


def _reshaped(operator: Operator, place: int, graph: _Graph) -> list[Operator]:
    """A RESHAPE of a constant that has one row more is read in the right order."""
    value = operator.inputs[place]
    assert value is not None and value.data is not None
    whole = graph.constant(value, value.data[np.newaxis])
    shape = graph.constant(value, np.array(value.shape, np.int32))
    rows = Value(graph.names.free(value.name), value.dtype, value.shape)
    inputs = list(operator.inputs)
    inputs[place] = rows
    attributes = {"new_shape": list(value.shape)}
    name = graph.names.free(operator.name)
    return [
        Operator("RESHAPE", [whole, shape], [rows], dict(attributes), name, operator.source),
        replace(operator, inputs=inputs),
    ]


def _hides(x: Value, constant: Value, graph: _Graph) -> bool:
    """Whether a constant is merged into the weights of a product that is an output, which is then lost."""
    maker = graph.makers.get(id(x))
    if maker is None or id(x) not in graph.outputs or graph.uses[id(x)] != 2:
        return False
    return spec(maker.type).weights is not None and math.prod(constant.shape[:-1]) == 1
