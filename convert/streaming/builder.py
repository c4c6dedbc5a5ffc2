"""The graph of a step model while it is built: its states, the position in the stream, and windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tmconvert.errors import UnsupportedError
from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.symbolic.dims import Size, example
from tmconvert.ir.text import describe
from tmconvert.ir.tree import map_leaves
from tmconvert.streaming.timed import Length, Timed
from tmconvert.symbolics.op import Op

END = "end"
ENOUGH, MOST_FRAMES = 1 << 24, 1 << 30  # where numbers of frames stop to grow, which are used then or are not


class ChunkMisfit(Exception):
    """A stride does not divide the frames of a chunk: the chunk has to be ``factor`` times as long."""

    def __init__(self, factor: int) -> None:
        super().__init__(factor)
        self.factor = factor


def known_array(node: Any, catalogue: Mapping[str, Op]) -> np.ndarray | None:
    """Returns the array of a tensor that is computed from constants alone; None for another one."""
    expr = node.expr
    if isinstance(expr, Constant):
        return np.asarray(expr.value)
    if not isinstance(expr, CallFunction) or len(expr.outputs) > 1 or catalogue[expr.function].is_random:
        return None
    given = [known_array(each, catalogue) for each in expr.inputs]
    if any(each is None for each in given):
        return None
    arrays = dict(zip(expr.inputs, given, strict=True))
    args = [map_leaves(lambda leaf: leaf if leaf is None else arrays[leaf], each) for each in expr.args]
    return np.asarray(catalogue[expr.function].evaluate(args, expr.kwargs))


class StepBuilder:
    """Builds the graph of a step model; ``call`` is the call of the offline graph that is being rewritten.

    ``chunk`` is the number of frames of the first input in a step, a multiple of ``least``; it may be a
    symbolic size. ``states`` are pairs of the node of an input and that of the output with its next value.
    """

    def __init__(
        self, name: str, catalogue: Mapping[str, Op], chunk: Size, least: int, context: int | None = None
    ) -> None:
        self.graph, self.chunk, self.least = InternalGraph(name), chunk, least
        self.catalogue, self.context = catalogue, context
        self.counts_on = False  # whether results depend on the numbers of frames anywhere in the stream
        self.limited: list[str] = []  # the results of attentions whose context is limited
        self.emitter = GraphEmitter(self.graph, catalogue, made_by="stream")
        self.states: list[tuple[TensorNode, TensorNode]] = []
        self.call: CallFunction | None = None
        self.end: TensorNode | None = None
        self._count = 0
        self._position: TensorNode | None = None
        self._lengths: dict[Length, Any] = {}

    def emit(self, op: str, *args: Any, **attributes: Any) -> Any:
        return self.emitter.call(op, *args, **attributes)

    def known(self, node: TensorNode) -> np.ndarray | None:
        """Returns the array of a tensor that does not depend on inputs, which may be large."""
        return known_array(node, self.catalogue)

    def refuse(self, why: str, help: str = "") -> UnsupportedError:
        """Returns the error TM2025 at the current call."""
        call = self.call
        assert call is not None
        return UnsupportedError(
            "TM2025",
            f"{call.function} {why}",
            source=call.source,
            excerpt=describe(call),
            notes=[("help", help)] if help else [],
        )

    def input(self, name: str, shape: Sequence[int], dtype: Any) -> TensorNode:
        node = TensorNode(self.graph.free_name(name), tuple(shape), np.dtype(dtype))
        self.graph.add_input(node, name)
        return node

    # ---- states

    def state(self, shape: Sequence[int], dtype: Any) -> TensorNode:
        """Returns a new input, zeros in the first step; ``keep`` has to be called with its successor."""
        self._count += 1
        return self.input(f"state_{self._count - 1}", shape, dtype)

    def keep(self, state: TensorNode, after: TensorNode) -> None:
        self.states.append((state, after))

    def buffered(self, x: Timed, past: int) -> TensorNode:
        """Returns the chunk with the ``past`` frames before it, which become a state."""
        if past <= 0:
            return self.cut(x.node, x.axis, -past)
        shape = [past if axis == x.axis else size for axis, size in enumerate(x.node.type.shape)]
        state = self.state(shape, x.node.type.dtype)
        whole: TensorNode = self.emit("aten::cat", [state, x.node], dim=x.axis)
        self.keep(state, self.cut(whole, x.axis, -past))
        return whole

    def cut(self, node: TensorNode, axis: int, start: int, end: int = 0, step: int = 1) -> TensorNode:
        """Returns a slice; ``end`` is 0 for the end of the axis, and negative bounds count from there."""
        extent = node.type.shape[axis]
        if (start, end, step) == (0, 0, 1):
            return node
        bounds = [start if start >= 0 else extent + start, end if end > 0 else extent + end]
        made: TensorNode = self.emit("aten::slice", node, dim=axis, start=bounds[0], end=bounds[1], step=step)
        return made

    # ---- alignment

    def delayed(self, x: Timed, delay: int) -> Timed:
        """Returns the tensor with a greater delay; frames that padding put before the stream are zeros."""
        if delay == x.delay:
            return x
        whole = self.buffered(x, delay - x.delay)
        return x._replace(node=self.cut(whole, x.axis, 0, x.delay - delay), delay=delay)

    def nonnegative(self, x: Timed) -> Timed:
        """Returns the tensor with a delay of at least 0."""
        return self.delayed(x, max(x.delay, 0))

    def aligned(self, tensors: Sequence[Timed]) -> list[Timed]:
        """Returns the tensors with the delay of the last of them."""
        if len({each.frames for each in tensors}) > 1:
            raise self.refuse("combines tensors of different frame rates")
        delay = max(each.delay for each in tensors)
        return [self.delayed(each, delay) for each in tensors]

    # ---- the position in the stream

    @property
    def position(self) -> TensorNode:
        """Returns the number of frames of the first input before this step, an int32[1]."""
        if self._position is None:
            self._position = self.input("position", [1], np.int32)
        return self._position

    def finish(self) -> None:
        """Adds the state that counts frames, where it is used; it stops growing where no end is compared.

        Then it stays a multiple of the fewest frames.
        """
        if self._position is not None:
            following = self.emit("aten::add", self._position, self.int32([self.chunk]))
            if self.end is None:
                most = (MOST_FRAMES if self.counts_on else ENOUGH) // self.least * self.least
                following = self.emit("aten::minimum", following, self.int32([most]))
            self.keep(self._position, following)

    def int32(self, values: Sequence[Any]) -> Any:
        """Returns a vector of sizes."""
        return self.emitter.constant(list(values), np.int32)

    def numbers(self, start: int, end: Size) -> Any:
        """Returns ``start``, ``start + 1``, ... below ``end``."""
        if isinstance(end, int):
            return self.int32(range(start, end))
        made = self.emit("aten::to", self.emit("aten::arange", 0, end - start, 1), dtype="int32")
        return self.emit("aten::add", made, self.int32([start]))

    def first(self, x: Timed) -> Any:
        """Returns the frame of the stream with which the chunk starts, an int32[1], negative before it."""
        made, rate = self.position, Fraction(example(x.frames), example(self.chunk))
        if rate.numerator > 1:
            made = self.emit("aten::mul", made, self.int32([rate.numerator]))
        if rate.denominator > 1:
            made = self.emit("aten::floor_divide", made, self.int32([rate.denominator]))
        return self.emit("aten::sub", made, self.int32([x.delay])) if x.delay else made

    def length(self, length: Length) -> Any:
        """Returns the length of a tensor as a node, from the input ``end``."""
        if not length.steps:
            if self.end is None:
                self.end = self.input(END, [1], np.int32)
            return self.end
        if length not in self._lengths:
            before, multiplier, divisor, after = length.steps[-1]
            value = self.length(Length(length.steps[:-1]))
            rules = (
                ("add", before, 0),
                ("mul", multiplier, 1),
                ("floor_divide", divisor, 1),
                ("add", after, 0),
            )
            for name, amount, neutral in rules:
                if amount != neutral:
                    value = self.emit(f"aten::{name}", value, self.int32([amount]))
            self._lengths[length] = value
        return self._lengths[length]

    def cleaned(self, x: Timed, left: bool, right: bool, value: float = 0.0) -> Timed:
        """Returns the tensor with ``value`` before the start and after the end, as requested."""
        left = left and x.delay > 0
        if (x.is_clean and not value) or not (left or right):
            return x
        shape = [x.frames if axis == x.axis else 1 for axis in range(x.node.type.rank)]
        outside = self.emitter.constant(np.full([1] * len(shape), value, x.node.type.dtype))
        valid = self.emit("aten::reshape", self.valid(x, 0, right), shape)
        return x._replace(node=self.emit("aten::where", valid, x.node, outside), is_clean=right and not value)

    def valid(self, x: Timed, past: int, until_end: bool) -> Any:
        """Returns which frames, of a chunk and of the ``past`` ones before it, are frames of the stream."""
        place = self.emit("aten::add", self.first(x), self.numbers(-past, x.frames))
        valid = self.emit("aten::ge", place, self.int32([0]))
        if until_end:
            before_end = self.emit("aten::lt", place, self.length(x.length))
            before_end = self.emit(
                "aten::logical_or", before_end, self.emit("aten::eq", self.end, self.int32([0]))
            )
            valid = self.emit("aten::logical_and", valid, before_end)
        return valid

    # ---- windows

    def padded(self, x: Timed, left: int, right: int) -> Timed:
        """Returns the tensor with zeros before its start and after its end; negative amounts crop."""
        x = self.cleaned(x, left > 0, right > 0)
        return x._replace(
            delay=x.delay - left,
            length=x.length.then(after=left + right),
            is_clean=x.is_clean and left >= 0 and right >= 0,
        )

    def windows(self, x: Timed, size: int, stride: int, emit: Callable[[TensorNode], TensorNode]) -> Timed:
        """Returns what ``emit`` makes of windows of ``size`` frames, one each ``stride`` frames."""
        if x.frames % stride:
            raise ChunkMisfit(stride // int(np.gcd(example(x.frames), stride)))
        delay = max(0, -((stride - size - x.delay) // stride))
        past = stride * delay - x.delay
        whole = self.buffered(x, past)
        # the last frames are not in a window yet
        node = emit(self.cut(whole, x.axis, 0, size - stride - past))
        length = x.length.then(-size, 1, stride, 1) if stride > 1 else x.length.then(after=1 - size)
        return Timed(node, x.axis, x.frames // stride, delay, length)

    def overlap_add(
        self,
        x: Timed,
        size: int,
        stride: int,
        crop: tuple[int, int],
        emit: Callable[[TensorNode], TensorNode],
        axis: int | None = None,
    ) -> Timed:
        """Returns the sum of what ``emit`` makes of the frames: ``size`` frames of each, ``stride`` apart.

        ``crop`` are the frames removed at the start and at the end; a negative number adds some. ``axis`` is
        that of time in what ``emit`` returns, by default that of ``x``.
        """
        x = self.nonnegative(x)
        past = -(-size // stride) - 1
        x = self.cleaned(x, past > 0, size - crop[1] > stride)
        whole = emit(self.buffered(x, past))
        axis = x.axis if axis is None else axis
        node = self.cut(whole, axis, past * stride, -max(size - stride, 0))
        length = x.length.then(-1, stride, 1, size - crop[0] - crop[1])
        return Timed(node, axis, x.frames * stride, x.delay * stride + crop[0], length)
