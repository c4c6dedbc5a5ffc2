"""Lookup tables for functions of one or two tensors without an integer kernel in TFLite.

The reference kernels compute the table from the calls of the source, however many operators of TFLite these
would need. It is exact, so it also replaces kernels whose results have fixed, coarse QParams. For an operand
in int8 it has 256 entries, in int16 as many as its QParams have steps; for two in int8 65536.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, TensorNode
from tmconvert.ir.fake_quant import ONNX
from tmconvert.ir.tree import map_leaves
from tmconvert.ir.types import QParams
from tmconvert.lowering.rewriting import users
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.patterns.matching import rule_of
from tmconvert.symbolics.op import Op
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.element_types import OLDEST
from tmconvert.targets.tflite.integer.prepare import prepared
from tmconvert.targets.tflite.integer.qparams import operands, resolved_qparams, steps_of
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.operators.activations import TABLE, TABLE_OF_TWO, TABLES
from tmconvert.targets.tflite.runtimes import kernel_release

# Steps of a result that one of a kernel's fixed scale may be: requantized, it is off by less than the two
# steps that kernels are allowed, and it runs on NPUs and GPUs, which have no GATHER. Results that the source
# has in integers, in files for ONNX Runtime, are not rounded to a coarser scale first.
COARSER = 1.5
_EQUAL = 1e-6  # of two scales
_MOST = 200  # calls that one table stands for
_ROUNDS = 5


def tabulated(
    graph: TargetGraph, catalogue: Mapping[str, Op], kind: IntegerType, *, infers: bool = True
) -> TargetGraph:
    """Returns a copy of ``graph`` with a TABLE of (operand, float32 results) for such functions.

    Activations are ``kind``, "int8" or "int16"; ``infers`` is that of
    ``in_integers``.
    """
    made = prepared(graph, kind, infers)
    for _ in range(_ROUNDS):  # what a table gives may be what another takes
        before, made = made, _once(made, catalogue, kind, infers)
        if made is before:
            break
    return made


def _once(graph: TargetGraph, catalogue: Mapping[str, Op], kind: IntegerType, infers: bool) -> TargetGraph:
    all_qparams, takers = resolved_qparams(graph, kind, infers=infers), users(graph)
    values = [*graph.inputs, *(value for operator in graph.operators for value in operator.outputs)]
    nodes = {id(value): node for value in values if (node := graph.node_of(value)) is not None}
    known = {nodes[id(value)]: value for value in values if id(value) in nodes and id(value) in all_qparams}
    operators = []
    for operator in graph.operators:
        node = nodes.get(id(operator.outputs[0]))
        table = None
        if not isinstance(node, TensorNode) or operator.type in TABLES:
            pass
        elif _is_wanted(operator, all_qparams, graph.version) or (
            infers and _is_lacking(operator, all_qparams, takers)
        ):
            functions = (_Function(known, catalogue, node, most) for most in (2, 1))
            tables = (_table(operator, node, function, all_qparams) for function in functions)
            table = next((each for each in tables if each is not None), None)
        operators.append(table or operator)
    if operators == graph.operators:
        return graph
    made = replace(graph, operators=_used(operators, graph.outputs))
    again = resolved_qparams(made, kind, infers=infers)
    lost = [
        each for each in made.operators if each.type in TABLES and not _has_qparams(each, all_qparams, again)
    ]
    return graph if lost else made


def _is_wanted(operator: Operator, all_qparams: Mapping[int, QParams], runtime: int | str) -> bool:
    """Whether the source quantizes the result, and the runtime has no sufficiently accurate kernel."""
    result, kernel = operator.outputs[0], spec(operator.type).integer
    if result.qparams is None or result.qparams.inferred or id(result) not in all_qparams:
        return False
    numbers = [] if kernel is None else operands(operator)
    kinds = [all_qparams[id(value)].dtype for value in (result, *numbers) if id(value) in all_qparams]
    kind = max(kinds, key=("int8", "int16").index)
    if kind == "int8" and kernel is not None and kernel.is_rough:
        ratio = kernel.fixed[kind][0] / all_qparams[id(result)].scale[0]
        return ratio > (1 + _EQUAL if result.qparams.source == ONNX else COARSER)
    if kernel is None or kind not in kernel.types:
        return True
    assert isinstance(runtime, int)
    if kernel_release(operator.type, kind) > max(runtime, OLDEST):
        return True
    computed = [value for value in numbers if not value.is_constant]
    if any(id(value) not in all_qparams for value in computed):
        return True
    return kernel.relation in ("free", "fixed") and any(all_qparams[id(value)].inferred for value in computed)


def _is_lacking(
    operator: Operator, all_qparams: Mapping[int, QParams], users: Mapping[int, list[Operator]]
) -> bool:
    """Whether an unquantized result is needed in int16 and no kernel computes it."""
    result, kernel = operator.outputs[0], spec(operator.type).integer
    if result.qparams is not None and not result.qparams.inferred:
        return False
    if not all(spec(user.type).integer is not None for user in users.get(id(result), [])):
        return False
    if kernel is not None and "int16" in kernel.types and not kernel.is_rough:
        return id(result) not in all_qparams and kernel.relation == "free"
    return kernel is None or kernel.relation in ("free", "fixed")


class _Function:
    """A node as an elementwise function of at most ``most`` quantized nodes."""

    def __init__(
        self, known: Mapping[TensorNode, Value], catalogue: Mapping[str, Op], result: TensorNode, most: int
    ) -> None:
        self.known, self.catalogue, self.result, self.most = known, catalogue, result, most
        self.calls: list[CallFunction] = []
        self.operands: list[TensorNode] = []
        self.is_found = self._follow(result) and 1 <= len(self.operands) <= most

    def _follow(self, node: Any) -> bool:
        """Returns the operands of which ``node`` is an elementwise function, and its calls in order.

        What has no parameters of its own is followed further, if that leads to no more than are asked for.
        """
        if isinstance(node.expr, Constant):
            return bool(np.size(node.expr.value) == 1)
        value = self.known.get(node) if node is not self.result else None
        if not _fits_into(node.type.shape, self.result.type.shape):
            return False
        if value is not None and value.qparams is not None and not value.qparams.inferred:
            self._end_at(node)
            return True
        kept = list(self.calls), list(self.operands)
        if self._follow_call(node.expr) and (value is None or len(self.operands) <= self.most):
            return True
        self.calls, self.operands = kept
        if value is not None:
            self._end_at(node)
        return value is not None

    def _end_at(self, node: Any) -> None:
        if node not in self.operands:
            self.operands.append(node)

    def _follow_call(self, expr: object) -> bool:
        if expr in self.calls:
            return True
        if not isinstance(expr, CallFunction) or len(expr.outputs) != 1 or len(self.calls) >= _MOST:
            return False
        rule = rule_of(expr, self.catalogue)
        if rule.kind != "any" or rule.axes or not all(self._follow(each) for each in expr.inputs):
            return False
        self.calls.append(expr)
        return True

    def __call__(self, *numbers: np.ndarray) -> np.ndarray:
        made: dict[Any, Any] = dict(zip(self.operands, numbers, strict=True))

        def operand(leaf: Any) -> Any:
            if leaf is None:
                return None
            return np.asarray(leaf.expr.value) if isinstance(leaf.expr, Constant) else made[leaf]

        for expr in self.calls:
            arguments = map_leaves(operand, list(expr.args))
            made[expr.output] = self.catalogue[expr.function].evaluate(arguments, expr.kwargs)
        return np.asarray(made[self.result])


def _table(
    operator: Operator, node: TensorNode, function: _Function, all_qparams: Mapping[int, QParams]
) -> Operator | None:
    if not function.is_found:
        return None
    operands, result = [function.known[node] for node in function.operands], operator.outputs[0]
    if any(value.dtype != np.float32 for value in (*operands, result)):
        return None
    if not all(_fits_into(value.shape, result.shape) for value in operands):
        return None
    if np.broadcast_shapes(*(value.shape for value in operands)) != result.shape:
        return None
    steps = [all_qparams[id(value)] for value in operands]
    given = all_qparams.get(id(result))
    if len(operands) == 2 and (given is None or any(qparams.dtype != "int8" for qparams in (*steps, given))):
        return None
    numbers = [_numbers(qparams) for qparams in steps]
    if len(operands) == 2:
        numbers[0] = numbers[0][:, None]
    made = np.asarray(function(*numbers), np.float32)
    shape = np.broadcast_shapes(*(each.shape for each in numbers))
    if made.ndim > len(shape):  # constants of one element may have any rank
        made = made.reshape(made.shape[made.ndim - len(shape) :])
    made = np.nan_to_num(np.broadcast_to(made, shape))
    if steps[0].inferred and steps[0].dtype == "int16" and _is_steep(made, given):
        return None
    table = Value(f"{result.name}_table", result.dtype, (made.size,), made.reshape(-1))
    kind = TABLE if len(operands) == 1 else TABLE_OF_TWO
    return replace(operator, type=kind, inputs=[*operands, table], attributes={})


def _is_steep(made: np.ndarray, qparams: QParams | None) -> bool:
    """Whether the result changes by more than half an 8-bit step per step of the operand.

    The operand is not exact then: its last step is rounded.
    """
    with np.errstate(all="ignore"):
        step = float(np.ptp(made)) / 255 if qparams is None or qparams.dtype == "int16" else qparams.scale[0]
        return not bool(np.max(np.abs(np.diff(made)), initial=0) <= step / 2)


def _fits_into(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a tensor of one shape broadcasts to the other."""
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return len(shape) <= len(other) and all(extent in (1, wanted) for extent, wanted in pairs)


def _numbers(qparams: QParams) -> np.ndarray:
    """Returns the real value of each integer."""
    steps = np.array(steps_of(qparams), np.float32) - np.float32(qparams.zero_point[0])
    return np.asarray(steps * np.float32(qparams.scale[0]))


def _used(operators: Sequence[Operator], outputs: Sequence[Value]) -> list[Operator]:
    """Returns those that are outputs, or operands of another."""
    wanted, kept = {id(value) for value in outputs}, []
    for operator in reversed(operators):
        if any(id(value) in wanted for value in operator.outputs):
            wanted |= {id(value) for value in operator.inputs if value is not None}
            kept.append(operator)
    return kept[::-1]


def _has_qparams(table: Operator, before: Mapping[int, QParams], after: Mapping[int, QParams]) -> bool:
    """Whether the operands of a table still have the QParams for which it was computed."""
    return all(before[id(x)] == after.get(id(x)) for x in table.inputs[:-1])
