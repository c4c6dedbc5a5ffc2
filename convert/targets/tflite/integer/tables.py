"""Lookup tables for functions of one or two tensors without an integer kernel: the stage ``tables``.

The reference kernels compute the table from the calls of the source, however many operators of TFLite these
would need. It is exact, so it also replaces kernels whose results have fixed, coarse QParams. For an operand
in int8 it has 256 entries, in int16 as many as its QParams have steps; for two in int8 65536.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tmconvert.ir import TensorNode
from tmconvert.ir.fake_quant import ONNX
from tmconvert.ir.types import QParams
from tmconvert.lowering.rewriting import users
from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.symbolics.op import Op
from tmconvert.targets.tflite.element_types import OLDEST
from tmconvert.targets.tflite.integer.elementwise_function import ElementwiseFunction, broadcasts_to
from tmconvert.targets.tflite.integer.qparams import operands, steps_of
from tmconvert.targets.tflite.integer.resolve import ResolvedGraph
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.operators.activations import TABLE, TABLE_OF_TWO, TABLES
from tmconvert.targets.tflite.runtimes import kernel_release

# Steps of a result that one of a kernel's fixed scale may be: requantized, it is off by less than the two
# steps that kernels are allowed, and it runs on NPUs and GPUs, which have no GATHER. Results that the source
# has in integers, in files for ONNX Runtime, are not rounded to a coarser scale first.
COARSER = 1.5
_EQUAL = 1e-6  # of two scales
_ROUNDS = 5


def add_tables(resolved: ResolvedGraph, catalogue: Mapping[str, Op]) -> ResolvedGraph:
    """Returns a copy of the graph with a TABLE of (operand, float32 results) for each such function;
    ``resolved`` itself where none is needed.

    QParams are resolved again after each round that adds tables: a table has a result with QParams where the
    operators before had none, which may be the operand of another table.
    """
    for _ in range(_ROUNDS):
        before, resolved = resolved, _add_once(resolved, catalogue)
        if resolved is before:
            break
    return resolved


def _add_once(resolved: ResolvedGraph, catalogue: Mapping[str, Op]) -> ResolvedGraph:
    graph, all_qparams, takers = resolved.graph, resolved.all_qparams, users(resolved.graph)
    values = [*graph.inputs, *(value for operator in graph.operators for value in operator.outputs)]
    nodes = {value: node for value in values if (node := graph.node_of(value)) is not None}
    known = {node: value for value, node in nodes.items() if value in all_qparams}
    operators = []
    for operator in graph.operators:
        node = nodes.get(operator.outputs[0])
        table = None
        if not isinstance(node, TensorNode) or operator.type in TABLES:
            pass
        elif _is_wanted(operator, all_qparams, graph.version) or (
            resolved.infers and _is_lacking(operator, all_qparams, takers)
        ):
            functions = (ElementwiseFunction(known, catalogue, node, most) for most in (2, 1))
            tables = (_table(operator, function, all_qparams) for function in functions)
            table = next((each for each in tables if each is not None), None)
        operators.append(table or operator)
    if operators == graph.operators:
        return resolved
    made = resolved.replace_graph(replace(graph, operators=_drop_unused(operators, graph.outputs)))
    all_tables = (operator for operator in made.graph.operators if operator.type in TABLES)
    is_valid = all(_has_qparams(each, all_qparams, made.all_qparams) for each in all_tables)
    return made if is_valid else resolved


def _is_wanted(operator: Operator, all_qparams: Mapping[Value, QParams], runtime: int | str) -> bool:
    """Whether the source quantizes the result, and the runtime has no sufficiently accurate kernel."""
    result, kernel = operator.outputs[0], spec(operator.type).integer
    if result.qparams is None or result.qparams.inferred or result not in all_qparams:
        return False
    numbers = [] if kernel is None else operands(operator)
    kinds = [all_qparams[value].dtype for value in (result, *numbers) if value in all_qparams]
    kind = max(kinds, key=("int8", "int16").index)
    if kind == "int8" and kernel is not None and kernel.is_rough:
        ratio = kernel.fixed[kind][0] / all_qparams[result].scale[0]
        return ratio > (1 + _EQUAL if result.qparams.source == ONNX else COARSER)
    if kernel is None or kind not in kernel.types:
        return True
    assert isinstance(runtime, int)
    if kernel_release(operator.type, kind) > max(runtime, OLDEST):
        return True
    computed = [value for value in numbers if not value.is_constant]
    if any(value not in all_qparams for value in computed):
        return True
    return kernel.relation in ("free", "fixed") and any(all_qparams[value].inferred for value in computed)


def _is_lacking(
    operator: Operator, all_qparams: Mapping[Value, QParams], takers: Mapping[int, list[Operator]]
) -> bool:
    """Whether an unquantized result is needed in int16 and no kernel computes it."""
    result, kernel = operator.outputs[0], spec(operator.type).integer
    if result.qparams is not None and not result.qparams.inferred:
        return False
    if not all(spec(user.type).integer is not None for user in takers.get(id(result), [])):
        return False
    if kernel is not None and "int16" in kernel.types and not kernel.is_rough:
        return result not in all_qparams and kernel.relation == "free"
    return kernel is None or kernel.relation in ("free", "fixed")


def _table(
    operator: Operator, function: ElementwiseFunction, all_qparams: Mapping[Value, QParams]
) -> Operator | None:
    if not function.is_found:
        return None
    operands, result = [function.known[node] for node in function.operands], operator.outputs[0]
    if any(value.dtype != np.float32 for value in (*operands, result)):
        return None
    if not all(broadcasts_to(value.shape, result.shape) for value in operands):
        return None
    sides = [value.shape[::-1] for value in operands]  # with open sizes, which NumPy does not broadcast
    if not all(
        any(extent in side[axis : axis + 1] for side in sides)
        for axis, extent in enumerate(result.shape[::-1])
    ):
        return None
    steps = [all_qparams[value] for value in operands]
    given = all_qparams.get(result)
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


def _numbers(qparams: QParams) -> np.ndarray:
    """Returns the real value of each integer."""
    steps = np.array(steps_of(qparams), np.float32) - np.float32(qparams.zero_point[0])
    return np.asarray(steps * np.float32(qparams.scale[0]))


def _drop_unused(operators: Sequence[Operator], outputs: Sequence[Value]) -> list[Operator]:
    """Returns those that are outputs, or operands of another."""
    wanted, kept = set[Value | None](outputs), list[Operator]()
    for operator in reversed(operators):
        if any(value in wanted for value in operator.outputs):
            wanted.update(operator.inputs)
            kept.append(operator)
    return kept[::-1]


def _has_qparams(table: Operator, before: Mapping[Value, QParams], after: Mapping[Value, QParams]) -> bool:
    """Whether the operands of a table still have the QParams for which it was computed."""
    return all(before[x] == after.get(x) for x in table.inputs[:-1] if x is not None)
