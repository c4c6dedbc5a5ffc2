"""How attention with a bounded context becomes calls on chunks: keys and values of the past are states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.passes.rewriting import emitter_before
from tmconvert.streaming.builder import StepBuilder, known_array
from tmconvert.streaming.rules import Arguments, Rule, framewise, shape_of
from tmconvert.streaming.timed import Timed
from tmconvert.symbolics.op import Op

ATTENTION = "aten::scaled_dot_product_attention"
_HELP = (
    "limit the context with --context N, or use a constant mask that depends on the distance of frames only, "
    "and is closed beyond a number of frames"
)


def attention(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    names = ("query", "key", "value")
    tensors = [arguments[name] for name in names]
    if any(not isinstance(each, Timed) for each in tensors):
        raise b.refuse("attends to what is not a part of the stream")
    places = {each.axis - each.node.type.rank for each in tensors}
    if len(places) == 1 and max(places) < -2 and not isinstance(arguments["attn_mask"], Timed):
        return framewise(b, call, arguments, len(shape_of(call.outputs[0])) + places.pop())
    if places != {-2} or isinstance(arguments["attn_mask"], Timed):
        raise b.refuse("attends along other axes than that of time, with a mask that depends on the stream")
    mask = _offline_mask(b, call, arguments)
    past, later, bands = _bands(b, call, mask, arguments)
    query, key, value = b.aligned([b.nonnegative(each) for each in tensors])
    frames, delay = query.frames, query.delay
    query = b.delayed(query, delay + later)
    keys, values = (b.buffered(each, past + later) for each in (key, value))
    mask = _mask(b, query, key, past, later, bands)
    rest = {"attn_mask": mask, "is_causal": False}
    made = b.emit(call.function, **{**arguments, **rest, "query": query.node, "key": keys, "value": values})
    return Timed(made, made.type.rank - 2, frames, delay + later, query.length)


def _offline_mask(b: StepBuilder, call: CallFunction, arguments: Arguments) -> np.ndarray | None:
    """Returns the mask of the whole stream, limited to the context that the user states; None without one."""
    given = arguments["attn_mask"]
    mask = None if given is None else b.known(given)
    is_square = shape_of(call.args[0])[-2] == shape_of(call.args[1])[-2]
    if b.context is None or (given is not None and mask is None) or not is_square:
        return mask
    b.limited.append(call.output.name)
    return limited_mask(shape_of(call.args[0])[-2], mask, b.context, is_causal=arguments["is_causal"])


def limited_mask(frames: int, mask: np.ndarray | None, context: int, *, is_causal: bool) -> np.ndarray:
    """Returns a mask that opens ``context`` frames before each frame, of those that ``mask`` opens.

    Later frames stay open where the mask bounds them; without a bound they are closed.
    """
    mask = (
        np.ones((frames, frames), bool)
        if mask is None
        else np.broadcast_to(mask, (*mask.shape[:-2], frames, frames))
    )
    distance = np.arange(frames)[:, None] - np.arange(frames)
    later = -int(distance[_is_open(mask).any(tuple(range(mask.ndim - 2)))].min(initial=0))
    later = 0 if is_causal or later >= frames - 1 else later
    kept = (distance <= context) & (distance >= -later)
    closed = False if mask.dtype == bool else np.asarray(-np.inf, mask.dtype)
    return np.asarray(np.where(kept, mask, closed), mask.dtype)


def limit_context(graph: InternalGraph, contexts: Mapping[str, int], catalogue: Mapping[str, Op]) -> None:
    """Limits attentions to contexts by the names of their results, in the graph of a whole stream."""
    for call in list(graph):
        if isinstance(call, CallFunction) and call.function == ATTENTION and call.output.name in contexts:
            emitter = emitter_before(call, catalogue, "stream")
            mask = None if call.args[3] is None else known_array(call.args[3], catalogue)
            made = limited_mask(
                shape_of(call.args[0])[-2],
                mask,
                contexts[call.output.name],
                is_causal=call.kwargs["is_causal"],
            )
            options = {**call.kwargs, "is_causal": False}
            graph.set_arguments(call, (*call.args[:3], emitter.constant(made)), options)


def _is_open(mask: np.ndarray) -> np.ndarray:
    return mask if mask.dtype == bool else mask > -1e4


def _bands(
    b: StepBuilder, call: CallFunction, mask: np.ndarray | None, arguments: Arguments
) -> tuple[int, int, np.ndarray]:
    """Returns how many frames the mask opens before and after a query, and its values at these distances.

    The values are [..., period, distances]: queries a period apart have the same ones, as in attention by
    blocks. Raises UnsupportedError TM2025 for a mask that has no bound, or that depends on positions.
    """
    frames = shape_of(call.args[0])[-2]
    if mask is None or shape_of(call.args[1])[-2] != frames:
        what = "all frames before each frame" if arguments["is_causal"] else "the whole stream"
        raise b.refuse(f"attends to {what}, which no state of a fixed size can hold", _HELP)
    mask = np.broadcast_to(mask, (*mask.shape[:-2], frames, frames))
    rows, columns = np.nonzero(_is_open(mask).any(tuple(range(mask.ndim - 2))))
    past, later = max(int((rows - columns).max()), 0), max(int((columns - rows).max()), 0)
    if past >= frames - 1 or later >= frames - 1:
        raise b.refuse("attends to all frames of the example, which no state of a fixed size can hold", _HELP)
    closed = False if mask.dtype == bool else np.asarray(-np.inf, mask.dtype)
    edge = [(0, 0)] * (mask.ndim - 1)
    wide = np.pad(mask, [*edge, (past, later)], constant_values=closed)
    steps = np.arange(frames)[:, None] + np.arange(
        past + later + 1
    )  # of each row, from its first distance on
    bands: np.ndarray = wide[..., np.arange(frames)[:, None], steps]
    for period in range(1, frames // 3 + 1):
        inside = (steps >= past) & (steps < past + frames)  # distances that both queries have in the example
        both = inside[period:] & inside[:-period]
        if (np.where(both, bands[..., period:, :] == bands[..., :-period, :], True)).all():
            return past, later, _complete(bands, inside, period)
    raise b.refuse("has a mask that depends on the positions of frames", _HELP)


def _complete(bands: np.ndarray, inside: np.ndarray, period: int) -> np.ndarray:
    """Returns the values of a period, each of a query that has the distance within the example."""
    found = bands[..., :period, :].copy()
    for row in range(period, bands.shape[-2]):
        is_missing = inside[row] & ~inside[row % period : row : period].any(0)
        found[..., row % period, is_missing] = bands[..., row, is_missing]
    return found


def _mask(b: StepBuilder, query: Timed, key: Timed, past: int, later: int, bands: np.ndarray) -> Any:
    """Returns the mask of a chunk of queries over the keys of the past and of the chunk.

    Key k of the buffer is frame k - past - later of the chunk, query i is frame i - later: keys outside of
    the stream are closed.
    """
    is_bool, period = bands.dtype == bool, bands.shape[-2]
    closed = np.asarray(False if is_bool else np.finfo(bands.dtype).min, bands.dtype)
    count, width = past + later + query.frames, past + later + 3
    edge = np.full((*bands.shape[:-1], 1), closed, bands.dtype)
    table = np.concatenate([edge, np.maximum(bands, closed), edge], -1)
    rows = b.emit("aten::reshape", b.numbers(0, query.frames), [query.frames, 1])
    distance = b.emit("aten::sub", b.numbers(1, count + 1), rows)
    distance = b.emit("aten::clamp", distance, min=0, max=width - 1)
    if period > 1:
        b.counts_on = True
        number = b.emit("aten::remainder", b.emit("aten::add", b.first(query), rows), b.int32([period]))
        distance = b.emit("aten::add", distance, b.emit("aten::mul", number, b.int32([width])))
    index = b.emit("aten::reshape", distance, [query.frames * count])
    whole = b.emitter.constant(table.reshape(*table.shape[:-2], period * width))
    made = b.emit("aten::index_select", whole, dim=bands.ndim - 2, index=index)
    made = b.emit("aten::reshape", made, [*bands.shape[:-2], query.frames, count])
    valid = b.valid(key._replace(frames=query.frames), past + later, later > 0)
    valid = b.emit("aten::reshape", valid, [*[1] * (bands.ndim - 1), count])
    if is_bool:
        return b.emit("aten::logical_and", made, valid)
    return b.emit("aten::where", valid, made, b.emitter.constant(closed.reshape(1)))


RULES: Mapping[str, Rule] = {ATTENTION: attention}
