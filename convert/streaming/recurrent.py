"""How recurrent layers become calls on chunks: their hidden tensors are states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.streaming.builder import StepBuilder
from tmconvert.streaming.rules import Arguments, Rule, shape_of
from tmconvert.streaming.timed import Timed


def recurrent(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Frames before the stream do not change the hidden tensors."""
    x = arguments["x"]
    hidden = arguments["hx"] if isinstance(arguments["hx"], list) else [arguments["hx"]]
    if not isinstance(x, Timed) or any(isinstance(each, Timed) for each in hidden) or arguments["lengths"]:
        raise b.refuse("has hidden values or lengths that depend on the stream")
    if x.axis == (0 if arguments["batch_first"] else 1):
        return _over_other_axis(b, call, arguments, hidden)
    if arguments["bidirectional"]:
        raise b.refuse("reads the stream backwards", "only layers in one direction can follow a stream")
    if x.axis == 2:
        raise b.refuse("takes the axis of time as its features", "state the axis of time with --time")
    x = b.nonnegative(x)
    states = [b.state(each.type.shape, each.type.dtype) for each in hidden]
    starts = [shifted(b, "aten::add", state, each) for state, each in zip(states, hidden, strict=True)]
    given = starts if isinstance(arguments["hx"], list) else starts[0]
    node, lengths = x.node, None
    skipped = _Skipped(b, x) if x.delay > 0 else None
    if skipped is not None:
        node = skipped.rolled(node, x.axis, 1)
        lengths = b.emit("aten::expand", skipped.length, size=[shape_of(hidden[0])[1]])
    made, *after = b.emit(call.function, **{**arguments, "x": node, "hx": given, "lengths": lengths})
    for state, first, last in zip(states, hidden, after, strict=True):
        following = shifted(b, "aten::sub", last, first)
        if skipped is not None:
            following = b.emit("aten::where", skipped.is_started, following, state)
        b.keep(state, following)
    if skipped is not None:
        made = skipped.rolled(made, x.axis, -1)
    # the hidden tensors after the stream are those after a step, which nobody can use as frames
    return [x._replace(node=made, is_clean=False), *(None for _ in after)]


class _Skipped:
    """The frames of a chunk before the stream, which must not change hidden tensors.

    A layer takes them after the others, where they are beyond the ``length`` of the sequence.
    """

    def __init__(self, b: StepBuilder, x: Timed) -> None:
        self.b, frames = b, b.int32([x.frames])
        self.count = b.emit("aten::minimum", b.emit("aten::relu", b.emit("aten::neg", b.first(x))), frames)
        self.frames = b.numbers(0, x.frames)
        left = b.emit("aten::sub", frames, self.count)
        self.is_started = b.emit("aten::gt", left, b.int32([0]))
        self.length = b.emit("aten::maximum", left, b.int32([1]))
        self.extent = frames

    def rolled(self, node: TensorNode, axis: int, sign: int) -> TensorNode:
        """Returns the frames with those before the stream last (sign 1), or first again (sign -1)."""
        b, count = self.b, self.count if sign > 0 else self.b.emit("aten::sub", self.extent, self.count)
        index = b.emit("aten::remainder", b.emit("aten::add", self.frames, count), self.extent)
        made: TensorNode = b.emit("aten::index_select", node, dim=axis, index=index)
        return made


def shifted(b: StepBuilder, op: str, value: TensorNode, by: TensorNode) -> TensorNode:
    """States start at zero where the hidden tensors start at ``by``."""
    known = b.emitter.known(by)
    made: TensorNode = value if known is not None and not np.any(known) else b.emit(op, value, by)
    return made


def _over_other_axis(b: StepBuilder, call: CallFunction, arguments: Arguments, hidden: list[Any]) -> Any:
    """Each frame is a sequence of its own."""
    x = b.nonnegative(arguments["x"])
    narrow: list[TensorNode] = []
    for each in hidden:
        known = b.emitter.known(each)
        if known is None or np.ptp(known, axis=1).any():
            raise b.refuse("starts each frame with other hidden values")
        one = b.emitter.constant(np.ascontiguousarray(known[:, :1]))
        narrow.append(b.emit("aten::expand", one, size=[len(known), x.frames, known.shape[2]]))
    given = narrow if isinstance(arguments["hx"], list) else narrow[0]
    made, *after = b.emit(call.function, **{**arguments, "x": x.node, "hx": given})
    rest = [x._replace(node=each, axis=1, is_clean=False) for each in after]
    return [x._replace(node=made, is_clean=False), *rest]


RULES: Mapping[str, Rule] = {f"aten::{name}": recurrent for name in ("gru", "lstm", "rnn_tanh", "rnn_relu")}
