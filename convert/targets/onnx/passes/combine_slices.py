"""ONNX: combine slices that together are the whole of an axis into one Split."""

from __future__ import annotations

from collections.abc import Sequence

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.patterns.matching import is_call
from tmconvert.passes.rewriting import Emits, RewritePass

_SLICE = "aten::slice"


class CombineSlices(Emits, RewritePass[list[CallFunction]]):
    """Replace slices of one tensor that divide an axis among them by one split.

    The match are the slices of the axis, in the order of the elements; the first one in execution order is
    the call.
    """

    name = "combine_slices"

    def takes(self, function: str) -> bool:
        return function == _SLICE

    def match(self, graph: InternalGraph, call: CallFunction) -> list[CallFunction] | None:
        x, axis = call.args[0], _axis(call)
        assert isinstance(x, TensorNode)
        alike = [each for each in x.users if is_call(each, _SLICE) and _axis(each) == axis]
        parts = sorted(alike, key=lambda each: _bounds(each) or (0, 0))
        extent = x.type.shape[axis]
        is_divided = isinstance(extent, int) and len(parts) > 1 and _divides(parts, extent)
        return parts if is_divided else None

    def check(self, graph: InternalGraph, call: CallFunction, match: list[CallFunction]) -> str | None:
        kept = [part.output.name for part in match if part.output.qparams is not None]
        return f"`{kept[0]}` has quantization parameters of its own" if kept else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[CallFunction]) -> str:
        x, axis = call.args[0], _axis(call)
        sizes = [part.kwargs["end"] - part.kwargs["start"] for part in match]
        emitter = self.emitter(call)
        made = emitter.call("aten::split_with_sizes", x, sizes, axis)
        for part, new in zip(match, made, strict=True):
            old = part.output
            graph.replace_uses(old, new)
            graph.remove(part)
            graph.rename(new, old.name)
        others = ", ".join(f"`{part.output.name}`" for part in match if part is not call)
        return f"was combined with {others} into one split"


def _axis(call: CallFunction) -> int:
    x = call.args[0]
    assert isinstance(x, TensorNode)
    return int(call.kwargs["dim"]) % x.type.rank


def _bounds(call: CallFunction) -> tuple[int, int] | None:
    """Returns start and end of a slice without steps; None if they are dynamic."""
    start, end, step = (call.kwargs[name] for name in ("start", "end", "step"))
    return (start, end) if step == 1 and isinstance(start, int) and isinstance(end, int) else None


def _divides(parts: Sequence[CallFunction], extent: int) -> bool:
    """Whether the parts follow one another from 0 to ``extent``, and none is empty."""
    bounds = [_bounds(part) for part in parts]
    ends = [0, *(each[1] for each in bounds if each is not None)]
    starts = [*(each[0] for each in bounds if each is not None), extent]
    is_plain = None not in bounds and all(each is not None and each[0] < each[1] for each in bounds)
    return is_plain and starts == ends
