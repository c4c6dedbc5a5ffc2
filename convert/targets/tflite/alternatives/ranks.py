"""The same operators on tensors of fewer axes, between two RESHAPE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations, groupby, pairwise, permutations

from tmconvert.lowering.target_graph import Operator
from tmconvert.targets.tflite.alternatives.form_writer import FormWriter, numbers, sizes

_UNARY = """
ABS CAST CEIL COS ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU LOG LOGICAL_NOT LOGISTIC NEG QUANTIZE DEQUANTIZE
RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SIGN SIN SQRT SQUARE TANH
"""
_BINARY = """
ADD DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR MAXIMUM MINIMUM
MUL NOT_EQUAL POW SELECT_V2 SQUARED_DIFFERENCE SUB
"""
_FEWEST = 3  # axes; below, there is nothing to merge
_MOST = 4  # axes that all devices transpose
_MOST_ORDERS = 6  # axes up to which all orders are tried


def merged_transpose(g: FormWriter) -> list[Operator] | None:
    """TRANSPOSE without axes of one element, where axes that stay neighbours are one."""
    x, order = g.operator.inputs
    shape, axes = sizes(x), numbers(order)
    if x is None or shape is None or axes is None or len(shape) < _FEWEST:
        return None
    kept = [axis % len(shape) for axis in axes if shape[axis] > 1]
    groups: list[list[int]] = []
    for axis in kept:
        skipped = all(shape[each] == 1 for each in range(groups[-1][-1] + 1, axis)) if groups else False
        if groups and axis > groups[-1][-1] and skipped:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    stored = sorted(groups)
    if len(stored) >= len(shape):
        return None
    small = g.reshape(x, [math.prod(shape[axis] for axis in group) for group in stored] or [1])
    return g.last_reshape(g.transpose(small, [stored.index(group) for group in groups] or [0]))


def transpose_in_steps(g: FormWriter) -> list[Operator] | None:
    """TRANSPOSE of more than four axes by several ones of four blocks of neighbouring axes."""
    x, order = g.operator.inputs
    shape, axes = sizes(x), numbers(order)
    if x is None or shape is None or axes is None or not _MOST < len(shape) <= _MOST_ORDERS:
        return None
    made, extents = x, list(shape)
    for cuts, moves in _steps(tuple(axis % len(shape) for axis in axes)):
        blocks = [extents[start:end] for start, end in pairwise(cuts)]
        made = g.transpose(g.reshape(made, [math.prod(block) for block in blocks]), moves)
        extents = [extent for move in moves for extent in blocks[move]]
    return g.last_reshape(made)


_Step = tuple[tuple[int, ...], tuple[int, ...]]


@cache
def _steps(order: tuple[int, ...]) -> tuple[_Step, ...]:
    """Returns the fewest moves of blocks that lead to an order of axes: the cuts, and the order of blocks."""
    count = len(order)
    choices = [
        ((0, *cuts, count), moves)
        for cuts in combinations(range(1, count), _MOST - 1)
        for moves in permutations(range(_MOST))
    ]
    start = tuple(range(count))
    found: dict[tuple[int, ...], tuple[_Step, ...]] = {start: ()}
    waiting = [start]
    for axes in waiting:  # it grows
        for cuts, moves in choices:
            blocks = [axes[first:end] for first, end in pairwise(cuts)]
            after = tuple(axis for move in moves for axis in blocks[move])
            if after not in found:
                found[after] = (*found[axes], (cuts, moves))
                waiting.append(after)
        if order in found:
            break
    return found[order]


def flat_function(g: FormWriter) -> list[Operator] | None:
    """A function of one tensor on rows of its last axis."""
    x = g.operator.inputs[0]
    shape = sizes(x)
    if x is None or shape is None or len(shape) < _FEWEST or len(g.operator.inputs) != 1:
        return None
    rows = [math.prod(shape[:-1]), shape[-1]]
    return g.last_reshape(g.copy([g.reshape(x, rows)], rows))


def merged_operands(g: FormWriter) -> list[Operator] | None:
    """A function of several tensors, where neighbouring axes that are broadcast alike are one."""
    made, operands = sizes(g.operator.outputs[0]), [each for each in g.operator.inputs if each is not None]
    shapes = [sizes(each) for each in operands]
    if made is None or len(made) < _FEWEST:
        return None
    aligned = [(1,) * (len(made) - len(each)) + each for each in shapes if each is not None]
    if len(aligned) != len(operands):
        return None
    groups: list[list[int]] = []
    kinds: list[tuple[bool, ...]] = []
    for axis in range(len(made)):
        kind = tuple(each[axis] == made[axis] for each in aligned)
        if made[axis] == 1:
            continue
        if kinds and kinds[-1] == kind:
            groups[-1].append(axis)
        else:
            groups.append([axis])
            kinds.append(kind)
    if len(groups) >= len(made):
        return None
    results = [math.prod(made[axis] for axis in group) for group in groups] or [1]
    small = [
        g.reshape(value, [math.prod(shape[axis] for axis in group) for group in groups] or [1])
        for value, shape in zip(operands, aligned, strict=True)
    ]
    return g.last_reshape(g.copy(small, results))


def with_four_axes(g: FormWriter) -> list[Operator] | None:
    """A function of several tensors with axes of one before theirs, up to four."""
    made, operands = sizes(g.operator.outputs[0]), [each for each in g.operator.inputs if each is not None]
    if made is None or len(made) > _FEWEST or any(sizes(each) is None for each in operands):
        return None
    wide = [g.reshape(each, [*[1] * (4 - len(each.shape)), *each.shape]) for each in operands]
    return g.last_reshape(g.copy(wide, [*[1] * (4 - len(made)), *made]))


def merged_around_axis(g: FormWriter) -> list[Operator] | None:
    """CONCATENATION of tensors of three axes: what is before, along and after it."""
    made, operands = sizes(g.operator.outputs[0]), [each for each in g.operator.inputs if each is not None]
    axis = g.operator.attributes.get("axis", 0)
    if made is None or len(made) <= _FEWEST or not isinstance(axis, int):
        return None
    axis %= len(made)

    def small(shape: Sequence[int]) -> list[int]:
        return [math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])]

    parts = [g.reshape(each, small(each.shape)) for each in operands]
    return g.last_reshape(g.copy(parts, small(made), axis=1))


def merged_slice(g: FormWriter) -> list[Operator] | None:
    """SLICE with neighbouring axes that are whole as one."""
    x, begin, _ = g.operator.inputs
    shape, starts, made = sizes(x), numbers(begin), sizes(g.operator.outputs[0])
    if x is None or shape is None or starts is None or made is None or len(shape) < _FEWEST:
        return None
    sizes_in, first, sizes_out = list[int](), list[int](), list[int]()
    was_whole = False
    for size, start, extent in zip(shape, starts, made, strict=True):
        is_whole = size == extent
        if is_whole and was_whole:
            sizes_in[-1] *= size
            sizes_out[-1] *= extent
        else:
            sizes_in.append(size)
            first.append(start)
            sizes_out.append(extent)
        was_whole = is_whole
    if len(sizes_in) >= len(shape):
        return None
    return g.last_reshape(g.slice(g.reshape(x, sizes_in), first, sizes_out))


def merged_reduction(g: FormWriter) -> list[Operator] | None:
    """A reduction with neighbouring axes that are all reduced, or all kept, as one."""
    x, axes = g.operator.inputs
    shape, reduced = sizes(x), numbers(axes)
    if x is None or shape is None or not reduced or len(shape) < _FEWEST:
        return None
    places = {axis % len(shape) for axis in reduced}
    groups = [(which, list(own)) for which, own in groupby(range(len(shape)), places.__contains__)]
    if len(groups) >= len(shape):
        return None
    small = g.reshape(x, [math.prod(shape[axis] for axis in own) for _, own in groups])
    kept = [size for size, (which, _) in zip(small.shape, groups, strict=True) if not which]
    over = g.ints([at for at, (which, _) in enumerate(groups) if which])
    return g.last_reshape(g.copy([small, over], kept, keep_dims=False))


def transposed_blocks(g: FormWriter) -> list[Operator] | None:
    """DEPTH_TO_SPACE or SPACE_TO_DEPTH: the rows, or columns, of blocks are swapped with the columns."""
    x, block = g.operator.inputs[0], g.operator.attributes.get("block_size")
    is_deep = g.operator.type == "DEPTH_TO_SPACE"
    deep = sizes(x) if is_deep else sizes(g.operator.outputs[0])
    if x is None or deep is None or not isinstance(block, int):
        return None
    batch, height, width, channels = deep
    places = [width, block] if is_deep else [block, width]
    rows = g.reshape(x, [batch * height, *places, channels // block])
    return g.last_reshape(g.transpose(rows, [0, 2, 1, 3]))


RANKS = (
    ("TRANSPOSE", merged_transpose),
    ("TRANSPOSE", transpose_in_steps),
    (_UNARY, flat_function),
    (_BINARY, merged_operands),
    (_BINARY, with_four_axes),
    ("CONCATENATION", merged_around_axis),
    ("SLICE", merged_slice),
    ("MEAN REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM", merged_reduction),
    ("DEPTH_TO_SPACE SPACE_TO_DEPTH", transposed_blocks),
)
