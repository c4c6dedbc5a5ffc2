"""The differences of nodes that correspond, and of those that have no partner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tmconvert.difference.matching import Matching, Side
from tmconvert.frontends.shared.view_graph import ViewTensor

# in the order of reports
KINDS = (
    *("removed", "added", "replaced", "fused", "moved", "attribute", "weights", "quantization", "type"),
    *("shape", "renamed"),
)


class Change(NamedTuple):
    """One difference: its kind, of ``KINDS``, the node or tensor in each model, and what is different.

    ``first`` and ``second`` are empty for what one model does not have; ``values`` are numbers for JSON.
    """

    kind: str
    first: str
    second: str
    text: str
    values: Mapping[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "values": dict(self.values)}


def changes_of(matching: Matching) -> list[Change]:
    """Returns all differences of two graphs, by kind, in the order of the graph.

    >>> changes_of(Matching(a, b))  # doctest: +SKIP
    [Change(kind='attribute', first='conv', second='conv', text='stride: 1 -> 2', values={})]
    """
    found = [*_groups(matching), *_pairs(matching), *_edges(matching)]
    return sorted(found, key=lambda each: KINDS.index(each.kind))


def _pairs(matching: Matching) -> Iterator[Change]:
    for one, other in sorted(matching.pairs.items()):
        yield from _attributes(matching, one, other)
        yield from _operands(matching, one, other)
        first, second = matching.first.graph.nodes[one], matching.second.graph.nodes[other]
        for index, its in zip(first.outputs, second.outputs, strict=False):
            yield from _tensors(matching.first.graph.tensors[index], matching.second.graph.tensors[its])


def _edges(matching: Matching) -> Iterator[Change]:
    """Yields the differences of inputs, and of how many there are."""
    one, other = matching.first.graph, matching.second.graph
    for word, ones, others in (("input", one.inputs, other.inputs), ("output", one.outputs, other.outputs)):
        names = [one.tensors[each].name for each in ones], [other.tensors[each].name for each in others]
        if len(ones) == len(others):
            if word == "input":
                for index, its in zip(ones, others, strict=True):
                    yield from _tensors(one.tensors[index], other.tensors[its])
            continue
        for name in names[0]:
            if name not in names[1]:
                yield Change("removed", name, "", f"the {word} {name}")
        for name in names[1]:
            if name not in names[0]:
                yield Change("added", "", name, f"the {word} {name}")


def _attributes(matching: Matching, one: int, other: int) -> Iterator[Change]:
    for key, values, is_default in _unequal_attributes(matching, one, other):
        if not is_default:
            text = f"{matching.first.type(one)}: {key} {values[0]} -> {values[1]}"
            yield Change("attribute", matching.first.name(one), matching.second.name(other), text)


def stated_defaults(matching: Matching) -> list[str]:
    """Returns the attributes that one graph leaves out, and the other one states as what is taken then."""
    return [
        f"{matching.first.name(one)}: {key}"
        for one, other in sorted(matching.pairs.items())
        for key, _, is_default in _unequal_attributes(matching, one, other)
        if is_default
    ]


def _unequal_attributes(
    matching: Matching, one: int, other: int
) -> Iterator[tuple[str, tuple[str, str], bool]]:
    """Yields names, values, and whether the only stated one is the default."""
    first, second = matching.first.graph.nodes[one], matching.second.graph.nodes[other]
    for key in dict.fromkeys([*first.attributes, *second.attributes]):
        values = first.attributes.get(key, "none"), second.attributes.get(key, "none")
        stated = [each for each in values if each != "none"]
        if values[0] != values[1]:
            is_default = len(stated) == 1 and matching.first.graph.is_default(first.type, key, stated[0])
            yield key, values, is_default


def _operands(matching: Matching, one: int, other: int) -> Iterator[Change]:
    """Yields the constants that changed, and operands that come from other nodes than before."""
    first, second = matching.first.graph.nodes[one], matching.second.graph.nodes[other]
    names = matching.first.name(one), matching.second.name(other)
    ones, others = matching.first.graph.tensors, matching.second.graph.tensors
    if len(first.inputs) != len(second.inputs):
        text = f"{first.type}: {len(first.inputs)} operands -> {len(second.inputs)}"
        yield Change("attribute", *names, text)
    for position, (index, its) in enumerate(zip(first.inputs, second.inputs, strict=False)):
        if index < 0 or its < 0:
            continue
        constants = ones[index].values, others[its].values
        if constants[0] is not None and constants[1] is not None:
            if matching.first.digest(index) != matching.second.digest(its):
                yield _weights(names, first.type, ones[index], others[its])
            elif ones[index].qparams != others[its].qparams:
                yield from _quantization(ones[index], others[its])
            continue
        producers = ones[index].producer, others[its].producer
        if min(producers) >= 0 and matching.pairs.get(producers[0], producers[1]) != producers[1]:
            text = f"{first.type}: operand {position} is {others[its].name}, was {ones[index].name}"
            if producers[1] in matching.reverse:
                yield Change("moved", *names, text)


def _weights(names: tuple[str, str], type: str, one: ViewTensor, other: ViewTensor) -> Change:
    first, second = one.values, other.values
    assert first is not None and second is not None
    if first.shape != second.shape:
        text = f"{type}: {one.name} {one.type} -> {other.type}"
        return Change("weights", *names, text, {"shape": [list(first.shape), list(second.shape)]})
    count = int(np.count_nonzero(first != second))
    wide = np.asarray(first, np.float64), np.asarray(second, np.float64)
    norm = float(np.linalg.norm(wide[1] - wide[0]) / (np.linalg.norm(wide[0]) or 1.0))
    types = "" if first.dtype == second.dtype else f"{first.dtype} -> {second.dtype}, "
    text = f"{type}: {one.name} {types}{count} of {first.size} elements, relative norm {norm:.2g}"
    return Change("weights", *names, text, {"elements": count, "of": first.size, "norm": norm})


def _tensors(one: ViewTensor, other: ViewTensor) -> Iterator[Change]:
    if one.name != other.name:
        yield Change("renamed", one.name, other.name, f"{one.name} -> {other.name}")
    types, shapes = zip(*(each.type.partition("[")[::2] for each in (one, other)), strict=True)
    if types[0] != types[1]:
        yield Change("type", one.name, other.name, f"{one.name}: {types[0]} -> {types[1]}")
    if shapes[0] != shapes[1]:
        yield Change("shape", one.name, other.name, f"{one.name}: [{shapes[0]} -> [{shapes[1]}")
    yield from _quantization(one, other)


def _quantization(one: ViewTensor, other: ViewTensor) -> Iterator[Change]:
    if one.qparams != other.qparams:
        first, second = _qparams_texts(one.qparams, other.qparams)
        second += " in a later channel" if first == second else ""
        yield Change("quantization", one.name, other.name, f"{one.name}: {first} -> {second}")


def _qparams_texts(*both: Mapping[str, Any] | None) -> list[str]:
    """Returns the parameters of the first channel in which they differ, with the digits that show it."""
    channels = [[*zip(_scales(each), _zeros(each), strict=False)] for each in both]
    differing = [number for number, pair in enumerate(zip(*channels, strict=False)) if pair[0] != pair[1]]
    channel = differing[0] if differing else 0
    texts: list[str] = []
    for digits in (4, 6, 9, 17):
        texts = [_qparams_text(each, channel, digits) for each in both]
        if texts[0] != texts[1]:
            break
    return texts


def _scales(qparams: Mapping[str, Any] | None) -> list[float]:
    return [] if qparams is None else [*qparams["scale"]]


def _zeros(qparams: Mapping[str, Any] | None) -> list[int]:
    zeros, count = [] if qparams is None else [*qparams["zero"]], len(_scales(qparams))
    return zeros if len(zeros) == count else (zeros[:1] or [0]) * count


def _qparams_text(qparams: Mapping[str, Any] | None, channel: int, digits: int) -> str:
    if qparams is None:
        return "none"
    scales, zeros = _scales(qparams), _zeros(qparams)
    count = f", channel {channel} of {qparams['count']}" if qparams["count"] > 1 else ""
    at = min(channel, len(scales) - 1)
    scale, zero = (f"{scales[at]:.{digits}g}", zeros[min(at, len(zeros) - 1)]) if scales else ("none", 0)
    return f"{qparams['type']} (scale {scale}, zero point {zero}{count})"


def _groups(matching: Matching) -> Iterator[Change]:
    """Yields the nodes without partners: groups between the same neighbours replace each other."""
    ones = _components(matching.first, matching.pairs)
    others = _components(matching.second, matching.reverse)
    by_border: dict[frozenset[tuple[str, int]], list[list[int]]] = {}
    for group in others:
        by_border.setdefault(_border(matching.second, group, None), []).append(group)
    left = []
    for group in ones:
        border = _border(matching.first, group, matching.pairs)
        found = by_border.get(border)
        if found and border:
            yield _replaced(matching, group, found.pop(0))
        else:
            left.append(group)
    for group in left:
        for number in group:
            yield _removed(matching, number)
    for groups in by_border.values():
        for number in (each for group in groups for each in group):
            name = matching.second.name(number)
            yield Change("added", "", name, f"{matching.second.type(number)} {name}")


def _removed(matching: Matching, number: int) -> Change:
    """A removed node is fused into its operand's node, or reader, where that has changed instead."""
    side, name = matching.first, matching.first.name(number)
    around = [each for each in side.operands(number) if each >= 0] + [
        each for each, _ in side.readers[number]
    ]
    for each in around:
        partner = matching.pairs.get(each)
        if partner is not None and _is_changed(matching, each, partner):
            into = matching.second.name(partner)
            text = f"{side.type(number)} {name} -> into {matching.second.type(partner)} {into}"
            return Change("fused", name, into, text)
    return Change("removed", name, "", f"{side.type(number)} {name}")


def _is_changed(matching: Matching, one: int, other: int) -> bool:
    return any(True for _ in _attributes(matching, one, other)) or any(
        each.kind in ("weights", "attribute") for each in _operands(matching, one, other)
    )


def _replaced(matching: Matching, ones: list[int], others: list[int]) -> Change:
    types = [", ".join(map(matching.first.type, ones)), ", ".join(map(matching.second.type, others))]
    names = [", ".join(map(matching.first.name, ones)), ", ".join(map(matching.second.name, others))]
    kind = "fused" if len(others) < len(ones) else "replaced"
    return Change(kind, names[0], names[1], f"{types[0]} ({names[0]}) -> {types[1]} ({names[1]})")


def _components(side: Side, partners: Mapping[int, int]) -> list[list[int]]:
    """Returns the connected groups of nodes without partners, in order."""
    left = [number for number in range(len(side.graph.nodes)) if number not in partners]
    seen: set[int] = set()
    groups = []
    for start in left:
        if start in seen:
            continue
        group, stack = [], [start]
        seen.add(start)
        while stack:
            number = stack.pop()
            group.append(number)
            near = [*side.operands(number), *(each for each, _ in side.readers[number])]
            new = {each for each in near if each >= 0 and each not in partners and each not in seen}
            seen |= new
            stack += new
        groups.append(sorted(group))
    return groups


def _border(side: Side, group: list[int], partners: Mapping[int, int] | None) -> frozenset[tuple[str, int]]:
    """Returns the neighbours of a group, as numbers of the second graph."""
    inside = set(group)

    def number(each: int) -> int:
        return each if partners is None else partners[each]

    before = {each for one in group for each in side.operands(one) if each >= 0 and each not in inside}
    after = {each for one in group for each, _ in side.readers[one] if each not in inside}
    inputs = {side.graph.inputs.index(each) for one in group for each in _inputs(side, one)}
    outputs = {
        at for at, each in enumerate(side.graph.outputs) if side.graph.tensors[each].producer in inside
    }
    return frozenset(
        [("before", number(each)) for each in before]
        + [("after", number(each)) for each in after]
        + [("input", each) for each in inputs]
        + [("output", each) for each in outputs]
    )


def _inputs(side: Side, number: int) -> list[int]:
    return [each for each in side.graph.nodes[number].inputs if each in side.graph.inputs]
