"""ONNX: hoist transposes over reshapes that merge axes, so that reshapes meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.ir.symbolic.dims import Size, is_symbolic, same_size
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import op_has, trait_of
from tmconvert.symbolics.traits import Permuted, Reshaped, View, ViewStep


class Hoisted(NamedTuple):
    """A reshape that merges axes, the transpose after it, and the order of the axes before both."""

    merge: CallFunction
    transpose: CallFunction
    order: list[int]


class HoistTransposes(Emits, RewritePass[Hoisted]):
    """Replace a reshape, transpose and reshape by a transpose and one reshape, or none.

    The first reshape merges neighbouring axes, as exporters do around a transpose of the last two.
    """

    name = "hoist_transposes"

    def takes(self, function: str) -> bool:
        return op_has(function, View)

    def match(self, graph: InternalGraph, call: CallFunction) -> Hoisted | None:
        transpose = _operand(call) if isinstance(_step(call), Reshaped) else None
        step = _step(transpose)
        merge = _operand(transpose) if isinstance(step, Permuted) else None
        if merge is None or not isinstance(step, Permuted) or not isinstance(_step(merge), Reshaped):
            return None
        assert transpose is not None
        groups = _groups(merge.args[0].type.shape, merge.output.type.shape)
        if groups is None:
            return None
        return Hoisted(merge, transpose, [axis for place in step.order for axis in groups[place]])

    def check(self, graph: InternalGraph, call: CallFunction, match: Hoisted) -> str | None:
        for each in (match.merge.output, match.transpose.output):
            if graph.use_count(each) != 1:
                return f"`{each.name}` has other users"
            if each.qparams is not None:
                return f"`{each.name}` has quantization parameters"
        shape = call.output.type.shape
        x = match.merge.args[0].type.shape
        is_equal = len(x) == len(shape) and all(map(same_size, [x[axis] for axis in match.order], shape))
        if not is_equal and sum(map(is_symbolic, shape)) > 1:
            return "more than one of its sizes is symbolic"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Hoisted) -> str:
        emitter = self.emitter(call)
        made = emitter.call("aten::permute", match.merge.args[0], match.order)
        if made.type.shape != call.output.type.shape:
            made = emitter.call("aten::reshape", made, list(call.output.type.shape))
        graph.substitute(call.output, made)
        graph.remove(match.transpose)
        graph.remove(match.merge)
        return f"takes `{match.transpose.output.name}` before `{match.merge.output.name}`"


def _step(expr: Any) -> ViewStep | None:
    """Returns what a view of one step does."""
    view = trait_of(expr, View)
    steps = [] if view is None or len(expr.outputs) != 1 else list(view.of(expr))
    return steps[0] if len(steps) == 1 else None


def _operand(expr: Any) -> CallFunction | None:
    made = expr.args[0].expr
    return made if isinstance(made, CallFunction) else None


def _groups(before: Sequence[Size], after: Sequence[Size]) -> list[list[int]] | None:
    """Returns the neighbouring axes that each axis of a reshape merges; None for other reshapes."""
    groups: list[list[int]] = []
    axes = list(range(len(before)))
    for size in after:
        group: list[int] = []
        product: Size = 1
        while not group or not same_size(product, size):
            if not axes:
                return None
            product = product * before[axes[0]]
            group.append(axes.pop(0))
        groups.append(group)
    return None if axes else groups
