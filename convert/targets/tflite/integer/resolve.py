"""Resolves QParams: the stage ``resolve``.

Sources annotate some tensors. Their QParams are propagated through the graph, and other results get QParams
for the range of their values (``infer_int16.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from tmconvert.ir.fake_quant import fake_quantize
from tmconvert.ir.types import QParams
from tmconvert.lowering.rewriting import producers
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.integer.infer_int16 import infer_qparams, output_only_values
from tmconvert.targets.tflite.integer.products import is_negation
from tmconvert.targets.tflite.integer.qparams import (
    RANGES,
    activation_qparams,
    fixed_qparams,
    negate_qparams,
    operands,
)
from tmconvert.targets.tflite.operators import spec

_LOWEST = float(np.finfo(np.float32).min)


class ResolvedGraph:
    """A float graph with the QParams of its inputs and results, which the stages hand on together.

    Activations are of the type ``activations``. Without ``infers`` only tensors with QParams in the source,
    or with fixed QParams of a kernel, have any. The QParams are resolved once, when a stage first reads them.
    """

    def __init__(self, graph: TargetGraph, activations: IntegerType = "int8", *, infers: bool = True) -> None:
        self.graph, self.activations, self.infers = graph, activations, infers

    @cached_property
    def all_qparams(self) -> Mapping[Value, QParams]:
        """The QParams of each input and result that has any."""
        return resolve(self.graph, self.activations, infers=self.infers)

    def replace_graph(self, graph: TargetGraph) -> ResolvedGraph:
        """Returns ``graph``, which a stage made of this one; this one if the stage changed nothing.

        The QParams of a changed graph are resolved again, since tensors get those of the operators before and
        after them.
        """
        if graph is self.graph:
            return self
        return ResolvedGraph(graph, self.activations, infers=self.infers)


def resolve(graph: TargetGraph, activations: IntegerType, *, infers: bool = True) -> dict[Value, QParams]:
    """Returns the QParams of each input and result.

    QParams are propagated through kernels that only move elements, in both directions, and through clamps to
    the operand. With ``infers`` other results get QParams for their possible range (infer_int16.py).
    """
    all_qparams = _source_qparams(graph, activations, infers)
    all_qparams |= _moved_qparams(graph, activations, all_qparams)
    positive, alone = _positive_values(graph), _used_once(graph)
    outputs = output_only_values(graph) if infers else set[Value]()
    for operator in reversed(graph.operators):
        if all(value in alone for value in operator.inputs if value is not None and not value.is_constant):
            _propagate_backward(operator, all_qparams)
    for _ in range(2):
        for operator in graph.operators:
            qparams = _negation_qparams(operator, graph, all_qparams)
            if (
                infers
                and qparams is None
                and spec(operator.type).integer is not None
                and not _keeps_qparams(operator, all_qparams)
            ):
                is_output = operator.outputs[0] in outputs
                qparams = infer_qparams(operator, all_qparams, activations, is_output, positive)
            _propagate_forward(operator, all_qparams, positive, qparams)
        for operator in reversed(graph.operators):
            _propagate_backward(operator, all_qparams)
    return all_qparams


def _source_qparams(graph: TargetGraph, activations: IntegerType, infers: bool) -> dict[Value, QParams]:
    """Returns the QParams that the source has; of those that passes inferred only int16 ones."""
    found: dict[Value, QParams] = {}
    for value in _computed_values(graph):
        own = value.qparams
        if own is None or value.dtype != np.float32:
            continue
        is_used = not own.inferred or (infers and own.dtype == "int16")
        qparams = activation_qparams(own, activations) if is_used else None
        if qparams is not None:
            found[value] = qparams
    return found


def _moved_qparams(
    graph: TargetGraph, activations: IntegerType, found: Mapping[Value, QParams]
) -> dict[Value, QParams]:
    """Returns the QParams of results that only move the elements of another one, which has lost them.

    Where two moves became one, the tensor in between that had them in the source is gone.
    """
    makers, made = producers(graph), dict[Value, QParams]()
    for operator in graph.operators:
        result = operator.outputs[0]
        own = result.qparams
        if not spec(operator.type).moves_one or result in found or own is None or not own.inferred:
            continue
        value = operator.inputs[0]
        while value is not None and id(value) in makers and value.qparams is None:
            maker = makers[id(value)]
            if not spec(maker.type).moves_one:
                qparams = activation_qparams(own, activations)
                made |= {} if qparams is None else {result: qparams}
                break
            value = maker.inputs[0]
    return made


def _keeps_qparams(operator: Operator, all_qparams: dict[Value, QParams]) -> bool:
    """Whether results have the QParams of the operands, all of them."""
    known = spec(operator.type)
    if known.moves_one:
        return True
    if known.integer is None or known.integer.relation != "same" or known.integer.is_within:
        return False
    values = operands(operator)
    found = [all_qparams.get(value) for value in values if not value.is_constant]
    if not found or found[0] is None or any(qparams != found[0] for qparams in found):
        return False
    constants = [value.data for value in values if value.data is not None]
    # what is padded with the lowest number is for maxima: that of the QParams is as good
    is_padded = operator.type == "PADV2" and all(np.max(data) <= _LOWEST for data in constants)
    return is_padded or all(np.array_equal(fake_quantize(data, found[0]), data) for data in constants)


def _negation_qparams(
    operator: Operator, graph: TargetGraph, all_qparams: Mapping[Value, QParams]
) -> QParams | None:
    """Returns the QParams of a negation that is an intermediate result; None for other operators."""
    x, result = operator.inputs[0] if operator.inputs else None, operator.outputs[0]
    own = None if x is None else all_qparams.get(x)
    is_inner = own is not None and is_negation(operator) and graph.node_of(result) is None
    return negate_qparams(own) if own is not None and is_inner else None


def _propagate_forward(
    operator: Operator, all_qparams: dict[Value, QParams], positive: set[Value], made: QParams | None
) -> None:
    """Propagates ``made``, the QParams of a result that differ from the operands'."""
    known = spec(operator.type)
    kernel = known.integer
    if kernel is None:
        return
    results = [operator.outputs[i] for i in kernel.outputs(len(operator.outputs))]
    if made is not None:
        for value in results:
            all_qparams.setdefault(value, made)
        return
    qparams = next((all_qparams[value] for value in operands(operator) if value in all_qparams), None)
    if qparams is not None and qparams.dtype in kernel.fixed:
        qparams = fixed_qparams(operator.type, qparams.dtype)
    elif (kernel.is_within or is_rectifier(operator.type)) and qparams is not None:
        qparams = _use_all_steps(qparams) if operator.inputs[0] in positive else qparams
    elif kernel.relation != "same" or not _are_known(operator, all_qparams):
        return
    if qparams is not None:
        for value in results:
            all_qparams.setdefault(value, qparams)


def _are_known(operator: Operator, all_qparams: dict[Value, QParams]) -> bool:
    """Whether no operand can exceed the ranges of the others."""
    return all(value.is_constant or value in all_qparams for value in operands(operator))


def _propagate_backward(operator: Operator, all_qparams: dict[Value, QParams]) -> None:
    known = spec(operator.type)
    is_same = known.integer is not None and known.integer.relation == "same" and not known.integer.is_within
    if known.activation is None and not is_same:  # rounding before a clamp or after it is the same
        return
    qparams = all_qparams.get(operator.outputs[0])
    if qparams is not None:
        for value in operands(operator):
            if not value.is_constant and value.dtype == np.float32:
                all_qparams.setdefault(value, qparams)


def _used_once(graph: TargetGraph) -> set[Value]:
    """Returns the values with exactly one use."""
    values = [value for operator in graph.operators for value in operator.inputs if value is not None]
    counts = Counter([*values, *graph.outputs])
    return {value for value, count in counts.items() if count == 1}


def _computed_values(graph: TargetGraph) -> Iterable[Value]:
    yield from graph.inputs
    for operator in graph.operators:
        yield from operator.outputs


def _positive_values(graph: TargetGraph) -> set[Value]:
    """Returns the results that are never negative."""
    found: set[Value] = set()
    for operator in graph.operators:
        kernel = spec(operator.type).integer
        fused = str(operator.attributes.get("fused_activation_function"))
        kept = kernel is not None and kernel.keeps_sign and operator.inputs[0] in found
        if kept or is_rectifier(operator.type) or is_rectifier(fused):
            found.update(operator.outputs)
    return found


def is_rectifier(type: str) -> bool:
    """Whether an activation returns no negative values."""
    activation = spec(type).activation
    return activation is not None and activation[0] >= 0


def _use_all_steps(qparams: QParams) -> QParams:
    """Returns finer QParams, which use all steps for non-negative values."""
    highest, steps = qparams.quant_max - qparams.zero_point[0], RANGES[qparams.dtype]
    if qparams.dtype != "int8" or highest >= 255:
        return qparams
    scale = float(np.float32(qparams.scale[0] * highest / 255))
    return QParams("int8", (scale,), (steps[0],), *steps)
