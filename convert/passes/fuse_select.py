"""Fuse slices of one element with the reshapes that drop their axis."""

from __future__ import annotations

from typing import Any

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic, same_size
from tmconvert.passes.patterns.matching import is_call
from tmconvert.passes.rewriting import Emits, RewritePass

_SPLIT = "aten::split_with_sizes"
_SLICE = "aten::slice"
_RESHAPE = "aten::reshape"


class FuseSelect(Emits, RewritePass[list[CallFunction]]):
    """Replace parts of one element along an axis, which reshapes drop, by ``aten::select``.

    The match are the reshapes of all parts of a split, or of one slice.
    """

    name = "fuse_select"

    def takes(self, function: str) -> bool:
        return function in (_SPLIT, _SLICE)

    def match(self, graph: InternalGraph, call: CallFunction) -> list[CallFunction] | None:
        if not (is_call(call, _SPLIT) or is_call(call, _SLICE)):
            return None
        axis, parts = _axis(call), _parts(call)
        if is_symbolic(call.kwargs.get("start", 0)):
            return None
        if any(is_symbolic(node.type.shape[axis]) or node.type.shape[axis] != 1 for node in parts):
            return None
        users = [user for node in parts for user in node.users]
        drops = [user for user in users if isinstance(user, CallFunction) and _drops(user, axis)]
        return drops if users and len(drops) == len(users) else None

    def check(self, graph: InternalGraph, call: CallFunction, match: list[CallFunction]) -> str | None:
        kept = [node.name for node in _parts(call) if graph.is_output(node)]
        if kept:
            return f"`{kept[0]}` is an output of the model"
        own = [node.name for node in _parts(call) if node.qparams is not None]
        return f"`{own[0]}` has quantization parameters of its own" if own else None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: list[CallFunction]) -> str:
        axis = _axis(call)
        first = 0 if is_call(call, _SPLIT) else call.kwargs["start"]
        places = {node: first + place for place, node in enumerate(_parts(call))}
        for reshape in match:
            emitter = self.emitter(reshape)
            made = emitter.call("aten::select", call.args[0], axis, places[reshape.args[0]])
            graph.substitute(reshape.output, made)
        graph.remove(call)
        return "was replaced by selections: its parts have one element"


def _parts(call: CallFunction) -> list[TensorNode]:
    return [node for node in call.outputs if isinstance(node, TensorNode)]


def _axis(call: CallFunction) -> int:
    x = call.args[0]
    assert isinstance(x, TensorNode)
    return int(call.kwargs["dim"]) % x.type.rank


def _drops(user: CallFunction, axis: int) -> bool:
    """Whether ``user`` drops ``axis`` and leaves the others."""
    if not is_call(user, _RESHAPE):
        return False
    x: Any = user.args[0]
    before, after = x.type.shape, user.output.type.shape
    left = (*before[:axis], *before[axis + 1 :])
    return len(left) == len(after) and all(map(same_size, left, after))
