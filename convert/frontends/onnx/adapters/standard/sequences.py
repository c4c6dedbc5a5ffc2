"""Sequences and optionals whose length is known when the model is converted."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import axis_of, known_numbers, scalar, stacked, static_ints
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.subgraphs import emitted

OPERATORS = OperatorTable()


class TensorSequence:
    """A sequence of tensors while the model is converted."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def _items(value) -> list[Any]:
    if not isinstance(value, TensorSequence):
        raise Refusal("a sequence has a data-dependent length")
    return value.items


def _place(g: Emitter, position, count: int) -> int:
    place = int(scalar(g, position, "the position in a sequence"))
    place = place + count if place < 0 else place
    if not 0 <= place <= count:
        raise Refusal(f"position {place} is outside of a sequence of {count} tensors")
    return place


OPERATORS.add("SequenceEmpty")(lambda g, *, dtype=1: TensorSequence([]))
OPERATORS.add("SequenceConstruct")(lambda g, *inputs: TensorSequence(list(inputs)))


@OPERATORS.add("SequenceInsert")
def sequence_insert(g, input_sequence, tensor, position=None):
    items = list(_items(input_sequence))
    items.insert(len(items) if position is None else _place(g, position, len(items)), tensor)
    return TensorSequence(items)


@OPERATORS.add("SequenceErase")
def sequence_erase(g, input_sequence, position=None):
    items = list(_items(input_sequence))
    del items[-1 if position is None else _place(g, position, len(items))]
    return TensorSequence(items)


@OPERATORS.add("SequenceAt")
def sequence_at(g, input_sequence, position):
    items = _items(input_sequence)
    return items[_place(g, position, len(items))]


OPERATORS.add("SequenceLength")(lambda g, input_sequence: g.constant(len(_items(input_sequence)), np.int64))


@OPERATORS.add("SplitToSequence")
def split_to_sequence(g, input, split=None, *, axis=0, keepdims=1):
    place = axis_of(g, input, axis)
    extent = g.type(input).shape[place]
    if split is None:
        if not isinstance(extent, int):
            raise Refusal(f"a sequence of {extent} tensors has no static length")
        sizes = [1] * extent
    elif g.type(split).rank:
        sizes = static_ints(g, split, "the sizes of SplitToSequence")
    else:
        each = int(known_numbers(g, split, "the size of SplitToSequence"))
        sizes = [min(each, extent - start) for start in range(0, extent, each)]
    parts = g.call("aten::split_with_sizes", input, sizes, place) if len(sizes) > 1 else [input]
    parts = list(parts) if isinstance(parts, (list, tuple)) else [parts]
    if split is None and not keepdims:
        parts = [g.call("aten::select", part, place, 0) for part in parts]
    return TensorSequence(parts)


@OPERATORS.add("ConcatFromSequence")
def concat_from_sequence(g, input_sequence, *, axis, new_axis=0):
    items = _items(input_sequence)
    if not items:
        raise Refusal("a sequence without tensors cannot be concatenated")
    if not new_axis:
        return g.call("aten::cat", items, axis_of(g, items[0], axis)) if len(items) > 1 else items[0]
    return stacked(g, items, axis % (g.type(items[0]).rank + 1))


@OPERATORS.add("SequenceMap")
def sequence_map(g, input_sequence, *additional_inputs, body, captured=((),)):
    rows = []
    for number, item in enumerate(_items(input_sequence)):
        others = [
            each.items[number] if isinstance(each, TensorSequence) else each for each in additional_inputs
        ]
        rows.append(emitted(g, body, [item, *others, *captured[0]]))
    return [TensorSequence(list(column)) for column in zip(*rows, strict=True)]


# ---- optionals: a value, or None


class Missing:
    """An optional without a value."""


OPERATORS.add("Optional")(lambda g, input=None, *, type=None: Missing() if input is None else input)


@OPERATORS.add("OptionalHasElement")
def optional_has_element(g, input=None):
    return g.constant(input is not None and not isinstance(input, Missing))


@OPERATORS.add("OptionalGetElement")
def optional_get_element(g, input):
    if isinstance(input, Missing):
        raise Refusal("OptionalGetElement of an optional that has no value")
    return input
