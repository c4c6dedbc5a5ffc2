"""aten::permute: permutes the axes of a tensor."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.transposes import Order, merged
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integers
from tmconvert.symbolics.traits import Identity, KeepsQparams, Permuted, SelectsElements, View

MOST_CAFFE_SLICES = 64


def _order(rank: int, dims: Sequence[int]) -> list[int]:
    """Returns ``dims`` as non-negative axes. Raises ValueError when they are not a permutation."""
    order = [axis % rank if -rank <= axis < rank else axis for axis in dims]
    if sorted(order) != list(range(rank)):
        raise ValueError(f"{dims} is not a permutation of {rank} axes")
    return order


def _result(x: TensorType, dims: list[int]) -> TensorType:
    return TensorType(x.dtype, tuple(x.shape[axis] for axis in _order(x.rank, dims)))


permute = Op(
    "aten::permute",
    args=[Tensor("x", ANY_DTYPE), integers("dims")],
    result=_result,
    traits=[
        View(lambda rank, dims: [Permuted(_order(rank, dims))]),
        Identity(lambda dims: all(axis % len(dims) == place for place, axis in enumerate(dims))),
        KeepsQparams(),
        SelectsElements(),
    ],
)

permute.reference(lambda x, dims: x.transpose(dims))


@permute.onnx(since=1)
def permute_onnx1(g, x, dims):
    return g.op("Transpose", x, perm=_order(len(x.shape), dims), shape=g.result_types[0].shape)


permute.tflite()(lambda g, x, dims: idioms.tflite.transposed(g, x, _order(len(x.shape), dims)))


class Swap(NamedTuple):
    """An exchange of neighbouring blocks of axes [first, middle) and [middle, end)."""

    first: int
    middle: int
    end: int

    def of(self, items: Order) -> Order:
        return (
            items[: self.first]
            + items[self.middle : self.end]
            + items[self.first : self.middle]
            + items[self.end :]
        )

    def slices(self, extents: Order) -> int:
        """Returns the number of slices that the exchange needs: one per index of the smaller block."""
        return min(_size(extents[self.first : self.middle]), _size(extents[self.middle : self.end]))


def _size(extents: Order) -> int:
    return int(np.prod(extents, dtype=np.int64))


def cheapest_swaps(shape: tuple[int, ...], order: Order) -> tuple[int, list[Swap]]:
    """Returns the exchanges that permute axes of ``shape`` to ``order`` with the fewest slices, and their
    number.

    >>> cheapest_swaps((2, 3, 5), (0, 2, 1))
    (3, [Swap(first=1, middle=2, end=3)])
    """
    start = tuple(range(len(order)))
    queue: list[tuple[int, int, Order]] = [(0, 0, start)]
    best: dict[Order, tuple[int, list[Swap]]] = {start: (0, [])}
    while queue:
        cost, _, axes = heapq.heappop(queue)
        if axes == order:
            break
        if cost > best[axes][0]:
            continue
        for swap in _swaps(len(order)):
            following = swap.of(axes)
            total = cost + swap.slices(tuple(shape[axis] for axis in axes))
            if following not in best or total < best[following][0]:
                best[following] = total, [*best[axes][1], swap]
                heapq.heappush(queue, (total, len(best), following))
    return best[order]


def _swaps(rank: int) -> Iterator[Swap]:
    for first in range(rank):
        for middle in range(first + 1, rank):
            for end in range(middle + 1, rank + 1):
                yield Swap(first, middle, end)


@permute.caffe()  # Permute is a fork's: slices of one block, joined behind or before the other
def permute_caffe(g, x, dims):
    order = _order(len(x.shape), dims)
    batch = x.shape[0] if order[0] == 0 else 1  # which the slices leave alone
    shape, moved = (
        merged(x.shape[1:], [axis - 1 for axis in order[1:]]) if order[0] == 0 else merged(x.shape, order)
    )
    if len(moved) > 6:
        g.refuse(f"Caffe (BVLC) has no Permute layer, and a transpose of {len(moved)} axes is not emulated")
    count, swaps = cheapest_swaps(shape, moved)
    if count > MOST_CAFFE_SLICES:
        g.refuse(
            f"Caffe (BVLC) has no Permute layer, and emulating this transpose would need {count} slices",
            "replace the transpose in the model, or move it after the output",
        )
    extents = shape
    for swap in swaps:
        x = _swapped(g, x, batch, extents, swap)
        extents = swap.of(extents)
    return idioms.caffe.reshaped(g, x, g.result_types[0].shape)


permute.caffe("opencv", "mnn")(lambda g, x, dims: _permute_layer(g, x, *_of_few_axes(x.shape, dims)))


@permute.caffe("ascend")
def permute_of_four_axes_caffe(g, x, dims):
    shape, order = _of_few_axes(x.shape, dims)
    return _permute_layer(g, x, shape, order) if len(order) <= 4 else permute_caffe(g, x, dims)


@permute.caffe("ncnn", "nnie", "snpe", "trt")
def permute_after_batch_caffe(g, x, dims):
    """Permutes two or three blocks after the first axis, where the dialect's layer supports that order."""
    order = _order(len(x.shape), dims)
    shape, places = merged(x.shape[1:], [axis - 1 for axis in order[1:]])
    permutation = (0, 2, 3, 1) if places == (1, 0) else (0, *(axis + 1 for axis in places))
    is_allowed = g.allows("Permute", "order", int("".join(map(str, permutation))))
    if order[0] != 0 or len(permutation) != 4 or not is_allowed:
        return permute_caffe(g, x, dims)
    return _permute_layer(g, x, (x.shape[0], *shape, 1)[:4], permutation)


def _of_few_axes(shape: Sequence[int], dims: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    order = _order(len(shape), dims)
    if len(order) <= 4:
        return shape, order
    if order[0] == 0:  # the batch stays apart where there is room for it
        rest, places = merged(shape[1:], [axis - 1 for axis in order[1:]])
        if len(places) < 4:
            return (shape[0], *rest), (0, *(axis + 1 for axis in places))
    return merged(shape, order)


def _permute_layer(g: Any, x: Any, shape: Sequence[int], order: Sequence[int]) -> Any:
    result = [shape[axis] for axis in order]
    x = g.op("Permute", idioms.caffe.reshaped(g, x, shape), order=list(order), shape=result)
    return idioms.caffe.reshaped(g, x, g.result_types[0].shape)


def _swapped(g: Any, x: Any, batch: int, extents: Order, swap: Swap) -> Any:
    """Applies one exchange to ``x``, viewed with axes ``extents`` after the batch: [outer, back, front,
    inner].

    Chips keep the first axis, and know four: the smaller block is sliced along one axis, the others merged.
    """
    blocks = (
        extents[: swap.first],
        extents[swap.first : swap.middle],
        extents[swap.middle : swap.end],
        extents[swap.end :],
    )
    outer, front, back, inner = (_size(block) for block in blocks)
    axis = joint = 2
    if front <= back and outer == 1:
        whole, axis = (batch, front, back, inner), 1
        part, result = (batch, back, 1, inner), (batch, back, front, inner)
    elif front <= back:
        whole = (batch, outer, front, back * inner)
        part, result = (batch, outer * back, 1, inner), (batch, outer * back, front, inner)
    elif outer == 1:
        whole, joint = (batch, front, back, inner), 1
        part, result = (batch, 1, front, inner), (batch, back, front, inner)
    else:
        whole = (batch, outer * front, back, inner)
        part, result = (batch, outer, 1, front * inner), (batch, outer, back, front * inner)
    parts = idioms.caffe.cut(g, idioms.caffe.reshaped(g, x, whole), axis, range(1, whole[axis]))
    return g.op("Concat", *(idioms.caffe.reshaped(g, each, part) for each in parts), axis=joint, shape=result)
