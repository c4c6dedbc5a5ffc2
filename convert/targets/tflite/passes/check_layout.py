"""Checks assigned layouts: each op must read and return tensors as its layout rule requires."""

from __future__ import annotations

from collections.abc import Mapping

from tmconvert.errors import GraphError
from tmconvert.ir import CallFunction, Expr, InternalGraph, TensorNode
from tmconvert.ir.text import describe
from tmconvert.passes.patterns.matching import rule_of
from tmconvert.symbolics.op import Op
from tmconvert.targets.tflite.passes.layout_plan import is_image, operand_orders


def check_layout(graph: InternalGraph, catalogue: Mapping[str, Op]) -> None:
    """Raises GraphError TM3019 with the first expression whose operands or results break its rule."""
    for node in [*graph.inputs, *(node for expr in graph for node in expr.outputs)]:
        layout = node.layout if isinstance(node, TensorNode) else None
        if layout not in (None, "nhwc") or (layout and not is_image(node)):
            raise GraphError("TM3019", f"%{node.name} cannot be stored as {layout}")
    for expr in graph:
        if isinstance(expr, CallFunction):
            _check_call(expr, catalogue)


def _check_call(expr: CallFunction, catalogue: Mapping[str, Op]) -> None:
    rule = rule_of(expr, catalogue)
    kind = rule.kind
    given = [_layout(node) for node in expr.inputs if is_image(node)]
    made = [_layout(node) for node in expr.outputs if is_image(node)]
    if kind == "relayout":
        wanted = "nhwc" if expr.kwargs["to"] == "nhwc" else None
        if made != [wanted] or given == made:
            _fail(expr, f"it does not convert {given} to {wanted}")
    elif kind == "view":
        return  # a view takes and gives either order
    elif kind == "nhwc":
        orders = operand_orders(expr, catalogue, "nhwc")
        expected = [order for node, order in zip(expr.inputs, orders, strict=True) if is_image(node)]
        if given != expected or any(layout != "nhwc" for layout in made):
            _fail(expr, "its first operand and its result must be channels-last, weights must not")
    elif len({*given, *made}) > 1:
        _fail(expr, f"its operands {given} and results {made} have different layouts")
    elif kind == "any" and "nhwc" in made and not rule.axes and any(map(_is_misaligned, expr.inputs)):
        _fail(expr, "an operand of lower rank is not aligned with the others")
    elif kind == "source" and "nhwc" in given + made:
        _fail(expr, "it supports the layout of the source only")


def _is_misaligned(node: object) -> bool:
    assert isinstance(node, TensorNode)
    return not is_image(node) and node.type.size != 1


def _layout(node: object) -> str | None:
    assert isinstance(node, TensorNode)
    return node.layout


def _fail(expr: Expr, message: str) -> None:
    raise GraphError("TM3019", f"{describe(expr)}: {message}", source=expr.source, excerpt=describe(expr))
