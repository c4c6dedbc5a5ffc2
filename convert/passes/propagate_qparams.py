"""Moves quantization parameters to the tensors they speak of, and on along ops that keep them."""

from __future__ import annotations

from dataclasses import replace

from tmconvert.ir import CallFunction, Expr, InternalGraph, QParams, TensorNode

REQUANTIZE = "tm::requantize"
# Results of these lie on the grid of their first operand, or (pooling, resizing) within its range, where an
# integer kernel rounds them to that grid.
KEEPING = frozenset(
    {
        *("aten::reshape", "aten::permute", "aten::slice", "aten::select", "aten::expand"),
        *("aten::flip", "aten::roll", "aten::repeat", "aten::gather", "aten::index_select"),
        *("aten::max_pool2d", "aten::avg_pool2d", "aten::amax", "aten::amin"),
        *("aten::upsample_nearest2d", "aten::upsample_bilinear2d"),
    }
)


class PropagateQparams:
    """Merges ``tm::requantize`` into its operand where nothing else uses that, then fills in what ops keep.

    Parameters of single channels go through no op but a reshape that leaves the channels together. With
    ``dissolves`` no requantize is left: a float model has no use for it, unless a file of parameters goes
    with it, where each grid is that of a tensor.
    """

    name = "settle_quantization"

    def __init__(self, *, dissolves: bool = False) -> None:
        self.dissolves = dissolves

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for expr in graph.exprs():
            if isinstance(expr, CallFunction) and expr.function == REQUANTIZE:
                changed |= _merge(graph, expr, self.dissolves)
        for expr in graph.exprs():
            changed |= _keep(expr)
        return changed


def _merge(graph: InternalGraph, expr: CallFunction, dissolves: bool) -> bool:
    """Takes a requantization out that says nothing which its operand does not, or may not, say itself."""
    operand, result = expr.args[0], expr.output
    if operand.qparams is None and result.qparams is not None and _is_alone(graph, operand, result.qparams):
        operand.qparams = result.qparams
    if result.qparams not in (None, operand.qparams) and not dissolves:
        return False
    is_named = graph.is_output(result) and operand not in graph.inputs
    name = result.name
    graph.replace_uses(result, operand)
    graph.remove(expr)
    if is_named:
        graph.rename(operand, name)
    return True


def _is_alone(graph: InternalGraph, operand: TensorNode, qparams: QParams) -> bool:
    """Whether all that use a tensor take it with these parameters."""
    if graph.is_output(operand) or _has_another(operand):
        return False
    return all(
        isinstance(user, CallFunction)
        and user.function == REQUANTIZE
        and isinstance(user.output, TensorNode)
        and user.output.qparams == qparams
        for user in operand.users
    )


def _has_another(node: TensorNode) -> bool:
    """Whether a tensor has the elements of one with parameters, which it keeps."""
    while isinstance(node.expr, CallFunction) and node.expr.function in KEEPING:
        node = node.expr.args[0]
        if node.qparams is not None:
            return True
    return False


def _keep(expr: Expr) -> bool:
    if not isinstance(expr, CallFunction) or expr.function not in KEEPING:
        return False
    operand = expr.args[0]
    qparams = operand.qparams if isinstance(operand, TensorNode) else None
    if qparams is None:
        return False
    changed = False
    for node in expr.outputs:
        assert isinstance(node, TensorNode)
        kept: QParams | None = qparams
        if qparams.channel_axis is not None:
            kept = _moved(expr, qparams, operand, node)
        if node.qparams is None and kept is not None:
            node.qparams = replace(kept, inferred=True)
            changed = True
    return changed


def _moved(expr: CallFunction, qparams: QParams, operand: TensorNode, node: TensorNode) -> QParams | None:
    if expr.function != "aten::reshape":
        return None
    return qparams.reshaped(operand.type.shape, node.type.shape)
