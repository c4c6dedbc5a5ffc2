"""Shared by TFLite symbolics. All shapes here are channels-last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.ir.lazy_constants import viewed
from tmconvert.ir.symbolic.clamps import may_be_empty
from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.symbolics.idioms.transposes import in_steps, merged

if TYPE_CHECKING:
    from tmconvert.ir import QParams
    from tmconvert.lowering.builder import Builder
    from tmconvert.lowering.target_graph import Operator, Value
    from tmconvert.targets.tflite.builder import TfliteBuilder

MOST_AXES = 6  # of TRANSPOSE in XNNPACK


def transposed(g: Builder, x: Value, order: Sequence[int]) -> Value:
    """Permutes the axes of ``x``: a view where it is constant or axes of extent 1 move, else TRANSPOSEs."""
    return factors_transposed(g, x, x.shape, order, [x.shape[axis] for axis in order])


def factors_transposed(
    g: Builder, x: Value, factors: Sequence[int], order: Sequence[int], shape: Sequence[int]
) -> Value:
    """Reshapes ``x`` to ``factors``, permutes by ``order``, and reshapes to ``shape``."""
    if x.stored is not None:
        permuted = viewed(x.stored, lambda each: each.reshape(factors).transpose(order))
        name = f"{x.name}_{''.join(map(str, order))}"
        return g.const(permuted, name=name, qparams=_moved(x, factors, order, shape), shape=shape)
    extents, short = merged(factors, order)
    if len(short) < 2:
        return reshaped(g, x, shape)
    moved = _blocks_moved(g, x, extents, short, shape)
    if moved is not None:
        return reshaped(g, moved, shape)
    if len(order) <= MOST_AXES:
        x = reshaped(g, x, factors)
        x = g.op("TRANSPOSE", x, g.ints(order), shape=[factors[axis] for axis in order])
        return reshaped(g, x, shape)
    for sizes, places in in_steps(extents, short, MOST_AXES):
        extents = tuple(sizes[axis] for axis in places)
        x = g.op("TRANSPOSE", reshaped(g, x, sizes), g.ints(places), shape=extents)
    return reshaped(g, x, shape)


def _moved(x: Value, factors: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> QParams | None:
    """Returns the QParams of a constant after ``factors_transposed``."""
    qparams = None if x.qparams is None else x.qparams.reshaped(x.shape, tuple(factors))
    if qparams is None:
        return None
    return qparams.permuted(order).reshaped(tuple(factors[axis] for axis in order), tuple(shape))


def _blocks_moved(
    g: Builder, x: Value, extents: Sequence[int], order: Sequence[int], shape: Sequence[int]
) -> Value | None:
    """Space-to-depth or depth-to-space of images [N, H, W, C]; None where ``x`` is neither.

    [N H/b, b, W/b, b C] becomes [N H/b, W/b, b, b C], as windows do, and the other way round.
    """
    if is_symbolic((x.shape, list(shape))) or tuple(order) != (0, 2, 1, 3):
        return None
    rows, first, second, last = extents
    pixels = _blocks(x.shape, first)
    if pixels is not None and [rows, second, last] == [pixels[0] * pixels[1], pixels[2], first * x.shape[3]]:
        return g.op("SPACE_TO_DEPTH", x, block_size=first, shape=pixels)
    pixels = _blocks(shape, second)
    if pixels is not None and [rows, first, last] == [pixels[0] * pixels[1], pixels[2], second * shape[3]]:
        return g.op("DEPTH_TO_SPACE", reshaped(g, x, pixels), block_size=second, shape=tuple(shape))
    return None


def _blocks(shape: Sequence[int], size: int) -> tuple[int, ...] | None:
    """Returns the shape of an image's blocks as pixels."""
    if len(shape) != 4 or shape[1] % size or shape[2] % size:
        return None
    return shape[0], shape[1] // size, shape[2] // size, size * size * shape[3]


def reshaped(g: Builder, x: Value, shape: Sequence[int]) -> Value:
    """Reshapes ``x``: a view where it is constant, else a RESHAPE."""
    if tuple(shape) == x.shape:
        return x
    if x.is_constant:
        qparams = None if x.qparams is None else x.qparams.reshaped(x.shape, tuple(shape))
        return g.const(x.stored, name=x.name, qparams=qparams, shape=shape)
    return g.op("RESHAPE", x, g.ints(shape), new_shape=list(shape), shape=shape)


def expanded(g: Builder, x: Value, shape: Sequence[int]) -> Value:
    """Broadcasts ``x`` to ``shape``: a view where it is constant, else a BROADCAST_TO."""
    if tuple(shape) == x.shape:
        return x
    if x.data is not None and not is_symbolic(shape):
        return g.const(np.broadcast_to(x.data, shape), name=x.name)
    return g.op("BROADCAST_TO", x, g.ints(shape), shape=shape)


def padding_scheme(
    extent: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int] = (1, 1),
) -> str | None:  # fmt: skip
    """Returns "VALID" or "SAME" where TFLite's scheme equals this symmetric padding, else None.

    SAME pads max((ceil(extent / stride) - 1) stride + (kernel - 1) dilation + 1 - extent, 0) in
    all, the odd element behind. Where that maximum is of something below 0, XNNPACK computes garbage in
    LiteRT before 2.2.
    """
    if not any(padding):
        return "VALID"
    for axis, amount in enumerate(padding):
        reach = (kernel[axis] - 1) * dilation[axis] + 1
        outputs = -(-extent[axis] // stride[axis])
        total = (outputs - 1) * stride[axis] + reach - extent[axis]
        if isinstance(total, Dim) or total != 2 * amount:
            return None
    return "SAME"


def padded(g: Builder, x: Value, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Value:
    """Pads H and W of ``x`` [N, H, W, C]; PADV2 where ``value`` is not zero."""
    amounts = [[0, 0], [before[0], after[0]], [before[1], after[1]], [0, 0]]
    if not np.any(amounts):
        return x
    shape = [extent + sum(pair) for extent, pair in zip(x.shape, amounts, strict=True)]
    widths = g.const(np.array(amounts, g.index_dtype))
    if value == 0:
        return g.op("PAD", x, widths, shape=shape)
    return g.op("PADV2", x, widths, g.const(np.array(value, x.dtype)), shape=shape)


def pooling_scheme(
    extent: Sequence[int], outputs: Sequence[int], stride: Sequence[int], before: Sequence[int],
    after: Sequence[int],
) -> str | None:  # fmt: skip
    """Returns TFLite's padding scheme whose windows are these ("VALID" or "SAME"), else None.

    ``before`` and ``after`` are what the windows reach beyond the ends, after may be negative.
    """
    if not any(before) and max(after) <= 0:
        return "VALID"
    if is_symbolic((extent, outputs)):
        return None
    for i, padding in enumerate(before):
        if outputs[i] != -(-extent[i] // stride[i]) or padding != max(padding + after[i], 0) // 2:
            return None
    return "SAME"


def numbers(g: Builder, count: Any) -> Value:
    """Returns int32 0, 1, ... below ``count``: a constant, except for symbolic sizes."""
    if is_symbolic(count):
        return g.op("RANGE", g.ints(0), g.ints(count), g.ints(1), shape=(count,), dtype=np.int32)
    return g.ints(range(count))


def wrapped(g: TfliteBuilder, index: Value, extent: Any) -> Value:
    """Converts a negative ``index`` to one from the start of ``extent``."""
    size = g.ints(extent)
    if may_be_empty(extent):  # LiteRT divides no numbers at all by none
        size = g.op("MAXIMUM", size, g.ints(1))
    return g.cast(g.op("FLOOR_MOD", g.cast(index, size.dtype), size), index.dtype)


def divided(g: TfliteBuilder, x: Value, other: Value) -> Value:
    """Divides integers, rounding toward zero. DIV does not support int64.

    Of 64 bits a quotient in float32 that is a little too small is subtracted three times: of 2 ** 63 it
    leaves 2 ** 42, then 2 ** 21, then at most 2, which comparisons find.
    """
    if x.dtype != np.int64:
        return g.op("DIV", x, other)
    (rest, x_sign), (divisor, other_sign) = _magnitude(g, x), _magnitude(g, other)
    real = g.cast(divisor, np.dtype(np.float32))
    below = g.const(np.array(1 - 2**-21, np.float32))
    quotient = None
    for step in range(5):
        if step < 3:
            share = g.op("MUL", g.op("DIV", g.cast(rest, np.dtype(np.float32)), real), below)
        else:
            share = g.op("GREATER_EQUAL", rest, divisor, dtype=bool)
        share = g.cast(share, np.dtype(np.int64))
        rest = g.op("SUB", rest, g.op("MUL", share, divisor))
        quotient = share if quotient is None else g.op("ADD", quotient, share)
    return g.op("MUL", quotient, g.op("MUL", x_sign, other_sign))


def _magnitude(g: TfliteBuilder, x: Value) -> tuple[Value, Value]:
    """Returns the absolute value of int64, and its sign."""
    zero, one = (g.const(np.array(number, np.int64)) for number in (0, 1))
    negative = g.cast(g.op("LESS", x, zero, dtype=bool), np.dtype(np.int64))
    return g.op("MAXIMUM", x, g.op("SUB", zero, x)), g.op("SUB", one, g.op("ADD", negative, negative))


def inverse_root(g: Any, x: Any) -> Any:
    """Returns 1 / sqrt(x).

    XNNPACK's RSQRT is NaN at zero and at denormal values. It is written for sums with a positive constant,
    which normalization layers have.
    """
    producer = next((each for each in reversed(g.graph.operators) if x in each.outputs), None)
    if producer is not None and _adds_positive(producer):
        return g.op("RSQRT", x)
    return g.op("DIV", g.const(1, x.dtype), g.op("SQRT", x))


def _adds_positive(operator: Operator) -> bool:
    """Whether an operator adds a positive constant: of its own, or as the bias of a weighted mean."""
    values = [value.data for value in operator.inputs if value is not None and value.is_constant]
    data = [each for each in values if each is not None]
    if operator.type == "CONV_2D":  # its constants are weights and bias
        return len(data) == 2 and data[0].min(initial=0) >= 0 and data[1].min(initial=1) > 0
    return operator.type in ("ADD", "MAXIMUM") and any(each.size and each.min() > 0 for each in data)


def with_repeated_ends(g: Any, x: Any, axis: int, before: Any, after: Any) -> Any:
    """Gathers an axis with its first and last element repeated dynamic numbers of times."""
    extent = x.shape[axis]
    count = before + extent + after
    indices = g.op("RANGE", *(g.ints(each) for each in (-before, extent + after, 1)), shape=(count,))
    inside = g.op("MINIMUM", g.op("MAXIMUM", indices, g.ints(0)), g.ints(extent - 1))
    return g.op("GATHER", x, inside, axis=axis, shape=(*x.shape[:axis], count, *x.shape[axis + 1 :]))


def with_copied_ends(g: Any, x: Any, axis: int, before: int, after: int) -> Any:
    """Concatenates copies of the first and of the last element of an axis with it."""
    if not before and not after:
        return x
    shape = list(x.shape)
    size = [*shape[:axis], 1, *shape[axis + 1 :]]

    def copies(index: Any, count: int) -> list[Any]:
        begin = [0] * axis + [index] + [0] * (len(shape) - axis - 1)
        return [g.op("SLICE", x, g.ints(begin), g.ints(size), shape=size)] * count if count else []

    parts = [*copies(0, before), x, *copies(shape[axis] - 1, after)]
    shape[axis] += before + after
    return g.op("CONCATENATION", *parts, axis=axis, shape=shape)


def has_odd_groups(image: Sequence[int], weights: Sequence[int]) -> bool:
    """Whether a CONV_2D has groups whose channels 4 does not divide, which LiteRT's GPU computes wrongly."""
    channels, (filters, *_, part) = image[-1], weights
    return part < channels and (part % 4 != 0 or (filters * part // channels) % 4 != 0)


def is_misread(shape: Sequence[int], shapes: Sequence[Sequence[int]]) -> bool:
    """Whether LiteRT's GPU reads a constant operand in another order: one of rank 2 or 3 that has several
    rows, where no operand has a higher rank.
    """
    return len(shape) in (2, 3) and shape[0] != 1 and len(shape) == max(map(len, shapes))
