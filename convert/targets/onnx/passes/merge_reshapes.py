"""ONNX: merge a reshape with the reshape before it, and a transpose with the transpose before it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import Size, is_symbolic, same_size
from tmconvert.passes.rewriting import Emits, PassRecord, RewritePass, apply_rules
from tmconvert.symbolics.registry import op_has, trait_of
from tmconvert.symbolics.traits import Permuted, Reshaped, View


class Pair(NamedTuple):
    """A view, and the order of axes that it and the view before it make; None if they make a reshape."""

    inner: CallFunction
    order: list[int] | None


class MergeReshapes(Emits, RewritePass[Pair]):
    """Merge two reshapes, or two transposes, in a row into one.

    A transpose that moves axes of size 1 alone is a reshape, too, and such a reshape is a transpose.
    """

    name = "merge_reshapes"

    def run(self, graph: InternalGraph) -> PassRecord:
        record, count = PassRecord(self.name), -1
        while count < len(record.done):  # what was merged may be merged again
            count = len(record.done)
            apply_rules(record, graph, (self,))
        return record

    def takes(self, function: str) -> bool:
        return op_has(function, View)

    def match(self, graph: InternalGraph, call: CallFunction) -> Pair | None:
        inner = call.args[0].expr if _steps(call) else None
        if not isinstance(inner, CallFunction) or not _steps(inner):
            return None
        if _is_reshape(inner) and _is_reshape(call):
            return Pair(inner, None)
        first, second = (_order(each) for each in (inner, call))
        return None if first is None or second is None else Pair(inner, [first[axis] for axis in second])

    def check(self, graph: InternalGraph, call: CallFunction, match: Pair) -> str | None:
        if graph.use_count(match.inner.output) != 1:
            return f"`{match.inner.output.name}` has other users"
        if match.inner.output.qparams is not None:
            return f"`{match.inner.output.name}` has quantization parameters"
        if match.order is None and sum(map(is_symbolic, call.output.type.shape)) > 1:
            return "more than one of its sizes is symbolic"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Pair) -> str:
        emitter, x = self.emitter(call), match.inner.args[0]
        if (
            match.order is not None
            and match.order == sorted(match.order)
            and not graph.is_output(call.output)
        ):
            graph.replace_uses(call.output, x)
            graph.remove(call)
            graph.remove(match.inner)
            return f"is equal to `{x.name}`, with `{match.inner.output.name}`"
        if match.order is None:
            made = emitter.call("aten::reshape", x, list(call.output.type.shape))
        else:
            made = emitter.call("aten::permute", x, match.order)
        graph.substitute(call.output, made)
        graph.remove(match.inner)
        return f"was merged with `{match.inner.output.name}`"


def _steps(expr: Any) -> list[Any]:
    """Returns the reshapes and transposes of a view; nothing for other calls and for views that select."""
    view = trait_of(expr, View)
    if view is None or len(expr.outputs) != 1 or not isinstance(expr.args[0], TensorNode):
        return []
    steps = list(view.of(expr))
    return steps if all(isinstance(step, Reshaped | Permuted) for step in steps) else []


def _order(expr: CallFunction) -> list[int] | None:
    """Returns the order of axes of a transpose, or of a reshape that moves axes of size 1 alone."""
    steps = _steps(expr)
    if len(steps) == 1 and isinstance(steps[0], Permuted):
        return list(steps[0].order)
    before, after = (node.type.shape for node in (expr.args[0], expr.output))
    if len(before) != len(after) or not all(isinstance(step, Reshaped) for step in steps):
        return None
    ones, others = (
        [axis for axis, size in enumerate(before) if _is_one(size) == is_one] for is_one in (True, False)
    )
    order = [ones.pop(0) if _is_one(size) and ones else others.pop(0) if others else -1 for size in after]
    fits = all(axis >= 0 and same_size(before[axis], size) for axis, size in zip(order, after, strict=True))
    return order if fits else None


def _is_one(size: Size) -> bool:
    return not is_symbolic(size) and size == 1


def _is_reshape(expr: CallFunction) -> bool:
    """Whether the elements stay in order."""
    steps, shape = _steps(expr), expr.args[0].type.shape
    if len(steps) != 1 or isinstance(steps[0], Reshaped):
        return all(isinstance(step, Reshaped) for step in steps)
    moved = [axis for axis in steps[0].order if not _is_one(shape[axis])]
    return moved == sorted(moved)
