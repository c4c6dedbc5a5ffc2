"""Images: TFLite has the channels last, aten ops have them first.

An adapter that computes in planes, channels first, returns ``Planes``. The vocabulary permutes the result
back for its users, and an adapter that needs planes takes them from before that permutation, so that none is
computed between two layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tmconvert.frontends.shared.arguments import rank, reshaped
from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.emitter import Emitter

IMAGES = (4, 5)  # ranks
_PERMUTE = "aten::permute"


class Planes(NamedTuple):
    """A result with its channels first."""

    value: Any


def to_planes(rank_: int) -> list[int]:
    """Returns the permutation from channels last to channels first.

    >>> to_planes(4)
    [0, 3, 1, 2]
    """
    return [0, rank_ - 1, *range(1, rank_ - 1)]


def from_planes(rank_: int) -> list[int]:
    """Returns the permutation from channels first to channels last.

    >>> from_planes(4)
    [0, 2, 3, 1]
    """
    return [0, *range(2, rank_), 1]


def plane_axis(axis: int, rank_: int) -> int:
    """Returns where an axis of a tensor with the channels last is in planes."""
    return to_planes(rank_).index(axis)


def known_planes(g: Emitter, x: Any) -> Any:
    """Returns the planes that a tensor was permuted from; None for another tensor."""
    expr = x.expr if isinstance(x, TensorNode) else None
    if not isinstance(expr, CallFunction) or expr.function != _PERMUTE or rank(g, x) not in IMAGES:
        return None
    order = list(expr.kwargs.get("dims") or expr.args[1])
    return expr.args[0] if order == from_planes(rank(g, x)) else None


def planes(g: Emitter, x: Any, rank_: int | None = None) -> Any:
    """Returns a tensor with its channels first; one of lower rank is first broadcast to ``rank_`` axes."""
    known = known_planes(g, x)
    if known is not None:
        return known
    shape = list(g.type(x).shape)
    if rank_ is not None and not shape:
        return x
    if rank_ is not None and len(shape) < rank_:
        x = reshaped(g, x, [1] * (rank_ - len(shape)) + shape)
    return g.call(_PERMUTE, x, to_planes(rank(g, x)))


def put_back(g: Emitter, x: Any) -> Any:
    """Returns planes with their channels last."""
    return g.call(_PERMUTE, x, from_planes(rank(g, x)))


def elementwise(g: Emitter, op: str, *xs: Any, **attributes: Any) -> Any:
    """Applies an op that broadcasts, to planes where an operand has them."""
    highest = max(rank(g, x) for x in xs)
    if not any(rank(g, x) == highest and known_planes(g, x) is not None for x in xs):
        return g.call(op, *xs, **attributes)
    return Planes(g.call(op, *(planes(g, x, highest) for x in xs), **attributes))


def along(g: Emitter, op: str, x: Any, axis: int, *args: Any, **attributes: Any) -> Any:
    """Applies an op along an axis that it keeps."""
    known = known_planes(g, x)
    if known is None:
        return g.call(op, x, axis, *args, **attributes)
    return Planes(g.call(op, known, plane_axis(axis, rank(g, x)), *args, **attributes))


def value_of(result: Any) -> Any:
    """Returns the tensor of a result."""
    return result.value if isinstance(result, Planes) else result


def like(result: Any, value: Any) -> Any:
    """Returns ``value`` in the layout of another result."""
    return Planes(value) if isinstance(result, Planes) else value


def ordered(sizes: Sequence[Any]) -> list[Any]:
    """Returns the values of the axes of planes, of those of channels last."""
    return [sizes[axis] for axis in to_planes(len(sizes))]
