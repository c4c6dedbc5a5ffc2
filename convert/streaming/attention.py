"""How attention with a bounded context becomes calls on chunks: keys and values of the past are states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction
from tmconvert.streaming.builder import StepBuilder
from tmconvert.streaming.rules import Arguments, Rule, framewise, shape_of
from tmconvert.streaming.timed import Timed

_HELP = (
    "use a constant mask that depends on the distance of frames only, and is closed beyond a number of frames"
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
    past, later, band = _band(b, call, arguments)
    query, key, value = b.aligned([b.nonnegative(each) for each in tensors])
    frames, delay = query.frames, query.delay
    query = b.delayed(query, delay + later)
    keys, values = (b.buffered(each, past + later) for each in (key, value))
    mask = _mask(b, query, key, past, later, band)
    rest = {"attn_mask": mask, "is_causal": False}
    made = b.emit(call.function, **{**arguments, **rest, "query": query.node, "key": keys, "value": values})
    return Timed(made, made.type.rank - 2, frames, delay + later, query.length)


def _band(b: StepBuilder, call: CallFunction, arguments: Arguments) -> tuple[int, int, np.ndarray]:
    """Returns how many frames the mask opens before and after a query, and its value at these distances.

    Raises UnsupportedError TM2025 for a mask that has no bound, or that depends on positions.
    """
    frames = shape_of(call.args[0])[-2]
    mask = None if arguments["attn_mask"] is None else b.emitter.known(arguments["attn_mask"])
    if mask is None or shape_of(call.args[1])[-2] != frames:
        what = "all frames before each frame" if arguments["is_causal"] else "the whole stream"
        raise b.refuse(f"attends to {what}, which no state of a fixed size can hold", _HELP)
    mask = np.broadcast_to(mask, (*mask.shape[:-2], frames, frames))
    is_open = mask if mask.dtype == bool else mask > -1e4
    rows, columns = np.nonzero(is_open.any(tuple(range(mask.ndim - 2))))
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


RULES: Mapping[str, Rule] = {"aten::scaled_dot_product_attention": attention}
