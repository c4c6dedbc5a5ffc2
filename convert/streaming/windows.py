"""How convolutions and pools over time become calls on chunks and on the frames before them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.streaming.builder import StepBuilder
from tmconvert.streaming.rules import Arguments, Rule, framewise
from tmconvert.streaming.timed import Timed
from tmconvert.symbolics.registry import trait_of
from tmconvert.symbolics.traits import Bounded, Clamp


def _spatial(b: StepBuilder, x: object) -> int:
    """Returns the place of the axis of time among the spatial axes."""
    if not isinstance(x, Timed) or x.axis == 1:
        raise b.refuse("takes the stream as its channels or weights", "state the axis of time with --time")
    return x.axis - 2


def _at(values: list[int], place: int, value: int) -> list[int]:
    return [*values[:place], value, *values[place + 1 :]]


def _emitter(b: StepBuilder, call: CallFunction, options: Arguments) -> Callable[[TensorNode], TensorNode]:
    """Returns the function that emits the call for frames ``x``."""

    def emit(node: TensorNode) -> TensorNode:
        made: TensorNode = b.emit(call.function, **{**options, "x": node})
        return made

    return emit


def _filter(arguments: Arguments, place: int) -> tuple[int, int, int]:
    """Returns the size in frames, the stride and the padding of a convolution along time."""
    size = (arguments["weight"].type.shape[place + 2] - 1) * arguments["dilation"][place] + 1
    return size, arguments["stride"][place], arguments["padding"][place]


def convolution(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    x: Timed = arguments["x"]
    place = _spatial(b, x)
    if place < 0:
        return framewise(b, call, arguments, 0)
    size, stride, padding = _filter(arguments, place)
    options = {**arguments, "padding": _at(arguments["padding"], place, 0)}

    return b.windows(b.padded(x, padding, padding), size, stride, _emitter(b, call, options))


def transposed(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    x: Timed = arguments["x"]
    place = _spatial(b, x)
    if place < 0:
        return framewise(b, call, arguments, 0)
    size, stride, padding = _filter(arguments, place)
    more = arguments["output_padding"]
    options = {
        **arguments,
        "padding": _at(arguments["padding"], place, 0),
        "output_padding": _at(more, place, max(0, stride - size)),
    }

    ends = padding, padding - more[place]
    return b.overlap_add(x, size, stride, ends, _emitter(b, call, options))


def pool(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    x: Timed = arguments["x"]
    place = _spatial(b, x)
    if place < 0:
        return framewise(b, call, arguments, 0)
    kernel, stride, padding = (arguments[name][place] for name in ("kernel_size", "stride", "padding"))
    size = (kernel - 1) * arguments.get("dilation", [1] * (place + 1))[place] + 1
    if padding and not arguments.get("count_include_pad", _is_positive(call.args[0])):
        raise b.refuse(
            "is padded at the ends of the stream by other values than zeros",
            "pool without padding along the axis of time, pool after a relu, or use count_include_pad=True",
        )
    options = {**arguments, "padding": _at(arguments["padding"], place, 0), "ceil_mode": False}

    return b.windows(b.padded(x, padding, padding), size, stride, _emitter(b, call, options))


def _is_positive(node: object) -> bool:
    """Whether padding with zeros is padding with the least value, for a maximum."""
    call = getattr(node, "expr", None)
    if not isinstance(call, CallFunction):
        return False
    bounded, clamp = trait_of(call, Bounded), trait_of(call, Clamp)
    low = bounded.low if bounded else clamp.bounds(call.kwargs)[0] if clamp else None
    return low is not None and low >= 0


def unfold(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Frames of windows, along the axis of time."""
    x, (size, step) = arguments["x"], (arguments["size"], arguments["step"])
    if arguments["dimension"] % x.node.type.rank != x.axis:
        return framewise(b, call, arguments, x.axis)
    return b.windows(
        x, size, step, lambda node: b.emit(call.function, node, dimension=x.axis, size=size, step=step)
    )


def fold(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Overlap-add of windows along one axis, as in an inverse STFT."""
    x: Timed = arguments["x"]
    (height, _), (rows, taps), step = (arguments[name] for name in ("output_size", "kernel_size", "stride"))
    if not isinstance(x, Timed) or x.axis != 2 or (height, rows) != (1, 1):
        raise b.refuse("adds windows along other axes than that of time")
    size, stride, padding = (taps - 1) * arguments["dilation"][1] + 1, step[1], arguments["padding"][1]

    def emit(node: TensorNode) -> TensorNode:
        width = max(size, stride) + (node.type.shape[2] - 1) * stride
        options = {**arguments, "x": node, "output_size": [1, width], "padding": [0, 0]}
        made: TensorNode = b.emit(call.function, **options)
        return made

    return b.overlap_add(x, size, stride, (padding, padding), emit, 3)


def stft(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """One spectrum each ``hop_length`` frames."""
    x: Timed = arguments["x"]
    if not isinstance(x, Timed) or x.axis != x.node.type.rank - 1:
        raise b.refuse("transforms another axis than that of time", "state the axis of time with --time")
    made = b.windows(x, arguments["n_fft"], arguments["hop_length"], _emitter(b, call, arguments))
    parts: Any = made.node  # real and imaginary
    return [made._replace(node=each, axis=each.type.rank - 1) for each in parts]


RULES: Mapping[str, Rule] = {
    **{f"aten::conv{axes}d": convolution for axes in (1, 2, 3)},
    **{f"aten::conv_transpose{axes}d": transposed for axes in (1, 2, 3)},
    **{f"aten::{kind}_pool{axes}d": pool for axes in (1, 2, 3) for kind in ("avg", "max")},
    "aten::unfold": unfold,
    "aten::col2im": fold,
    "tm::stft": stft,
}
