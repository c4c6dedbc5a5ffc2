"""Calls without a rule of their own: whether frame i of the results needs frame i of the operands alone.

The reference kernel shows it: it computes the call for random operands, and again for some of their frames.
Each step model is compared with its offline model, so that a wrong guess is an error and no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.errors import TmconvertError
from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.tree import map_leaves
from tmconvert.streaming.builder import StepBuilder
from tmconvert.streaming.rules import Arguments, framewise, operands, shape_of, timed_of, widened
from tmconvert.streaming.timed import Timed

Arrays = Mapping[TensorNode, np.ndarray]
Axes = Mapping[TensorNode, int]
_MISFITS = (TmconvertError, ValueError, IndexError, TypeError, ArithmeticError)


def frame_by_frame(b: StepBuilder, call: CallFunction, arguments: Arguments) -> Any:
    """Emits the call for the frames of a chunk. Raises TM2025 where they need other frames."""
    pairs = dict(operands(b, call, arguments))
    axes = {node: value.axis for node, value in pairs.items() if isinstance(value, Timed)}
    frames = {shape_of(node)[axis] for node, axis in axes.items()}
    rng = np.random.default_rng(0)
    arrays = {node: _random(rng, node) if (array := b.known(node)) is None else array for node in pairs}
    if len(frames) == 1 and b.catalogue[call.function].kernel is not None:
        count = frames.pop()
        constants = {node: _uniform_axis(arrays[node], count) for node in pairs if b.known(node) is not None}
        same = {node: axis for node, axis in constants.items() if axis is not None}
        for cut in ({}, same) if same else ({},):
            axis = _axis_of_results(b, call, arrays, {**axes, **cut}, count)
            if axis is not None:
                return framewise(b, call, _of_chunk(b, arguments, pairs, cut), axis)
    raise b.refuse("has no rule for streams, and its frames depend on other frames than the same ones")


def _random(rng: np.random.Generator, node: TensorNode) -> np.ndarray:
    shape, dtype = shape_of(node), node.type.dtype
    return rng.standard_normal(shape).astype(dtype) if dtype.kind == "f" else rng.integers(0, 2, shape, dtype)


def _uniform_axis(array: np.ndarray, frames: int) -> int | None:
    """Returns an axis of ``frames`` equal entries."""
    fitting = (axis for axis, size in enumerate(array.shape) if size == frames > 1)
    return next((axis for axis in fitting if (array == array.take([0], axis)).all()), None)


def _axis_of_results(
    b: StepBuilder, call: CallFunction, arrays: Arrays, axes: Axes, frames: int
) -> int | None:
    """Returns the axis of time of all results; None where a part of the frames gives other values."""
    whole = _computed(b, call, arrays, axes, range(frames))
    if whole is None or frames < 3:
        return None
    for axis in range(min(each.ndim for each in whole)):
        if all(each.shape[axis] == frames for each in whole) and all(
            _agrees(whole, axis, part, _computed(b, call, arrays, axes, part))
            for part in (range(1, frames), range(2))
        ):
            return axis
    return None


def _agrees(whole: list[np.ndarray], axis: int, part: range, made: list[np.ndarray] | None) -> bool:
    """Whether the results for a part of the frames are that part of the whole results."""
    pairs = [] if made is None else list(zip((each.take(part, axis) for each in whole), made, strict=True))
    return bool(pairs) and all(
        wanted.shape == each.shape and np.allclose(wanted, each, rtol=1e-4, atol=1e-5, equal_nan=True)
        for wanted, each in pairs
    )


def _computed(
    b: StepBuilder, call: CallFunction, arrays: Arrays, axes: Axes, frames: range
) -> list[np.ndarray] | None:
    """Returns the results for some frames; None where the call does not take them."""

    def operand(node: Any) -> Any:
        array = None if node is None else arrays[node]
        return array if array is None or node not in axes else array.take(frames, axes[node])

    args = [map_leaves(operand, each) for each in call.args]
    try:
        made = b.catalogue[call.function].evaluate(args, call.kwargs)
    except _MISFITS:
        return None
    return made if isinstance(made, list) else [made]


def _of_chunk(b: StepBuilder, arguments: Arguments, pairs: Mapping[Any, Any], cut: Axes) -> Arguments:
    """Returns the arguments with those constants that have an entry for each frame as long as a chunk."""
    frames = timed_of(arguments)[0].frames
    places = {id(pairs[node]): axis - node.type.rank for node, axis in cut.items()}

    def short(value: Any) -> Any:
        return widened(b, value, places[id(value)], frames) if id(value) in places else value

    return {
        name: [short(each) for each in value] if isinstance(value, list) else short(value)
        for name, value in arguments.items()
    }
