"""Hard gates, relu6(x + 3) / 6 and x times it, as ADD and MUL with QParams for the clamp.

The result of ADD and RELU6 is in [0, 6] for every x: with a scale for exactly that range ADD saturates at
both ends, and the following product only rescales. A lookup table would be exact, but NPUs and GPUs do not
run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tmconvert.ir.types import QParams
from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.integer.qparams import activation_qparams

_HIGHEST = 6.0  # of RELU6
# Steps of the result that one of the clamp may be, as for kernels of a fixed scale.
_COARSER = 1.5
_PARAMETERS = {
    "int8": QParams("int8", (float(np.float32(_HIGHEST / 255)),), (-128,), -128, 127),
    "int16": QParams("int16", (float(np.float32(_HIGHEST / 32767)),), (0,), -32768, 32767, symmetric=True),
}
# of a clamp that is divided by 6
_GATE = QParams("int16", (1 / 32768,), (0,), -32768, 32767, symmetric=True)


def quantize_gates(graph: TargetGraph, kind: IntegerType) -> TargetGraph:
    """Returns a copy of ``graph`` with QParams for the clamps of such gates."""
    operators = [each for operator in graph.operators for each in _multiply_gate(operator, graph, kind)]
    users: dict[int, list[Operator]] = {}
    for operator in operators:
        for value in operator.inputs:
            users.setdefault(id(value), []).append(operator)
    outputs = {id(value) for value in graph.outputs}
    changed = {}
    for operator in operators:
        value = operator.outputs[0]
        if not _is_clamp(operator, kind) or id(value) in outputs:
            continue
        all_qparams = [_clamp_qparams(user, value, kind) for user in users.get(id(value), [])]
        found = {qparams.dtype: qparams for qparams in all_qparams if qparams is not None}
        if len(found) == 1 and None not in all_qparams:
            made = replace(value, qparams=next(iter(found.values())))
            changed[id(value)] = graph.inherit_origin(made, value)
    if not changed and operators == graph.operators:
        return graph
    return replace(graph, operators=[_with(operator, changed) for operator in operators])


def _qparams(value: Value | None, kind: IntegerType) -> QParams | None:
    """Returns the source's QParams, in the file's type."""
    if value is None or value.qparams is None or value.qparams.inferred:
        return None
    return activation_qparams(value.qparams, kind)


def _is_clamp(operator: Operator, kind: IntegerType) -> bool:
    """Whether this is relu6 of a quantized tensor and a constant, without QParams in the source."""
    is_fused = operator.attributes.get("fused_activation_function") == "RELU6"
    if operator.type != "ADD" or not is_fused or operator.outputs[0].qparams is not None:
        return False
    computed = [value for value in operator.inputs if value is not None and not value.is_constant]
    return len(computed) == 1 and _qparams(computed[0], kind) is not None


def _clamp_qparams(operator: Operator, clamp: Value, kind: IntegerType) -> QParams | None:
    """Returns the QParams of a clamp that is multiplied by a constant; None if they would be too coarse."""
    result = _qparams(operator.outputs[0], kind)
    other = next((value for value in operator.inputs if value is not clamp), None)
    if operator.type != "MUL" or result is None or other is None or other.data is None:
        return None
    if np.size(other.data) != 1:
        return None
    made, factor = _PARAMETERS[result.dtype], abs(float(np.reshape(other.data, -1)[0]))
    is_fine = result.dtype == "int16" or made.scale[0] * factor <= _COARSER * result.scale[0]
    return made if is_fine else None


def _multiply_gate(operator: Operator, graph: TargetGraph, kind: IntegerType) -> Iterator[Operator]:
    """Replaces HARD_SWISH in int16, which has no kernel, by x times its gate."""
    x, result = operator.inputs[0] if operator.inputs else None, operator.outputs[0]
    all_qparams = _qparams(x, kind), _qparams(result, kind)
    if operator.type != "HARD_SWISH" or any(
        qparams is None or qparams.dtype != "int16" for qparams in all_qparams
    ):
        yield operator
        return
    assert x is not None
    names = Names()
    names.take(value.name for value in graph.inputs)
    names.take(value.name for each in graph.operators for value in each.outputs)

    def made(part: str, qparams: QParams | None = None) -> Value:
        return Value(names.free(f"{result.name}_{part}"), result.dtype, result.shape, qparams=qparams)

    def number(part: str, value: float) -> Value:
        return Value(names.free(f"{result.name}_{part}"), result.dtype, (), np.array(value, result.dtype))

    clamp, gate = made("clamp"), made("gate", _GATE)
    relu6 = {"fused_activation_function": "RELU6"}
    yield replace(operator, type="ADD", inputs=[x, number("three", 3)], outputs=[clamp], attributes={**relu6})
    yield replace(operator, type="MUL", inputs=[clamp, number("sixth", 1 / 6)], outputs=[gate], attributes={})
    yield replace(operator, type="MUL", inputs=[x, gate], outputs=[result], attributes={})


def _with(operator: Operator, changed: Mapping[int, Value]) -> Operator:
    inputs = [value if value is None else changed.get(id(value), value) for value in operator.inputs]
    outputs = [changed.get(id(value), value) for value in operator.outputs]
    return replace(operator, inputs=inputs, outputs=outputs)
