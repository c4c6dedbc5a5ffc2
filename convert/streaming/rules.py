"""How calls become calls on chunks: pointwise ops, ops along other axes than time, shapes and repetition.

A rule is a function of the builder, the call and its arguments by name, tensors that depend on time given as
Timed; it returns the results. ``RULES`` is the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.symbolic.dims import Size, example
from tmconvert.ir.tree import map_leaves
from tmconvert.streaming.builder import ChunkMisfit, StepBuilder
from tmconvert.streaming.frame_constants import frame_constant, last_frames
from tmconvert.streaming.timed import Timed

Arguments = dict[str, Any]
Rule = Callable[[StepBuilder, CallFunction, Arguments], Any]

# f(0) = 0
KEEPS_ZERO = frozenset(
    f"aten::{name}"
    for name in (
        *(
            "abs",
            "neg",
            "sqrt",
            "square",
            "floor",
            "ceil",
            "tanh",
            "relu",
            "expm1",
            "log1p",
            "erf",
            "sin",
            "tan",
        ),
        *("asin", "atan", "sinh", "asinh", "atanh", "sign", "trunc", "round", "silu", "mish", "hardswish"),
        *("softsign", "tanhshrink", "gelu", "elu", "selu", "celu", "leaky_relu", "hardshrink", "softshrink"),
        *("relu6", "to", "prelu", "permute", "reshape", "cat", "add", "sub", "mul", "maximum", "minimum"),
        *("slice", "select", "split_with_sizes", "unbind", "expand", "repeat", "flip", "glu", "index_select"),
        *("sum", "mean", "amax", "amin"),
    )
)


def timed_of(arguments: Arguments) -> list[Timed]:
    """Returns the arguments that depend on time."""
    found = []
    for value in arguments.values():
        found += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Timed)]
    return found


def with_nodes(arguments: Arguments, tensors: Sequence[Timed]) -> Arguments:
    """Returns the arguments with the nodes of ``tensors`` in place of those that depend on time."""
    left = iter(tensors)

    def node(leaf: Any) -> Any:
        return next(left).node if isinstance(leaf, Timed) else leaf

    return {
        name: [node(each) for each in value] if isinstance(value, list) else node(value)
        for name, value in arguments.items()
    }


def shape_of(node: Any) -> tuple[int, ...]:
    """Returns the shape of a tensor of the offline graph."""
    shape: tuple[int, ...] = node.type.shape
    return shape


def framewise(b: StepBuilder, call: CallFunction, arguments: Arguments, axis: int) -> Any:
    """Emits the call for a chunk: frame i of the results, along ``axis``, needs frame i of operands."""
    tensors = b.aligned(timed_of(arguments))
    is_kept = call.function in KEEPS_ZERO and not (
        call.function in ("aten::add", "aten::sub", "aten::maximum", "aten::minimum")
        and len(tensors) < len(call.args)
    )
    tensors = tensors if is_kept else [b.nonnegative(each) for each in tensors]
    first = tensors[0]
    made = b.emit(call.function, **with_nodes(arguments, tensors))
    is_clean = is_kept and all(each.is_clean for each in tensors)
    return map_leaves(lambda node: Timed(node, axis, first.frames, first.delay, first.length, is_clean), made)


def pointwise(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Operands are broadcast; a constant that differs from frame to frame is refused."""
    rank = len(shape_of(call.outputs[0]))
    places = {rank - each.node.type.rank + each.axis for each in timed_of(arguments)}
    if len(places) > 1:
        raise b.refuse("combines the frames of one tensor with other axes of another")
    place = places.pop()
    frames = shape_of(call.outputs[0])[place]
    if any(size != frames for size in _frames_of(b, call, arguments)):
        raise b.refuse("uses some frames of the stream for others")
    same = {
        name: value
        if isinstance(value, Timed) or not isinstance(value, TensorNode)
        else _by_frame(b, value, place - rank, timed_of(arguments))
        for name, value in arguments.items()
    }
    return framewise(b, call, same, place)


def operands(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Iterator[tuple[TensorNode, Any]]:
    """Yields the operands of the offline call, and those in the step model."""
    for name, node in b.catalogue[call.function].by_name(call.args, {}).items():
        nodes, values = (node, arguments[name]) if isinstance(node, list) else ([node], [arguments[name]])
        yield from (pair for pair in zip(nodes, values, strict=True) if pair[0] is not None)


def _frames_of(b: StepBuilder, call: CallFunction, arguments: Arguments) -> list[int]:
    """Returns the frames of the operands over time, in the offline model."""
    pairs = operands(b, call, arguments)
    return [shape_of(node)[each.axis] for node, each in pairs if isinstance(each, Timed)]


def _by_frame(b: StepBuilder, value: TensorNode, axis: int, tensors: Sequence[Timed]) -> TensorNode | Timed:
    """Returns a constant with one entry for all frames, or with those of the frames of a chunk."""
    known = b.known(value)
    place = value.type.rank + axis
    if known is None or place < 0 or known.shape[place] == 1 or not np.ptp(known, place).any():
        return uniform(b, value, axis)
    last = last_frames(known, place)
    late = [b.delayed(each, max(each.delay, last)) for each in tensors]
    made = frame_constant(b, known, place, b.aligned(late)[0])
    return uniform(b, value, axis) if made is None else made


def uniform(b: StepBuilder, value: TensorNode, axis: int) -> TensorNode:
    """Returns a tensor without time with one entry along the axis of time, which all frames have."""
    if value.type.rank < -axis or value.type.shape[axis] == 1:
        return value
    known = b.known(value)
    first = None if known is None else np.take(known, [0], axis)
    if known is None or first is None or not np.array_equal(known, np.broadcast_to(first, known.shape)):
        raise b.refuse(
            "combines the stream with other values for each of its frames, such as an embedding of positions",
            "leave positions to the caller as an input over time, or use relative positions",
        )
    made: TensorNode = b.emitter.constant(np.ascontiguousarray(first))
    return made


def along(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """An op along the axes ``dim``, other ones than that of time."""
    x: Timed = (
        arguments[next(iter(arguments))]
        if not isinstance(arguments.get("tensors"), list)
        else timed_of(arguments)[0]
    )
    rank = x.node.type.rank
    dims = arguments.get("dim", arguments.get("dims"))
    dims = list(range(rank)) if dims is None or dims == [] else dims
    found = {each % rank for each in (dims if isinstance(dims, list) else [dims])}
    if x.axis in found:
        raise b.refuse(
            "works along the axis of time, over the whole stream",
            "work over channels or over a window of frames, or use a recurrent or cumulative form",
        )
    axis = x.axis
    if len(shape_of(call.outputs[0])) < rank:
        axis -= sum(each < axis for each in found)
    return framewise(b, call, arguments, axis)


def widened(b: StepBuilder, value: TensorNode, axis: int, frames: Size) -> TensorNode:
    """Returns a constant that is the same for all frames along ``axis``, from the back, for ``frames``."""
    one = uniform(b, value, axis)
    size = [frames if i == one.type.rank + axis else extent for i, extent in enumerate(one.type.shape)]
    made: TensorNode = b.emit("aten::expand", one, size=size)
    return made


def permute(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    dims = [each % arguments["x"].node.type.rank for each in arguments["dims"]]
    return framewise(b, call, arguments, dims.index(arguments["x"].axis))


def reshape(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """The axis of time is kept, or frames are joined or divided."""
    x, before, after = arguments["x"], shape_of(call.args[0]), shape_of(call.outputs[0])
    outer, frames = prod(before[: x.axis]), before[x.axis]
    places = [axis for axis in range(len(after)) if prod(after[:axis]) == outer and after[axis] > 1]
    place = next((axis for axis in places), None)
    count = 0 if place is None else after[place]
    if place is None or (frames % count and count % frames) or prod(before) == 0:
        raise b.refuse("merges the axis of time with another one", "keep the axis of time on its own")
    inner, outer_rest = prod(before[x.axis + 1 :]), prod(after[place + 1 :])
    if count * outer_rest != frames * inner:
        raise b.refuse(
            "divides the frames of the stream among other axes", "keep the axis of time on its own"
        )
    if count < frames:
        factor = frames // count
        if x.frames % factor:
            raise ChunkMisfit(factor // int(np.gcd(example(x.frames), factor)))
        x = b.delayed(x, max(-(-x.delay // factor), 0) * factor)
        made = x._replace(
            frames=x.frames // factor, delay=x.delay // factor, length=x.length.then(0, 1, factor)
        )
    else:
        factor = count // frames
        made = x._replace(frames=x.frames * factor, delay=x.delay * factor, length=x.length.then(0, factor))
    shape = [made.frames if axis == place else size for axis, size in enumerate(after)]
    return made._replace(node=b.emit(call.function, x.node, shape=shape), axis=place)


def expand(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    x, name = arguments["x"], "size" if "size" in arguments else "repeats"
    sizes = list(arguments[name])
    place = len(sizes) - x.node.type.rank + x.axis
    if name == "repeats" and sizes[place] != 1:
        raise b.refuse("repeats the stream")
    sizes[place] = x.frames if name == "size" else 1
    return framewise(b, call, {**arguments, name: sizes}, place)


def upsample(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Each frame is repeated."""
    x, before, after = arguments["x"], shape_of(call.args[0]), shape_of(call.outputs[0])
    frames, count = before[x.axis], after[x.axis]
    if count % frames or x.axis < 2:
        raise b.refuse("resizes the axis of time by no integer")
    factor, x = count // frames, b.nonnegative(x)
    size = [x.frames * factor if axis == x.axis else after[axis] for axis in range(2, len(after))]
    node = b.emit(call.function, **{**arguments, "x": x.node, "output_size": size})
    return Timed(node, x.axis, x.frames * factor, x.delay * factor, x.length.then(0, factor), x.is_clean)


def repeat_interleave(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    x, repeats = arguments["x"], arguments["repeats"]
    before, after = shape_of(call.args[0]), shape_of(call.outputs[0])
    if arguments["dim"] is None or arguments["dim"] % len(before) != x.axis:
        return along(b, call, arguments)
    factor, x = after[x.axis] // before[x.axis], b.nonnegative(x)
    if isinstance(repeats, TensorNode):
        arguments = {**arguments, "repeats": uniform(b, repeats, -1)}
    node = b.emit(call.function, **{**arguments, "x": x.node})
    return Timed(node, x.axis, x.frames * factor, x.delay * factor, x.length.then(0, factor), x.is_clean)


def last_axes(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Layer norms, and embeddings of frames."""
    x = timed_of(arguments)[0]
    if x.axis >= x.node.type.rank - len(arguments.get("normalized_shape", ())):
        raise b.refuse(
            "normalizes over the axis of time", "normalize over channels, or with recorded statistics"
        )
    return framewise(b, call, arguments, x.axis)


def channelwise(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    if arguments["x"].axis == 1:
        raise b.refuse("takes the axis of time as its channels")
    return framewise(b, call, arguments, arguments["x"].axis)


def norm_over_time(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    if arguments["x"].axis == 0:
        return framewise(b, call, arguments, 0)
    raise b.refuse(
        "normalizes over the axis of time",
        "use a layer norm over channels (permute, LayerNorm, permute) or a batch norm in its place",
    )


def linear(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    x = arguments["x"]
    if not isinstance(x, Timed) or x.axis == x.node.type.rank - 1:
        raise b.refuse("multiplies along the axis of time", "a layer over a window of time is a convolution")
    return framewise(b, call, arguments, x.axis)


def product(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Products of each frame with a constant, or of frames with each other."""
    rank = len(shape_of(call.outputs[0]))
    x, other = list(arguments.values())[:2]
    operands = [(each, summed) for each, summed in ((x, -1), (other, -2)) if isinstance(each, Timed)]
    places = {each.axis - each.node.type.rank for each, _ in operands}
    is_summed = any(each.axis - each.node.type.rank == summed for each, summed in operands)
    if is_summed or len(places) > 1 or (len(operands) > 1 and max(places) > -3) or rank < -min(places):
        raise b.refuse(
            "multiplies frames of the stream with each other, as attention does",
            "call scaled_dot_product_attention with a constant mask that bounds the context",
        )
    return framewise(b, call, arguments, rank + places.pop())


def cumulative(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """The state is the last result; before the first frame there is none to combine with."""
    x = arguments["x"]
    rank = x.node.type.rank
    if arguments["dim"] % rank != x.axis:
        return along(b, call, arguments)
    combine, neutral = CUMULATIVE[call.function]
    x = b.nonnegative(b.cleaned(b.nonnegative(x), True, False, neutral))
    shape = [1 if axis == x.axis else size for axis, size in enumerate(x.node.type.shape)]
    state = b.state(shape, x.node.type.dtype)
    made = b.emit(call.function, x.node, dim=x.axis)
    joined = b.emit(combine, made, state)
    if neutral:
        is_first = b.emit("aten::le", b.first(x), b.int32([0]))
        joined = b.emit("aten::where", is_first, made, joined)
    b.keep(state, b.cut(joined, x.axis, -1))
    return x._replace(node=joined, is_clean=False)


# what joins the results of two parts, and the value of a frame that changes none
CUMULATIVE = {
    "aten::cumsum": ("aten::add", 0.0),
    "aten::cumprod": ("aten::mul", 1.0),
    "aten::logcumsumexp": ("aten::logaddexp", -np.inf),
}
_ALONG = (
    *("softmax", "log_softmax", "softmin", "glu", "mean", "sum", "prod", "amax", "amin", "logsumexp", "any"),
    *("all", "var", "std", "var_mean", "std_mean", "linalg_vector_norm", "argmax", "argmin", "topk", "sort"),
    *("max", "min", "median", "flip", "split_with_sizes", "unbind", "index_select"),
)
_UPSAMPLE = (
    "upsample_nearest1d",
    "upsample_nearest2d",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
)
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("tm::fft", "tm::irfft"), along),
    **{
        f"aten::{name}": rule
        for names, rule in (
            (_ALONG, along),
            (_UPSAMPLE, upsample),
            (("matmul", "mm", "bmm"), product),
            (("layer_norm", "rms_norm", "embedding"), last_axes),
            (("group_norm", "instance_norm"), norm_over_time),
            (("batch_norm", "prelu", "local_response_norm"), channelwise),
            (("expand", "repeat"), expand),
            (("permute",), permute),
            (("reshape",), reshape),
            (("linear",), linear),
            (("cumsum", "cumprod", "logcumsumexp"), cumulative),
            (("repeat_interleave",), repeat_interleave),
        )
        for name in names
    },
}
