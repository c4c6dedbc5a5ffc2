"""Layouts of images: TFLite keeps the channels last (NHWC), ATen ops take them first (NCHW).

An adapter that computes with the channels first returns ``ChannelsFirst``. The vocabulary permutes the result
back to NHWC for its users; an adapter that needs NCHW takes the value from before that permutation, so no
permutation is computed between two layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tmconvert.frontends.shared.arguments import rank, reshaped
from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.emitter import Emitter

IMAGES = (4, 5)  # ranks
_PERMUTE = "aten::permute"


class ChannelsFirst(NamedTuple):
    """A result with its channels first."""

    value: Any


def nhwc_to_nchw(rank_: int) -> list[int]:
    """Returns the permutation from channels last to channels first.

    >>> nhwc_to_nchw(4)
    [0, 3, 1, 2]
    """
    return [0, rank_ - 1, *range(1, rank_ - 1)]


def nchw_to_nhwc(rank_: int) -> list[int]:
    """Returns the permutation from channels first to channels last.

    >>> nchw_to_nhwc(4)
    [0, 2, 3, 1]
    """
    return [0, *range(2, rank_), 1]


def channels_first_axis(axis: int, rank_: int) -> int:
    """Returns the index in NCHW of an axis of NHWC."""
    return nhwc_to_nchw(rank_).index(axis)


def known_channels_first(g: Emitter, x: Any) -> Any:
    """Returns the NCHW tensor that ``x`` was permuted from; None where ``x`` is not such a permutation."""
    expr = x.expr if isinstance(x, TensorNode) else None
    if not isinstance(expr, CallFunction) or expr.function != _PERMUTE or rank(g, x) not in IMAGES:
        return None
    order = list(expr.kwargs.get("dims") or expr.args[1])
    return expr.args[0] if order == nchw_to_nhwc(rank(g, x)) else None


def channels_first(g: Emitter, x: Any, rank_: int | None = None) -> Any:
    """Returns a tensor with its channels first; one of lower rank is first broadcast to ``rank_`` axes."""
    known = known_channels_first(g, x)
    if known is not None:
        return known
    shape = list(g.type(x).shape)
    if rank_ is not None and not shape:
        return x
    if rank_ is not None and len(shape) < rank_:
        x = reshaped(g, x, [1] * (rank_ - len(shape)) + shape)
    return g.call(_PERMUTE, x, nhwc_to_nchw(rank(g, x)))


def channels_last(g: Emitter, x: Any) -> Any:
    """Permutes an NCHW tensor to NHWC."""
    return g.call(_PERMUTE, x, nchw_to_nhwc(rank(g, x)))


def elementwise(g: Emitter, op: str, *xs: Any, **attributes: Any) -> Any:
    """Applies an op that broadcasts; in NCHW where an operand of the highest rank is known in NCHW."""
    highest = max(rank(g, x) for x in xs)
    if not any(rank(g, x) == highest and known_channels_first(g, x) is not None for x in xs):
        return g.call(op, *xs, **attributes)
    return ChannelsFirst(g.call(op, *(channels_first(g, x, highest) for x in xs), **attributes))


def along(g: Emitter, op: str, x: Any, axis: int, *args: Any, **attributes: Any) -> Any:
    """Applies an op along an axis that it keeps."""
    known = known_channels_first(g, x)
    if known is None:
        return g.call(op, x, axis, *args, **attributes)
    return ChannelsFirst(g.call(op, known, channels_first_axis(axis, rank(g, x)), *args, **attributes))


def value_of(result: Any) -> Any:
    """Returns the tensor of a result."""
    return result.value if isinstance(result, ChannelsFirst) else result


def like(result: Any, value: Any) -> Any:
    """Returns ``value`` in the layout of another result."""
    return ChannelsFirst(value) if isinstance(result, ChannelsFirst) else value


def in_channels_first_order(sizes: Sequence[Any]) -> list[Any]:
    """Reorders one value for each axis from NHWC to NCHW."""
    return [sizes[axis] for axis in nhwc_to_nchw(len(sizes))]
