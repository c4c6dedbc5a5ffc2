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
    past, later, band = _band(b, call, mask, arguments)
    query, key, value = b.aligned([b.nonnegative(each) for each in tensors])
    frames, delay = query.frames, query.delay
    query = b.delayed(query, delay + later)
    keys, values = (b.buffered(each, past + later) for each in (key, value))
    mask = _mask(b, query, key, past, later, band)
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


def _band(
    b: StepBuilder, call: CallFunction, mask: np.ndarray | None, arguments: Arguments
) -> tuple[int, int, np.ndarray]:
    """Returns how many frames the mask opens before and after a query, and its value at these distances.

    Raises UnsupportedError TM2025 for a mask that has no bound, or that depends on positions.
    """
    frames = shape_of(call.args[0])[-2]
    if mask is None or shape_of(call.args[1])[-2] != frames:
        what = "all frames before each frame" if arguments["is_causal"] else "the whole stream"
        raise b.refuse(f"attends to {what}, which no state of a fixed size can hold", _HELP)
    mask = np.broadcast_to(mask, (*mask.shape[:-2], frames, frames))
    rows, columns = np.nonzero(_is_open(mask).any(tuple(range(mask.ndim - 2))))
    past, later = max(int((rows - columns).max()), 0), max(int((columns - rows).max()), 0)
    closed = False if mask.dtype == bool else np.asarray(-np.inf, mask.dtype)
    band = np.full((*mask.shape[:-2], past + later + 1), closed, mask.dtype)
    for distance in range(-past, later + 1):
        values = np.diagonal(mask, distance, -2, -1)
        if not (values == values[..., :1]).all():
            raise b.refuse("has a mask that depends on the positions of frames", _HELP)
        band[..., past + distance] = values[..., 0]
    if past >= frames - 1 or later >= frames - 1:
        raise b.refuse("attends to all frames of the example, which no state of a fixed size can hold", _HELP)
    return past, later, band


def _mask(b: StepBuilder, query: Timed, key: Timed, past: int, later: int, band: np.ndarray) -> Any:
    """Returns the mask of a chunk of queries over the keys of the past and of the chunk.

    Key k of the buffer is frame k - past - later of the chunk, query i is frame i - later: keys outside of
    the stream are closed.
    """
    is_bool = band.dtype == bool
    closed = np.asarray(False if is_bool else np.finfo(band.dtype).min, band.dtype)
    count, width = past + later + query.frames, past + later + 1
    edge = np.full((*band.shape[:-1], 1), closed, band.dtype)
    table = b.emitter.constant(np.concatenate([edge, np.maximum(band, closed), edge], -1))
    rows = b.emit("aten::reshape", b.numbers(0, query.frames), [query.frames, 1])
    distance = b.emit("aten::sub", b.numbers(1, count + 1), rows)
    distance = b.emit("aten::clamp", distance, min=0, max=width + 1)
    index = b.emit("aten::reshape", distance, [query.frames * count])
    made = b.emit("aten::index_select", table, dim=band.ndim - 1, index=index)
    made = b.emit("aten::reshape", made, [*band.shape[:-1], query.frames, count])
    valid = b.valid(key._replace(frames=query.frames), past + later, later > 0)
    valid = b.emit("aten::reshape", valid, [*[1] * band.ndim, count])
    if is_bool:
        return b.emit("aten::logical_and", made, valid)
    return b.emit("aten::where", valid, made, b.emitter.constant(closed.reshape(1)))


RULES: Mapping[str, Rule] = {ATTENTION: attention}
