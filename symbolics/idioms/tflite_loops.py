"""TFLite's WHILE. Its subgraphs can access only constants from outside: all other values are inputs and
outputs of each step.

A short scan is unrolled. For a longer one an iteration of the WHILE does several steps, since each iteration
copies the stacked outputs, and sets up XNNPACK again; on the other hand XNNPACK packs the weights of each
unrolled step, so that a loop of few weights has more of them. Beyond ``MAX_TURNS`` a turn is a scan of its
own, so that what is copied stays small. GPUs run no WHILE, but what is unrolled. The numbers are measured:
with them an LSTM of 64 to 256 features takes half the time of LiteRT's UNIDIRECTIONAL_SEQUENCE_LSTM, whose
states, besides, outlast the run, and whose last cell state cannot be had; its LSTM, an operator of one step,
takes as long, and writes its results over the states that it is given;
a step of an LSTM of 128 features takes 4 us among 128 as among 512, and 10 to 15 us among thousands.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms import tflite

if TYPE_CHECKING:
    from tmconvert.lowering.target_graph import Value
    from tmconvert.targets.tflite.builder import TfliteBuilder


# steps: the least, the most, and the bytes of weights that all of them may pack
UNROLLED = (8, 64, 2 << 20)
STEPS_A_TURN = (4, 16, 320 << 10)
MAX_TURNS = 64
TURNS_WITHIN = 16
BLOCK = 64


def while_(
    g: TfliteBuilder,
    state: Sequence[Value],
    goes_on: Callable[[TfliteBuilder, list[Value]], Value],
    step: Callable[[TfliteBuilder, list[Value]], list[Value]],
) -> list[Value]:
    """Emits a loop over ``state``: ``step`` returns the next state, ``goes_on`` whether to continue.

    State that a step returns unchanged is not copied; state at another position is.
    """

    def written(inner: TfliteBuilder, formals: list[Value]) -> list[Value]:
        after: list[Value] = []
        for value, formal in zip(step(inner, formals), formals, strict=True):
            is_moved = value.is_constant or value in after or (value in formals and value is not formal)
            after.append(inner.identity(value) if is_moved else value)
        return after

    graphs = {
        "cond_subgraph_index": g.subgraph("condition", state, lambda *given: [goes_on(*given)]),
        "body_subgraph_index": g.subgraph("step", state, written),
    }
    results = g.op("WHILE", *state, shapes=[value.shape for value in state], **graphs)
    for result, value in zip(results, state, strict=True):
        result.dtype = value.dtype
    return list(results)


def computed(inputs: Sequence[Value], carried: int = 0) -> list[Value]:
    """Returns the inputs of a subgraph: the first ``carried`` ones, then all that are not constants."""
    return [value for i, value in enumerate(inputs) if i < carried or not value.is_constant]


def completed(inputs: Sequence[Value], given: Sequence[Value], carried: int = 0) -> list[Value]:
    """Returns all inputs of a subgraph: its own in place of the values ``computed``, and the constants."""
    waiting = iter(given)
    return [value if i >= carried and value.is_constant else next(waiting) for i, value in enumerate(inputs)]


def scan(
    g: TfliteBuilder, state: list[Value], sliced: list[Value], around: list[Value],
    step: Callable[..., list[Value]], rows: list[TensorType],
) -> list[Value]:  # fmt: skip
    """Emits a scan over the slices of ``sliced``: returns the last state, and the stacked outputs.

    ``step(g, state, slices, around)`` gives the next state and then the rows, of these types.
    """
    count = sliced[0].shape[0]
    if isinstance(count, Dim):
        return _in_blocks(g, state, sliced, around, step, rows)
    if count <= _steps(UNROLLED, around):
        return _unrolled(g, state, sliced, around, step)
    at_once = _steps(STEPS_A_TURN, around) & ~3  # a multiple of 4, which leaves fewer remainders
    while count > MAX_TURNS * at_once:
        at_once *= TURNS_WITHIN
    looped = count - count % at_once
    results = _looped(g, state, [_part(g, x, 0, looped) for x in sliced], around, step, rows, at_once)
    if looped == count:
        return results
    state, stacked = results[: len(state)], results[len(state) :]
    rest = [_part(g, x, looped, count) for x in sliced]
    results = scan(g, state, rest, around, step, rows)
    both = zip(stacked, results[len(state) :], strict=True)
    return [*results[: len(state)], *(_joined(g, list(parts)) for parts in both)]


def _steps(limits: tuple[int, int, int], around: Sequence[Value]) -> int:
    """Returns how many steps have all weights within the limit; the least where no weights are known."""
    least, most, within = limits
    size = sum(value.nbytes for value in around)
    return max(least, min(most, within // size)) if size else least


def _unrolled(
    g: TfliteBuilder, state: list[Value], sliced: list[Value], around: list[Value], step: Callable[..., Any]
) -> list[Value]:
    """Slices are rows of a matrix of all, as are the rows of the results: none has a RESHAPE of its own."""
    count = sliced[0].shape[0]
    flat = [
        tflite.reshaped(g, x, (count * x.shape[1], *x.shape[2:])) if len(x.shape) > 1 else x for x in sliced
    ]
    steps = []
    for i in range(count):
        slices = []
        for x, whole in zip(sliced, flat, strict=True):
            each = whole.shape[0] // count
            slices.append(tflite.reshaped(g, _part(g, whole, i * each, (i + 1) * each), x.shape[1:]))
        results = step(g, state, slices, around)
        state = results[: len(state)]
        steps.append(results[len(state) :])
    return [*state, *(_stacked(g, list(rows)) for rows in zip(*steps, strict=True))]


def _stacked(g: TfliteBuilder, rows: list[Value]) -> Value:
    shape = rows[0].shape
    parts = rows if shape else [tflite.reshaped(g, row, (1,)) for row in rows]
    return tflite.reshaped(g, _joined(g, parts), (len(rows), *shape))


def _looped(
    g: TfliteBuilder, state: list[Value], sliced: list[Value], around: list[Value],
    step: Callable[..., list[Value]], rows: list[TensorType], at_once: int, start: Value | None = None,
) -> list[Value]:  # fmt: skip
    """A WHILE of turns of ``at_once`` steps. What a turn reads and what it writes is a row of a matrix.

    ``start`` [1] is the first turn, 0 without it; rows before it are zeros.
    """
    turns = sliced[0].shape[0] // at_once
    end = [g.ints([turns])]  # a constant, or where the number of steps is open a value
    stacks = [(turns, at_once * row.size) for row in rows]
    buffers = [
        g.op("FILL", g.ints(stack), g.const(0, row.dtype), shape=stack, dtype=row.dtype)
        for stack, row in zip(stacks, rows, strict=True)
    ]
    matrices = [tflite.reshaped(g, x, (turns, at_once * math.prod(x.shape[1:]))) for x in sliced]
    parts = [computed(end), state, buffers, matrices, computed(around)]
    ends = list(itertools.accumulate(map(len, parts), initial=1))

    def goes_on(inner: TfliteBuilder, formals: list[Value]) -> Value:
        return inner.op("LESS", formals[0], completed(end, formals[1:])[0], dtype=bool)

    def turn(inner: TfliteBuilder, formals: list[Value]) -> list[Value]:
        number = formals[0]
        last, before, filled, whole, given = (formals[start:end] for start, end in itertools.pairwise(ends))
        slices = [
            _row(inner, matrix, number, (at_once, *x.shape[1:]))
            for matrix, x in zip(whole, sliced, strict=True)
        ]
        results = scan(inner, before, slices, completed(around, given), step, rows)
        after, stacked = results[: len(state)], results[len(state) :]
        place = inner.op("PAD", number, inner.const(np.array([[0, 1]], inner.index_dtype)), shape=(2,))
        for i, (buffer, stack) in enumerate(zip(filled, stacked, strict=True)):
            row = tflite.reshaped(inner, stack, (1, buffer.shape[1]))
            filled[i] = inner.op("DYNAMIC_UPDATE_SLICE", buffer, row, place, shape=buffer.shape)
        return [inner.op("ADD", number, inner.ints([1])), *last, *after, *filled, *whole, *given]

    begin = g.ints([0]) if start is None else start
    results = while_(g, [begin, *itertools.chain(*parts)], goes_on, turn)[ends[1] :]
    filled = [
        tflite.reshaped(g, buffer, (turns * at_once, *row.shape))
        for buffer, row in zip(results[len(state) :], rows, strict=False)
    ]
    return [*results[: len(state)], *filled]


def _in_blocks(
    g: TfliteBuilder, state: list[Value], sliced: list[Value], around: list[Value],
    step: Callable[..., list[Value]], rows: list[TensorType],
) -> list[Value]:  # fmt: skip
    """Steps of an open number: a WHILE of blocks, in each a WHILE of ``BLOCK`` steps, one a turn.

    So all that is stacked is copied once a block, and in each step a block. The first block has fewer steps:
    what is sliced has rows before it that are skipped, and so have the results. Without steps there is one
    block, since LiteRT also prepares the steps of a loop that does not begin.
    """
    from tmconvert.ir.symbolic.clamps import maximum

    count = sliced[0].shape[0]
    blocks = (maximum(count, 1) + BLOCK - 1) // BLOCK
    missing = blocks * BLOCK - count

    def block(
        inner: TfliteBuilder, before: list[Value], slices: list[Value], given: list[Value]
    ) -> list[Value]:
        *own, start = before
        results = _looped(inner, own, slices, given, step, rows, 1, start)
        return [*results[: len(own)], inner.ints([0]), *results[len(own) :]]

    def after_end(x: Value) -> Value:
        is_mask = x.dtype == np.bool_ and not g.has("PAD", 5)
        rows = g.cast(x, np.dtype(np.int8)) if is_mask else x
        matrix = tflite.reshaped(g, rows, (count, math.prod(x.shape[1:])))
        widths = tflite.reshaped(g, g.ints([missing, 0, 0, 0]), (2, 2))
        padded = g.op("PAD", matrix, widths, shape=(blocks * BLOCK, matrix.shape[1]))
        padded = g.cast(padded, x.dtype) if is_mask else padded
        return tflite.reshaped(g, padded, (blocks, BLOCK, *x.shape[1:]))

    types = [TensorType(row.dtype, (BLOCK, *row.shape)) for row in rows]
    padded = [after_end(x) for x in sliced]
    results = _looped(g, [*state, g.ints([missing])], padded, around, block, types, 1)
    stacked = []
    for whole, row in zip(results[len(state) + 1 :], rows, strict=True):
        matrix = tflite.reshaped(g, whole, (blocks * BLOCK, row.size))
        part = g.op("SLICE", matrix, g.ints([missing, 0]), g.ints([count, row.size]), shape=(count, row.size))
        stacked.append(tflite.reshaped(g, part, (count, *row.shape)))
    return [*results[: len(state)], *stacked]


def _row(g: TfliteBuilder, matrix: Value, number: Value, shape: Sequence[int]) -> Value:
    row = g.op("GATHER", matrix, number, axis=0, shape=(1, matrix.shape[1]))
    return tflite.reshaped(g, row, shape)


def _part(g: TfliteBuilder, x: Value, start: int, end: int) -> Value:
    if (start, end) == (0, x.shape[0]):
        return x
    if x.data is not None:
        return g.const(x.data[start:end], name=x.name)
    shape = (end - start, *x.shape[1:])
    begin = [start] + [0] * (len(shape) - 1)
    return g.op("SLICE", x, g.ints(begin), g.ints(shape), shape=shape)


def _joined(g: TfliteBuilder, parts: list[Value]) -> Value:
    if len(parts) == 1:
        return parts[0]
    shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    return g.op("CONCATENATION", *parts, axis=0, shape=shape)
