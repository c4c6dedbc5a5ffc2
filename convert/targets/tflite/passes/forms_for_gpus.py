"""TFLite: other forms of what LiteRT's GPU accelerator computes wrongly, for which a processor needs as long.

Each was seen in LiteRT 2.3: ``tests/models/test_litert_gpu.py`` compares the forms. The facts are the rules
of ``profiles/data/litert-gpu.toml`` with the effect "wrong"; what breaks them all the same is a note of the
report.
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
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, numbers, sizes
from tmconvert.targets.tflite.alternatives.windows import without_groups
from tmconvert.targets.tflite.operators import spec

# operators, by their names
_PADS = "PAD PADV2"
_MERGED = "ADD MUL"
_ELEMENTWISE = "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE POW"
_NUMBERS = "float32 int32"
MOST_DENSE = 16  # channels, up to which a convolution without groups takes as long


class _Graph(NamedTuple):
    makers: Mapping[int, Operator]
    uses: Mapping[int, int]
    outputs: frozenset[int]
    names: Names
    splits_matrices: bool


def choose_forms_for_gpus(graph: TargetGraph, splits_matrices: bool = True) -> PassRecord:
    """Rewrite operators in place. Those that others do not need any more are removed.

    ``splits_matrices`` is false where weights are to be rounded, which are found as operands of products.
    """
    record = PassRecord("forms_for_gpus")
    outputs = frozenset(id(value) for value in graph.outputs)
    around = _Graph(producers(graph), graph.use_counts(), outputs, names_of_values(graph), splits_matrices)
    operators: list[Operator] = []
    known: dict[int, Value] = {}
    for operator in graph.operators:
        operator.inputs = [known.get(id(value), value) for value in operator.inputs]
        g = FormWriter(operator, around.names, around.makers)
        product = _known_product(g, around)
        if product is not None:
            known[id(operator.outputs[0])] = product
            record.did(operator, "is a constant now, which GPUs do not multiply")
            continue
        types = _NUMBERS if operator.type in _ELEMENTWISE.split() else "float32"
        is_known = bool(operator.inputs) and all(
            value is None or value.is_constant or str(value.dtype) in types for value in operator.inputs
        )
        new = _RULES[operator.type](g, around) if is_known and operator.type in _RULES else None
        operators += [operator] if new is None else new
        if new is not None:
            record.did(operator, f"is computed by {' and '.join(each.type for each in new)} on GPUs, too")
    uses = {id(value) for operator in operators for value in operator.inputs} | outputs
    graph.operators = [
        each for each in operators if each.type not in _PADS.split() or id(each.outputs[0]) in uses
    ]
    return record


def _known_product(g: FormWriter, graph: _Graph) -> Value | None:
    """Returns the product of constants, such as the first state of a recurrent layer and its weights."""
    operator, result = g.operator, g.operator.outputs[0]
    arrays = [None if value is None else value.data for value in operator.inputs]
    if operator.type != "FULLY_CONNECTED" or id(result) in graph.outputs or is_symbolic(result.shape):
        return None
    x, weight, bias = (*arrays, None)[:3]
    is_plain = operator.attributes.get("fused_activation_function", "NONE") == "NONE"
    has_bias = operator.inputs[2:] not in ([], [None])
    if x is None or weight is None or not is_plain or (bias is None and has_bias):
        return None
    data = x.reshape(-1, weight.shape[1]) @ weight.T + (0 if bias is None else bias)
    return g.const(data.astype(result.dtype).reshape(result.shape))


def _average(g: FormWriter, graph: _Graph) -> list[Operator] | None:
    """A PAD before an average is merged with it, and the average then counts the padding no more.

    A depthwise convolution with equal weights does, and takes the amounts of PAD as its own where SAME has
    them.
    """
    operator, x, result = g.operator, g.operator.inputs[0], g.operator.outputs[0]
    pad = None if x is None else graph.makers.get(id(x))
    if pad is None or pad.type not in _PADS.split() or x is None or is_symbolic((x.shape, result.shape)):
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
    weight = g.const(np.full((1, *window, x.shape[3]), 1 / math.prod(window), np.float32))
    bias = g.const(np.zeros(x.shape[3], np.float32))
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


def _dense(g: FormWriter, graph: _Graph) -> list[Operator] | None:
    """Groups of few channels are wrong, or abort; weights between all channels are zero between groups."""
    shape, filters = (sizes(value) for value in g.operator.inputs[:2])
    if not shape or not filters or max(shape[-1], filters[0]) > MOST_DENSE:
        return None
    return without_groups(g) if has_odd_groups(shape, filters) else None


def _top(g: FormWriter, graph: _Graph) -> list[Operator] | None:
    """The largest along an axis whose size 4 does not divide are wrong, or abort; minus infinity fills it."""
    x, shape = g.operator.inputs[0], sizes(g.operator.inputs[0])
    if x is None or x.is_constant or not shape or shape[-1] % 4 == 0:
        return None
    low = g.const(np.full((*shape[:-1], -shape[-1] % 4), -np.inf, np.float32))
    wide = (*shape[:-1], shape[-1] + low.shape[-1])
    filled = g.op("CONCATENATION", [x, low], wide, axis=len(shape) - 1, fused_activation_function="NONE")
    return [*g.operators, replace(g.operator, inputs=[filled, *g.operator.inputs[1:]])]


def _first_largest(g: FormWriter, graph: _Graph) -> list[Operator] | None:
    """Zeros fill a last axis whose size 4 does not divide, and are the largest where all are negative."""
    x, shape, axis = g.operator.inputs[0], sizes(g.operator.inputs[0]), numbers(g.operator.inputs[1])
    if x is None or not shape or not axis or axis[0] not in (-1, len(shape) - 1) or shape[-1] % 4 == 0:
        return None
    rows = math.prod(shape[:-1])
    column, place = g.reshape(x, [1, rows, shape[-1], 1]), g.const(np.array(2, np.int32))
    result, options = g.operator.outputs[0], g.operator.attributes
    return g.last_reshape(g.op("ARG_MAX", [column, place], [1, rows, 1], dtype=result.dtype, options=options))


def _image(g: FormWriter, graph: _Graph) -> list[Operator] | None:
    """A padding of several batches of rank 3 is wrong; with an axis of one it is that of images."""
    (x, amounts, *value), result = g.operator.inputs, sizes(g.operator.outputs[0])
    shape = sizes(x)
    if x is None or amounts is None or amounts.data is None or shape is None or result is None:
        return None
    if len(shape) != 3 or shape[0] == 1:
        return None
    pads = g.const(np.insert(amounts.data, 1, 0, axis=0))
    image = g.reshape(x, [shape[0], 1, *shape[1:]])
    return g.last_reshape(g.copy([image, pads, *value], [result[0], 1, *result[1:]]))


def _one_batch(g: FormWriter, graph: _Graph) -> list[Operator] | None:
    """The first of several batches alone is computed; rows of all of them are those of one image."""
    x, result = g.operator.inputs[0], sizes(g.operator.outputs[0])
    shape = sizes(x)
    if x is None or shape is None or result is None or shape[0] == 1:
        return None
    image = g.reshape(x, [1, shape[0] * shape[1], *shape[2:]])
    return g.last_reshape(g.copy([image], [1, result[0] * result[1], *result[2:]]))


def _elementwise(g: FormWriter, graph: _Graph) -> list[Operator] | None:
    operator = g.operator
    shapes = [value.shape for value in operator.inputs if value is not None]
    for place, value in enumerate(operator.inputs):
        other = operator.inputs[1 - place]
        if value is None or other is None or value.data is None or other.is_constant:
            continue
        if is_misread(value.shape, shapes) or (operator.type == "POW" and place == 0):
            return _joined(g, place, _in_rank(value, sizes(operator.outputs[0])))
        if other.dtype != np.float32:
            continue
        type, inverse = ("SUB", np.negative) if operator.type == "ADD" else ("DIV", np.reciprocal)
        if operator.type in _MERGED.split() and _hides(other, value, graph):
            with np.errstate(all="ignore"):
                data = inverse(value.data)
            is_normal = type == "SUB" or bool(np.all(np.abs(data) >= np.finfo(np.float32).tiny))
            if np.isfinite(data).all() and is_normal:
                return [replace(operator, type=type, inputs=[other, g.const(data)])]
    return None


def _matrix(g: FormWriter, graph: _Graph) -> list[Operator] | None:
    """A constant before the product is refused, but not one that is joined of two parts."""
    first, second = g.operator.inputs
    is_constant = first is not None and second is not None and not second.is_constant
    return _joined(g, 0, first.data) if first is not None and is_constant and graph.splits_matrices else None


def _in_rank(value: Value, made: tuple[int, ...] | None) -> np.ndarray | None:
    """Returns a constant in the rank of the result, with an axis of several elements where that has one."""
    if value.data is None or not made:
        return None
    array = value.data.reshape((1,) * (len(made) - value.data.ndim) + value.data.shape)
    if array.size > 1:
        return array
    axis = int(np.argmax(made))
    return np.broadcast_to(array, [made[axis] if at == axis else 1 for at in range(len(made))])


def _joined(g: FormWriter, place: int, array: np.ndarray | None) -> list[Operator] | None:
    """CONCATENATION of two parts of a constant is read in the right order, and taken as a computed operand.

    Interpreters join constants once, when they prepare a file.
    """
    if array is None or array.size < 2:
        return None
    axis = int(np.argmax(np.greater(array.shape, 1)))
    parts = [g.const(each) for each in np.split(array, [array.shape[axis] // 2], axis)]
    inputs = list(g.operator.inputs)
    options: dict[str, Any] = {"axis": axis, "fused_activation_function": "NONE"}
    inputs[place] = g.op("CONCATENATION", parts, array.shape, options=options)
    return [*g.operators, replace(g.operator, inputs=inputs)]


def _hides(x: Value, constant: Value, graph: _Graph) -> bool:
    """Whether a constant is merged into the weights of a product that is an output, which is then lost."""
    maker = graph.makers.get(id(x))
    if maker is None or id(x) not in graph.outputs or graph.uses[id(x)] != 2:
        return False
    return spec(maker.type).weights is not None and math.prod(constant.shape[:-1]) == 1


_FORMS = (
    (_ELEMENTWISE, _elementwise),
    (f"{_PADS} MIRROR_PAD", _image),
    ("ARG_MAX", _first_largest),
    ("AVERAGE_POOL_2D", _average),
    ("BATCH_MATMUL", _matrix),
    ("CONV_2D", _dense),
    ("DEPTH_TO_SPACE SPACE_TO_DEPTH", _one_batch),
    ("TOPK_V2", _top),
)
_RULES = {name: form for names, form in _FORMS for name in names.split()}
