"""How loops over time become loops over chunks: what a loop carries from frame to frame is a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.subgraphs import inlined
from tmconvert.passes.rewriting import emitter_before
from tmconvert.streaming.builder import StepBuilder
from tmconvert.streaming.frame_constants import frame_constant
from tmconvert.streaming.recurrent import shifted
from tmconvert.streaming.rules import Arguments, Rule, along, shape_of, widened
from tmconvert.streaming.timed import FirstFrame, Timed


def select(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    x = arguments["x"]
    if arguments["dim"] % x.node.type.rank == x.axis and arguments["index"] == 0:
        return FirstFrame(x)
    return along(b, call, arguments)


def scan(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """A round takes one frame: slices of scanned tensors, or the frame of the number of the round."""
    values, carried, offline = arguments["inputs"], arguments["carried"], call.args[0]
    rounds, count = carried + arguments["scanned"], shape_of(offline[carried])[0]
    body = arguments["step"].copy()
    inputs = list(body.inputs)
    counters = {inputs[i] for i in range(carried, rounds) if _counts(b, values[i])}
    timed, frames = {}, {}
    for i, value in enumerate(values):
        if isinstance(value, FirstFrame):
            timed[i] = value.of
        elif isinstance(value, Timed):
            timed[i] = value
            if i < carried or shape_of(offline[i])[value.axis] != count or (i < rounds and value.axis):
                raise b.refuse("is a loop that does not take the frames of the stream one by one")
            frames[i] = inputs[i] if i < rounds else _frame(b, body, inputs[i], value.axis, counters)
    aligned = b.aligned([b.nonnegative(each) for each in timed.values()])
    timed = dict(zip(timed, aligned, strict=True))
    for i in range(carried, rounds):
        if i not in timed and inputs[i] not in counters:
            timed[i], frames[i] = _constant(b, values[i], aligned[0]), inputs[i]
    return _Chunks(b, body, values, carried, counters).emit(timed, frames)


def _counts(b: StepBuilder, value: Any) -> bool:
    """Whether the slices of a scanned tensor are the numbers of the rounds."""
    known = b.known(value) if isinstance(value, TensorNode) else None
    return known is not None and np.array_equal(known.reshape(-1), np.arange(len(known)))


def _constant(b: StepBuilder, value: TensorNode, x: Timed) -> Timed:
    """Returns a scanned constant for the frames of a chunk."""
    known = b.known(value)
    made = None if known is None else frame_constant(b, known, 0, x)
    return x._replace(node=widened(b, value, -value.type.rank, x.frames), axis=0) if made is None else made


def _frame(
    b: StepBuilder, body: InternalGraph, x: TensorNode, axis: int, counters: set[TensorNode]
) -> TensorNode:
    """Returns a new input of the step in place of the frame of ``x`` with the number of the round."""
    shape = [size for i, size in enumerate(x.type.shape) if i != axis]
    frame = TensorNode(body.free_name(f"{x.name}_frame"), tuple(shape), x.type.dtype)
    body.add_input(frame, frame.name)
    for call in x.users:
        takes = isinstance(call, CallFunction) and call.function == "aten::index_select"
        if not takes or call.args[1] not in counters or call.kwargs["dim"] % x.type.rank != axis:
            raise b.refuse("takes other frames in a round than the one with its number")
        assert isinstance(call, CallFunction)
        whole = emitter_before(call, b.catalogue, "stream").call(
            "aten::reshape", frame, [*shape[:axis], 1, *shape[axis:]]
        )
        body.substitute(call.output, whole)
    return frame


class _Chunks:
    """Emits a loop over the frames of a chunk, which starts with what that of the last chunk carried."""

    def __init__(
        self, b: StepBuilder, body: InternalGraph, values: list[Any], carried: int, counters: set[TensorNode]
    ) -> None:
        self.b, self.body, self.values, self.carried, self.counters = b, body, values, carried, counters
        self.graph = InternalGraph("step")
        self.g = GraphEmitter(self.graph, b.catalogue, made_by="stream")

    def emit(self, timed: Mapping[int, Timed], frames: Mapping[int, TensorNode]) -> list[Any]:
        """Takes the operands over time by their numbers, and the inputs that take one frame of them."""
        b, x = self.b, next(iter(timed.values()))
        firsts = [self._first(value) for value in self.values[: self.carried]]
        states = [b.state(each.type.shape, each.type.dtype) for each in firsts]
        starts = [shifted(b, "aten::add", *each) for each in zip(states, firsts, strict=True)]
        own = [self._input(each.type.shape, each.type.dtype) for each in starts]
        given: dict[Any, Any] = dict(zip(self.body.inputs, own, strict=False))
        used = [node for node in self.counters if node.users]
        needs_number = bool(used) or x.delay > 0 or len(frames) < len(timed)
        scanned = [self._numbers(x, bool(used))] if needs_number else []
        number = self._input([1], np.dtype(np.int32)) if needs_number else None
        slices = {i: self._slices(each, scanned) for i, each in timed.items()}
        around = self._around(given, slices, frames)
        for node in used:
            to = self.g.call("aten::to", number, dtype=str(node.type.dtype))
            given[node] = self.g.call("aten::reshape", to, list(node.type.shape))
        for i in slices.keys() - frames.keys():
            given[self.body.inputs[i]] = self._where("aten::eq", number, slices[i], own[i])
        results = inlined(self.g, self.body, [given.get(each) for each in self.body.inputs])
        if x.delay > 0:  # frames before the stream change nothing
            kept = zip(results[: self.carried], own, strict=True)
            results[: self.carried] = [self._where("aten::ge", number, *pair) for pair in kept]
        self.graph.set_result(tuple(results))
        counts = {"carried": self.carried, "scanned": len(scanned)}
        made = b.emit("tm::scan", [*starts, *scanned, *around], **counts, step=self.graph)
        made = made if isinstance(made, list) else [made]
        for state, first, last in zip(states, firsts, made[: self.carried], strict=True):
            b.keep(state, shifted(b, "aten::sub", last, first))
        stacked = [Timed(each, 0, x.frames, x.delay, x.length) for each in made[self.carried :]]
        return [*(None for _ in states), *stacked]

    def _first(self, value: Any) -> Any:
        """Returns what the loop carries before the first frame; zeros where it takes that from the frame."""
        if not isinstance(value, FirstFrame):
            return value
        type_ = value.of.node.type
        shape = [size for axis, size in enumerate(type_.shape) if axis != value.of.axis]
        return self.b.emitter.constant(np.zeros(shape, type_.dtype))

    def _numbers(self, x: Timed, is_used: bool) -> Any:
        """Returns the numbers of the frames of a chunk; those before the stream are negative."""
        b = self.b
        b.counts_on = b.counts_on or is_used
        number = b.emit("aten::add", b.first(x), b.numbers(0, x.frames))
        return b.emit("aten::reshape", number, [x.frames, 1])

    def _slices(self, x: Timed, scanned: list[Any]) -> TensorNode:
        """Adds a tensor to those that are scanned, and returns the input of the step that takes a frame."""
        order = [x.axis, *(axis for axis in range(x.node.type.rank) if axis != x.axis)]
        scanned.append(self.b.emit("aten::permute", x.node, dims=order))
        return self._input(scanned[-1].type.shape[1:], x.node.type.dtype)

    def _around(
        self, given: dict[Any, Any], slices: Mapping[int, TensorNode], frames: Mapping[int, TensorNode]
    ) -> list[TensorNode]:
        """Adds inputs for frames and for the tensors that are the same in each round; returns the latter."""
        given.update({node: slices[i] for i, node in frames.items()})
        around = []
        for i, (node, value) in enumerate(zip(self.body.inputs, self.values, strict=False)):
            if node not in given and i not in slices and node not in self.counters:
                around.append(value)
                given[node] = self._input(value.type.shape, value.type.dtype)
        return around

    def _input(self, shape: Any, dtype: Any) -> TensorNode:
        node = TensorNode(self.graph.free_name("x"), tuple(shape), dtype)
        self.graph.add_input(node, node.name)
        return node

    def _where(self, relation: str, number: Any, value: Any, other: Any) -> Any:
        """Returns ``value`` where the number of the frame has a relation to 0, else ``other``."""
        g = self.g
        condition = g.call("aten::reshape", g.call(relation, number, g.constant([0], np.int32)), [])
        return g.call("aten::where", condition, value, other)


RULES: Mapping[str, Rule] = {"tm::scan": scan, "aten::select": select}
