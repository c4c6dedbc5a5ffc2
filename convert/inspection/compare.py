"""Compares two models: outputs first, then the tensors that both compute, layer by layer.

A layer goes wrong where its *local* error is too large: the operation of one model is run on the operands
that the other one, the suspect, has itself, and compared with what the suspect makes of them. Errors of
earlier layers do not count. A few tensors are held at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tmconvert.calibration.settings import Settings
from tmconvert.conversion.format_numbers import counted
from tmconvert.errors import UsageError
from tmconvert.inspection.compared_models import FileSide, SourceSide, Tensor
from tmconvert.inspection.comparison import LayerDifference, ModelComparison, OutputDifference
from tmconvert.inspection.differences import LIMITS, aligned, difference
from tmconvert.inspection.given_inputs import Inputs
from tmconvert.inspection.graph_segments import Segments
from tmconvert.inspection.tensor_verdict import judged
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.types import Arrays
from tmconvert.progress import begin, counter
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import Quantizes
from tmconvert.targets.written_model import TensorInfo
from tmconvert.verification.inputs import drawn_inputs

AnySide = SourceSide | FileSide


class Pair(NamedTuple):
    """A tensor of both sides: in the one whose operations are run again, and in the suspect."""

    trusted: Tensor
    suspect: Tensor


def compare_sides(
    first: AnySide, second: AnySide, inputs: Inputs | None = None, settings: Settings | None = None
) -> ModelComparison:
    """Returns the comparison of two sides on ``inputs`` of the first, or on its example, or random ones.

    Raises UsageError TM6003 for models with other inputs or outputs; VerificationError TM4002, TM4003.
    """
    begin("compare")
    trusted, suspect = _roles(first, second)
    kind = _kind(first, second)
    found = ModelComparison(first.title, second.title, kind, suspect.title)
    arrays = _example(first, second) if inputs is None else first.arrays(inputs, settings)
    of_second = in_order_of(second, first, arrays)
    _compare_outputs(first, second, arrays, of_second, found)
    given = {first: arrays, second: of_second}
    pairs = _pairs(trusted, suspect)
    if not pairs:
        found.notes.append("the models have no tensors of the same name: only outputs were compared")
        return found
    if trusted.graph is None:
        found.notes.append(
            f"the graph of {trusted.title} cannot be read: errors of layers are accumulated ones"
        )
    is_equalized = suspect.is_equalized and not trusted.is_equalized
    if is_equalized:
        found.notes.append(
            "calibration scaled channels between layers (equalization): layers are compared up to a factor "
            "for each channel"
        )
    count = counter("compare")
    for layer in _layers(trusted, suspect, given[trusted], given[suspect], pairs, kind, is_equalized):
        found.layers.append(layer)
        if count is not None:
            count(len(found.layers), len(pairs))
    return found


def _roles(first: AnySide, second: AnySide) -> tuple[AnySide, AnySide]:
    """Returns the side whose operations are run again, and the suspect: a file rather than a source, and else
    the second model, unless only its graph can be read.
    """
    if isinstance(first, FileSide) and isinstance(second, SourceSide):
        return second, first
    if first.graph is None and second.graph is not None:
        return second, first
    return first, second


def _kind(*sides: AnySide) -> str:
    kinds = [side.kind for side in sides]
    return max(kinds, key=list(LIMITS).index)


def _example(first: AnySide, second: AnySide) -> list[np.ndarray]:
    """Returns real values for the inputs of the first model: its example, or random ones."""
    if isinstance(first, SourceSide) and first.module.example is not None:
        return list(first.module.example.inputs)
    random = np.random.default_rng(0)
    graph = first.graph if first.graph is not None else second.graph
    drawn = [] if graph is None else drawn_inputs(graph, first.catalogue)
    arrays = []
    for number, info in enumerate(first.inputs):
        other = _matching(info, number, second.inputs)
        limits = _range(info) or (None if other is None else _range(other)) or _recorded(graph, number)
        shape = info.example_shape
        if limits is not None:
            arrays.append(random.uniform(*limits, shape).astype(np.float32))
        elif graph is first.graph and number < len(drawn):
            arrays.append(drawn[number])
        else:
            dtype = np.dtype(info.dtype or "float32")
            is_float = dtype.kind == "f"
            arrays.append((random.standard_normal(shape) if is_float else np.zeros(shape)).astype(dtype))
    return arrays


def _range(info: TensorInfo) -> tuple[float, float] | None:
    """Returns the real values that a quantized input can represent."""
    if len(info.scale) != 1 or not info.dtype:
        return None
    ends = np.iinfo(info.dtype)
    low, high = ((int(end) - info.zero_point[0]) * info.scale[0] for end in (ends.min, ends.max))
    return low, high


def _recorded(graph: InternalGraph | None, number: int) -> tuple[float, float] | None:
    """Returns the range of an input by its quantization parameters, or those of what quantizes it."""
    nodes = [] if graph is None else [node for node in graph.inputs if isinstance(node, TensorNode)]
    if number >= len(nodes):
        return None
    users = [call for call in nodes[number].users if has_trait(call, Quantizes)]
    made = [node for call in users for node in call.outputs if isinstance(node, TensorNode)]
    for qparams in (node.qparams for node in (nodes[number], *made)):
        if qparams is not None and len(qparams.scale) == 1:
            ends = (qparams.quant_min, qparams.quant_max)
            low, high = ((end - qparams.zero_point[0]) * qparams.scale[0] for end in ends)
            return low, high
    return None


def _matching(info: TensorInfo, number: int, others: Sequence[TensorInfo]) -> TensorInfo | None:
    """Returns the input of the other model: of the same name, or else at the same place."""
    by_name = next((other for other in others if other.name == info.name), None)
    return by_name or (others[number] if number < len(others) else None)


def in_order_of(side: AnySide, other: AnySide, arrays: Arrays) -> list[np.ndarray]:
    """Returns the arrays of ``other`` in the order and layout of ``side``. Raises UsageError TM6003."""
    if len(side.inputs) != len(other.inputs):
        raise UsageError(
            "TM6003", f"{other.title} has {len(other.inputs)} inputs, {side.title} has {len(side.inputs)}"
        )
    names = [info.name for info in other.inputs]
    same = {info.name for info in side.inputs} == set(names)
    found = []
    for number, info in enumerate(side.inputs):
        place = names.index(info.name) if same else number
        found.append(_moved(arrays[place], other.inputs[place], info, side.title))
    return found


def _moved(array: np.ndarray, given: TensorInfo, wanted: TensorInfo, title: str) -> np.ndarray:
    is_as_given = given.shape is None or _fits(array.shape, given.shape)  # not in the layout of the source
    has_other = given.layout and wanted.layout and given.layout != wanted.layout
    if array.ndim == 4 and is_as_given and has_other:
        return array.transpose((0, 2, 3, 1) if wanted.layout == "NHWC" else (0, 3, 1, 2))
    shape = wanted.shape
    if shape is None or _fits(array.shape, shape):
        return array
    for order in ((0, 2, 3, 1), (0, 3, 1, 2)):
        if array.ndim == 4 and _fits(tuple(array.shape[axis] for axis in order), shape):
            return array.transpose(order)
    raise UsageError(
        "TM6003", f"the input {wanted.name} of {title} is {wanted.type_text}, got shape {list(array.shape)}"
    )


def _fits(shape: Sequence[int], wanted: Sequence[int | str]) -> bool:
    return len(shape) == len(wanted) and all(
        own == size or not isinstance(size, int) for own, size in zip(shape, wanted, strict=True)
    )


def _compare_outputs(
    first: AnySide, second: AnySide, arrays: Arrays, of_second: Arrays, found: ModelComparison
) -> None:
    one, other = first.outputs(arrays), second.outputs(of_second)
    if len(one) != len(other):
        found.notes.append(
            f"{first.title} has {len(one)} outputs, {second.title} has {len(other)}: outputs are not compared"
        )
        return
    limit = LIMITS[found.kind].output
    for number, place in output_places(first, second):
        moved, _ = aligned(one[number], other[place])
        found.outputs.append(
            OutputDifference(first.output_names[number], difference(one[number], moved), limit)
        )


def output_places(first: AnySide, second: AnySide) -> list[tuple[int, int]]:
    """Returns the indices of outputs that belong together: by name, or else in order.

    Raises UsageError TM6003 for models with other numbers of outputs.
    """
    ours, theirs = first.output_keys, second.output_keys
    if len(ours) != len(theirs):
        has = f"{first.title} has {counted(len(ours), 'output')}, {second.title} has {len(theirs)}"
        raise UsageError("TM6003", has)
    has_names = sorted(theirs) == sorted(ours) and len(set(theirs)) == len(theirs)
    return [(place, theirs.index(key) if has_names else place) for place, key in enumerate(ours)]


def _pairs(trusted: AnySide, suspect: AnySide) -> list[Pair]:
    """Returns the tensors of the same name, in the order of the trusted side."""
    known = _unique(suspect.tensors())
    return [Pair(each, known[key]) for key, each in _unique(trusted.tensors()).items() if key in known]


def _unique(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    counts = Counter(each.key for each in tensors)
    return {each.key: each for each in tensors if counts[each.key] == 1}


def _layers(
    trusted: AnySide,
    suspect: AnySide,
    arrays: Arrays,
    of_suspect: Arrays,
    pairs: Sequence[Pair],
    kind: str,
    is_equalized: bool,
) -> Iterator[LayerDifference]:
    names = {pair.suspect.name for pair in pairs}
    operators = suspect.operators_between(names)
    segments = None
    if trusted.graph is not None:
        by_key = {pair.suspect.key: pair.suspect.name for pair in pairs}
        segments = Segments(trusted.graph, trusted.catalogue, by_key)
        rounded = suspect.rounded(of_suspect)
        segments.set_inputs(in_order_of(trusted, suspect, rounded))
    stream = trusted.stream(arrays, [pair.trusted.name for pair in pairs])
    waiting = iter(pairs)
    for chunk in suspect.chunks([pair.suspect.name for pair in pairs]):
        operands = [] if segments is None else segments.operands_of(chunk)
        values = suspect.values(of_suspect, list(dict.fromkeys([*chunk, *operands])))
        for _ in chunk:
            pair = next(waiting)
            _, expected = next(stream)
            limits = (kind, suspect.range_of(pair.suspect.name))
            is_scaled = is_equalized and pair.suspect.key not in suspect.output_keys  # which keep their scale
            axis = trusted.channel_axis if is_scaled else None
            found = judged(pair.suspect, expected, values, segments, limits, axis)
            yield LayerDifference(
                pair.suspect.name,
                operators.get(pair.suspect.name, (pair.suspect.operator,)),
                pair.trusted.operator,
                found.accumulated,
                found.local,
                found.limit,
                found.is_wrong,
            )
