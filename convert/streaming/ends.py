"""How frames are added to a stream at its ends, cut off, and replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.streaming.builder import StepBuilder
from tmconvert.streaming.probing import frame_by_frame
from tmconvert.streaming.rules import Arguments, Rule, along, framewise, shape_of, timed_of, uniform, widened
from tmconvert.streaming.timed import Timed


def cat(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Constant zeros before or after the stream are padding."""
    tensors, (x, *others) = arguments["tensors"], timed_of(arguments)
    if arguments["dim"] % x.node.type.rank != x.axis:
        axis = x.axis - x.node.type.rank
        same = [each if isinstance(each, Timed) else widened(b, each, axis, x.frames) for each in tensors]
        return along(b, call, {**arguments, "tensors": same})
    known = [None if isinstance(each, Timed) else b.emitter.known(each) for each in tensors]
    if others or any(array is not None and array.any() for array in known) or known.count(None) > 1:
        raise b.refuse("joins other frames to the stream than constant zeros")
    place = known.index(None)
    sizes = [0 if array is None else array.shape[x.axis] for array in known]
    return b.padded(x, sum(sizes[:place]), sum(sizes[place:]))


def slice_(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Frames that are cut off at the start become a delay."""
    x, extent = arguments["x"], shape_of(call.args[0])
    if arguments["dim"] % len(extent) != x.axis:
        return along(b, call, arguments)
    frames = extent[x.axis]
    start, end, step = slice(arguments["start"], arguments["end"], arguments["step"]).indices(frames)
    x = b.padded(x, -start, end - frames)
    if step == 1:
        return x
    return b.windows(x, 1, step, lambda node: b.cut(node, x.axis, 0, 0, step))


def pad(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    x, amounts = arguments["x"], list(arguments["pad"])
    place = 2 * x.axis
    left, right = amounts[place : place + 2]
    mode = arguments["mode"]
    if (left > 0 or right > 0) and (mode == "circular" or arguments["value"]):
        how = "repeats the other end" if mode == "circular" else "pads with a value"
        raise b.refuse(f"{how} at the ends of the stream", "pad with zeros along the axis of time")
    amounts[place : place + 2] = [0, 0]
    if any(amounts):
        made = framewise(b, call, {**arguments, "pad": amounts}, x.axis)
        x = made._replace(is_clean=x.is_clean and not arguments["value"])
    x = b.padded(x, min(left, 0), min(right, 0)) if min(left, right) < 0 else x
    left, right = max(left, 0), max(right, 0)
    if mode == "constant" or not (left or right):
        return b.padded(x, left, right) if left or right else x
    return repeated_ends(b, x, left, right, 2 if mode == "reflect" else 1)


def repeated_ends(b: StepBuilder, x: Timed, left: int, right: int, distance: int) -> Timed:
    """Returns the tensor padded by frames of its own: the mirrored ones (``distance`` 2) or the end (1).

    The first padded frames need frames that come later, which delays all of them.
    """
    x = b.nonnegative(x)
    ahead, past = distance * left, distance * right
    whole = b.buffered(x, ahead + past)
    start = b.emit("aten::sub", b.first(x), b.int32([ahead]))
    place = b.emit("aten::add", start, b.numbers(0, x.frames))
    zero = b.int32([0])
    place = b.emit("aten::abs", place) if distance == 2 else b.emit("aten::maximum", place, zero)
    if right:
        last = b.emit("aten::sub", b.length(x.length), b.int32([1]))
        if distance == 2:
            last = b.emit("aten::sub", b.emit("aten::mul", last, b.int32([2])), place)
        within = b.emit("aten::minimum", place, last)
        place = b.emit("aten::where", b.emit("aten::gt", b.end, zero), within, place)
    index = b.emit("aten::sub", place, b.emit("aten::sub", start, b.int32([past])))
    most = whole.type.shape[x.axis] - 1
    index = b.emit("aten::maximum", b.emit("aten::minimum", index, b.int32([most])), zero)
    node: TensorNode = b.emit("aten::index_select", whole, dim=x.axis, index=index)
    return Timed(node, x.axis, x.frames, x.delay + ahead - left, x.length.then(after=left + right))


def slice_scatter(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Frames take the place of others from one on, up to the end or a number of frames before it."""
    base, new, step = arguments["x"], arguments["src"], arguments["step"]
    frames = shape_of(call.args[0])
    dim = arguments["dim"] % len(frames)
    if not isinstance(new, Timed) or new.axis != dim or step != 1:
        return frame_by_frame(b, call, arguments)
    start, end, _ = slice(arguments["start"], arguments["end"]).indices(frames[dim])
    padded = b.padded(new, start, frames[dim] - end)
    if not isinstance(base, Timed):
        known = b.known(base)
        if known is not None and not known.any():
            return padded
        base = uniform(b, base, dim - len(frames))
    elif base.axis != dim:
        raise b.refuse("joins streams along other axes than that of time")
    padded = b.nonnegative(padded)
    if isinstance(base, Timed):
        padded, base = b.aligned([padded, base])
    place = padded._replace(delay=padded.delay + start, length=new.length)
    shape = [padded.frames if axis == dim else 1 for axis in range(len(frames))]
    is_new = b.emit("aten::reshape", b.valid(place, 0, end < frames[dim]), shape)
    node = b.emit("aten::where", is_new, padded.node, base.node if isinstance(base, Timed) else base)
    return padded._replace(node=node, is_clean=False)


RULES: Mapping[str, Rule] = {
    "aten::cat": cat,
    "aten::slice": slice_,
    "aten::pad": pad,
    "aten::slice_scatter": slice_scatter,
}
