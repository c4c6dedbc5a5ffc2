"""tm::view: a chain of reshapes, selections and transposes of one tensor, in canonical form.

Axes of ``x`` are split into factors, some factors are fixed to an index, the others permuted and
merged into the axes of the result. A layout on either side is only another order of the
factors, so a channel shuffle or a patch embedding costs at most one transpose whatever the layout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.ir.symbolic.dims import is_symbolic, same_size
from tmconvert.ir.types import Ints, TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, LayoutRule
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, integers
from tmconvert.symbolics.traits import Identity, Permuted, Reshaped, Selected, View, ViewStep

KEPT = -1
TRANSPOSE_RANK = 6  # of TRANSPOSE in XNNPACK


def _result(x: TensorType, split: Ints, index: Ints, order: Ints, shape: Ints) -> TensorType:
    kept = [size for size, chosen in zip(split, index, strict=True) if chosen == KEPT]
    if math.prod(split) != x.size or sorted(order) != list(range(len(kept))):
        raise ValueError(f"factors {split} in order {order} do not fit {x}")
    if any(not KEPT <= chosen < size for size, chosen in zip(split, index, strict=True)):
        raise ValueError(f"the indices {index} are out of range for {split}")
    if math.prod(kept) != math.prod(shape):
        raise ValueError(f"factors {kept} do not fit the shape {shape}")
    return TensorType(x.dtype, tuple(shape))


def _steps(rank: int, split: Ints, index: Ints, order: Ints, shape: Ints) -> list[ViewStep]:
    chosen = [Selected(axis, index[axis]) for axis in reversed(range(len(split))) if index[axis] != KEPT]
    return [Reshaped(split), *chosen, Permuted(order), Reshaped(shape)]


def _moves_nothing(split: Ints, index: Ints, order: Ints, shape: Ints) -> bool:
    kept = [extent for extent, chosen in zip(split, index, strict=True) if chosen == KEPT]
    moved = [place for place in order if kept[place] != 1]
    return moved == sorted(moved)


view = Op(
    "tm::view",
    args=[Tensor("x", ANY_DTYPE), integers("split"), integers("index"), integers("order"), integers("shape")],
    result=_result,
    layout=LayoutRule("view"),
    traits=[View(_steps), Identity(_moves_nothing)],
)


@view.reference
def view_ref(x: np.ndarray, split: Ints, index: Ints, order: Ints, shape: Ints) -> np.ndarray:
    """x.reshape(split)[index].transpose(order).reshape(shape); an index of -1 keeps the factor."""
    chosen: Any = tuple(slice(None) if chosen == KEPT else chosen for chosen in index)
    return x.reshape(split)[chosen].transpose(order).reshape(shape)


@view.decompose
def view_steps(g, x, split, index, order, shape):
    split, index, order = _batch_apart(g.type(x).shape, *simplified(split, index, order), shape)
    moves = order != sorted(order) or any(chosen != KEPT for chosen in index)
    if moves and tuple(split) != g.type(x).shape:
        x = g.call("aten::reshape", x, split)
    for axis in reversed(range(len(split))):
        if index[axis] != KEPT:
            x = g.call("aten::select", x, axis, index[axis])
    if order != sorted(order):
        x = g.call("aten::permute", x, order)
    return x if g.type(x).shape == tuple(shape) else g.call("aten::reshape", x, shape)


def _batch_apart(
    x_shape: Sequence[int], split: Ints, index: Ints, order: Ints, shape: Sequence[int]
) -> tuple[Ints, Ints, Ints]:
    """Returns the same view with the first axis as a separate factor, if it is unchanged.

    Steps that merge it with others compute something else at another batch size.
    """
    if not x_shape or not shape or x_shape[0] != shape[0] or x_shape[0] == 0:
        return split, index, order
    if x_shape[0] == 1:
        return [1, *split], [KEPT, *index], [0, *(axis + 1 for axis in order)]
    inner, rest = divmod(split[0], x_shape[0])
    if rest or inner == 1 or index[0] != KEPT or order[0] != 0:
        return split, index, order
    outer = [x_shape[0], inner, *split[1:]]
    return outer, [KEPT, *index], [0, *(axis + 1 for axis in order)]


@view.tflite()
def view_tflite(g, x, split, index, order, shape):
    if any(chosen != KEPT for chosen in index):
        split, index, order = simplified(split, index, order)
        x = idioms.tflite.reshaped(g, x, split)
        sizes = [size if chosen == KEPT else 1 for size, chosen in zip(split, index, strict=True)]
        begin = [max(chosen, 0) for chosen in index]
        if sizes != split:  # XNNPACK has no slice of a number
            x = g.op("SLICE", x, g.ints(begin), g.ints(sizes), shape=sizes)
        split = [size for size, chosen in zip(split, index, strict=True) if chosen == KEPT]
    is_given = any(x is value for value in g.graph.inputs)
    return idioms.tflite.factors_transposed(
        g, x, *transpose_of(split, order, x.shape, shape, is_given), shape
    )


def transpose_of(
    split: Sequence[int], order: Sequence[int], x_shape: Sequence[int], shape: Sequence[int],
    is_given: bool = False,
) -> tuple[Ints, Ints]:  # fmt: skip
    """Returns factors of ``x`` and their permutation, with the fewest reshapes around the transpose.

    The axes of ``x`` or those of the result are the factors where they move as a whole, else there are as
    few factors as possible. What is ``given`` to the model is transposed before it is shaped.
    """
    fewest, _, by_place = simplified(split, [KEPT] * len(split), order)
    is_wide = max(len(x_shape), len(shape)) > TRANSPOSE_RANK
    if by_place == sorted(by_place) or is_wide or is_symbolic((list(split), list(x_shape), list(shape))):
        return fewest, by_place
    ends = [fewest[place] for place in by_place]  # as it is in the result
    back = [by_place.index(place) for place in range(len(by_place))]
    of_x, of_result = _whole_axes(fewest, by_place, x_shape), _whole_axes(ends, back, shape)
    stays = of_x is not None and [x_shape[axis] for axis in of_x] == list(shape)
    if of_x is not None and (of_result is None or stays or is_given):
        return list(x_shape), of_x
    if of_result is not None:
        return [shape[axis] for axis in of_result], [of_result.index(axis) for axis in range(len(shape))]
    return fewest, by_place


def _whole_axes(factors: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> Ints | None:
    """Returns the axes of ``shape`` in the order of ``factors``, or None if they are not whole axes.

    Factors are of ``shape``; those of one axis, or the axes of one factor, must stay neighbours.
    """
    real = [axis for axis, extent in enumerate(shape) if extent != 1]
    try:
        groups = groups_of([shape[axis] for axis in real], factors)
    except ValueError:
        return None
    moved = iter([real[position] for place in order for position in groups[place]])
    return [axis if extent == 1 else next(moved) for axis, extent in enumerate(shape)]


def simplified(split: Sequence[int], index: Sequence[int], order: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Merges factors that stay adjacent."""
    kept = [axis for axis, chosen in enumerate(index) if chosen == KEPT]
    place = {kept[axis]: position for position, axis in enumerate(order)}
    groups: list[list[int]] = []
    for axis in range(len(split)):
        if split[axis] == 1 and index[axis] in (KEPT, 0):
            continue
        previous = groups[-1][-1] if groups else None
        joined = previous is not None and (
            axis in place and previous in place and _adjacent(place, previous, axis, split)
        )
        if joined:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    new_split = [math.prod(split[axis] for axis in group) for group in groups]
    new_index = [index[group[0]] for group in groups]
    kept_groups = [group for group in groups if index[group[0]] == KEPT]
    by_place = sorted(range(len(kept_groups)), key=lambda i: place[kept_groups[i][0]])
    return new_split, new_index, by_place


def _adjacent(place: dict[int, int], first: int, second: int, split: Sequence[int]) -> bool:
    """Whether ``second`` follows ``first`` in the result, ignoring factors of extent 1."""
    if place[second] <= place[first]:
        return False
    between = [axis for axis, position in place.items() if place[first] < position < place[second]]
    return all(split[axis] == 1 for axis in between)


def groups_of(factors: Sequence[int], shape: Sequence[int]) -> list[Ints]:
    """Returns the positions of the factors of each axis. Raises ValueError where they do not align.

    >>> groups_of([2, 3, 5], [6, 5])
    [[0, 1], [2]]
    """
    groups: list[list[int]] = []
    position = 0
    for extent in shape:
        group: list[int] = []
        size = 1
        while not same_size(size, extent):
            if position == len(factors):
                raise ValueError(f"factors {list(factors)} do not align with {list(shape)}")
            group.append(position)
            size *= factors[position]
            position += 1
        if size != extent:
            raise ValueError(f"factors {list(factors)} do not align with {list(shape)}")
        groups.append(group)
    trailing = list(range(position, len(factors)))
    if any(factors[axis] != 1 for axis in trailing):
        raise ValueError(f"factors {list(factors)} do not align with {list(shape)}")
    if trailing and groups:
        groups[-1].extend(trailing)
    return groups


def stored(
    attributes: dict[str, Any], x_shape: Sequence[int], *, nhwc_x: bool, nhwc_result: bool
) -> dict[str, Any]:
    """Returns the attributes of the same view between tensors in the given layouts."""
    split, index = list(attributes["split"]), list(attributes["index"])
    order, shape = list(attributes["order"]), list(attributes["shape"])
    kept = [axis for axis, chosen in enumerate(index) if chosen == KEPT]
    placed = [kept[axis] for axis in order]  # positions in split, in the order of the result
    if nhwc_result:
        groups = groups_of([split[axis] for axis in placed], shape)
        placed = [placed[position] for axis in NCHW_TO_NHWC for position in groups[axis]]
        shape = [shape[axis] for axis in NCHW_TO_NHWC]
    if nhwc_x:
        groups = groups_of(split, x_shape)
        moved = [position for axis in NCHW_TO_NHWC for position in groups[axis]]
        split, index = [split[position] for position in moved], [index[position] for position in moved]
        placed = [moved.index(position) for position in placed]
    kept = [axis for axis, chosen in enumerate(index) if chosen == KEPT]
    return {"split": split, "index": index, "order": [kept.index(axis) for axis in placed], "shape": shape}
