"""How recurrent layers become calls on chunks: their hidden tensors are states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.streaming.builder import StepBuilder
from tmconvert.streaming.rules import Arguments, Rule
from tmconvert.streaming.timed import Timed


def recurrent(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Frames before the stream do not change the hidden tensors: the delay becomes a number of chunks."""
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
    x = b.delayed(x, -(-x.delay // x.frames) * x.frames)
    states = [b.state(each.type.shape, each.type.dtype) for each in hidden]
    starts = [_shifted(b, "aten::add", state, each) for state, each in zip(states, hidden, strict=True)]
    given = starts if isinstance(arguments["hx"], list) else starts[0]
    made, *after = b.emit(call.function, **{**arguments, "x": x.node, "hx": given})
    for state, first, last in zip(states, hidden, after, strict=True):
        following = _shifted(b, "aten::sub", last, first)
        if x.delay > 0:
            following = b.emit("aten::where", b.is_started(x), following, state)
        b.keep(state, following)
    # the hidden tensors after the stream are those after a step, which nobody can use as frames
    return [x._replace(node=made, is_clean=False), *(None for _ in after)]


def _shifted(b: StepBuilder, op: str, value: TensorNode, by: TensorNode) -> TensorNode:
    """States start at zero where the hidden tensors start at ``by``."""
    known = b.emitter.known(by)
    made: TensorNode = value if known is not None and not np.any(known) else b.emit(op, value, by)
    return made


def _over_other_axis(b: StepBuilder, call: CallFunction, arguments: Arguments, hidden: list[Any]) -> Any:
    """Each frame is a sequence of its own."""
    x = b.nonnegative(arguments["x"])
    narrow = []
    for each in hidden:
        known = b.emitter.known(each)
        if known is None or np.ptp(known, axis=1).any():
            raise b.refuse("starts each frame with other hidden values")
        narrow.append(b.emitter.constant(np.repeat(known[:, :1], x.frames, 1)))
    given = narrow if isinstance(arguments["hx"], list) else narrow[0]
    made, *after = b.emit(call.function, **{**arguments, "x": x.node, "hx": given})
    rest = [x._replace(node=each, axis=1, is_clean=False) for each in after]
    return [x._replace(node=made, is_clean=False), *rest]


RULES: Mapping[str, Rule] = {f"aten::{name}": recurrent for name in ("gru", "lstm", "rnn_tanh", "rnn_relu")}
