"""Common-subexpression elimination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode, TensorType
from tmconvert.ir.emitter import OpDefinition
from tmconvert.ir.subgraphs import subgraphs_of
from tmconvert.ir.symbolic.data_dependent import taken_over
from tmconvert.ir.tree import map_leaves
from tmconvert.passes.rewriting import PassRecord

# elements of a constant that is compared with others by its values
_SMALL = 64


class EliminateCommonSubexpressions:
    """Replace a call by an earlier one of the same op, with equal operands, attributes and QParams.

    Small constants are compared by their values.
    """

    name = "eliminate_common_subexpressions"

    def __init__(self, catalogue: Mapping[str, OpDefinition]) -> None:
        self.catalogue = catalogue

    def run(self, graph: InternalGraph) -> PassRecord:
        known: dict[Any, Expr] = {}
        constants: dict[Any, Any] = {}  # the first that is equal
        record = PassRecord(self.name)
        for expr in list(graph):
            key = _key(expr, constants)
            first = expr if key is None else known.setdefault(key, expr)
            if isinstance(expr, Constant):
                constants[expr.output] = first.outputs[0]
            elif first is not expr and any(map(graph.is_output, expr.outputs)):
                record.refuse(
                    expr, f"it is an output of the model, though `{first.outputs[0].name}` is equal"
                )
            elif first is not expr:
                was, types = (list(map(_type, each.outputs)) for each in (expr, first))
                for node, counterpart in zip(expr.outputs, first.outputs, strict=True):
                    graph.replace_uses(node, counterpart)
                graph.remove(expr)
                taken_over(graph, was, types, self.catalogue)
                record.did(expr, f"was removed: `{first.outputs[0].name}` is equal")
        return record


def _key(expr: Expr, constants: dict[object, object]) -> Any:
    """Returns a key that equal expressions share; None for those that are not compared."""
    if isinstance(expr, Constant):
        if expr.output.qparams is not None or expr.output.type.size > _SMALL:
            return None
        value = expr.value
        return value.dtype.str, value.shape, value.tobytes()
    if not isinstance(expr, CallFunction) or any(True for _ in subgraphs_of(expr)):
        return None
    all_qparams = tuple(node.qparams for node in expr.outputs if isinstance(node, TensorNode))
    operands = map_leaves(lambda leaf: leaf if leaf is None else id(constants.get(leaf, leaf)), expr.args)
    return expr.function, repr(operands), repr(expr.kwargs), all_qparams


def _type(node: Any) -> TensorType:
    made: TensorType = node.type
    return made
