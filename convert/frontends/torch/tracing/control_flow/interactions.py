"""Recordings in which each decision was taken otherwise once, checked where several are taken otherwise.

Independent decisions are joined one by one, so that the number of runs grows with their number. Whether one
side uses what another has computed shows in runs in which both are taken: what such a run records must be
what the joined recording has for its answers. Of the runs that are tried here, each pair of decisions is
taken otherwise in one at least.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tmconvert.frontends.torch.tracing.control_flow.alignment import Item, same_constant
from tmconvert.frontends.torch.tracing.control_flow.decisions import DECISION
from tmconvert.frontends.torch.tracing.recording.tape import Forced, Record, Scope, Tape, Value
from tmconvert.ir.tree import leaves, map_leaves


class Interacts(Exception):
    """A run does not record what the joined recording has for its answers."""


def snapshot(scope: Scope) -> Scope:
    """Returns a copy of a scope with the same Values and decisions, whose items are not changed by joins."""
    copied: dict[Scope, Scope] = {}

    def leaf(each: object) -> Any:
        if not isinstance(each, Scope):
            return each
        copied[each] = snapshot(each)
        return copied[each]

    items: list[Item] = []
    for item in scope.items:
        if isinstance(item, Scope):
            items.append(snapshot(item))
        elif item.subgraphs:
            args, kwargs = map_leaves(leaf, (item.args, item.kwargs))
            subgraphs = tuple(copied.get(each, each) for each in item.subgraphs)
            items.append(dataclasses.replace(item, args=args, kwargs=kwargs, subgraphs=subgraphs))
        else:
            items.append(item if item.name == DECISION else dataclasses.replace(item))
    return dataclasses.replace(scope, items=items)


def covering(forced: Forced, count: int) -> Iterator[Forced]:
    """Yields answers such that each two of ``count`` decisions are taken otherwise in one of the runs."""
    tests: list[Callable[[int], bool]] = [lambda number: True]
    for bit in range(max(count - 1, 1).bit_length()):
        tests.append(lambda number, bit=bit: bool(number >> bit & 1))  # type: ignore[misc]
        tests.append(lambda number, bit=bit: not number >> bit & 1)  # type: ignore[misc]
    for test in tests:
        yield forced._replace(otherwise=test)


def check(joined: Scope, run: Tape) -> None:
    """Raises Interacts where a run records something else than the joined recording has for its answers."""
    answers = iter([(str(each.source), each.args[1]) for each in run.decided])
    values: dict[Value, Value] = {}
    ones, twos = [*_taken(joined, answers, values)], [*_records(run.top)]
    if next(answers, None) is not None or len(ones) != len(twos):
        raise Interacts
    pairs: dict[Value, Value] = {}
    others = leaves((run.top.args, run.top.kwargs))
    _pair(leaves((joined.args, joined.kwargs)), others, pairs, is_new=True)
    for one, two in zip(ones, twos, strict=True):
        if (one.name, one.is_method) != (two.name, two.is_method):
            raise Interacts
        _pair(_leaves(values, (one.args, one.kwargs)), _leaves({}, (two.args, two.kwargs)), pairs)
        _pair(leaves(one.result), leaves(two.result), pairs, is_new=True)
    _pair(_leaves(values, joined.result), _leaves({}, run.top.result), pairs)


def _pair(ones: list[Any], twos: list[Any], pairs: dict[Value, Value], *, is_new: bool = False) -> None:
    if len(ones) != len(twos):
        raise Interacts
    for one, two in zip(ones, twos, strict=True):
        if not isinstance(one, Value) or not isinstance(two, Value):
            if repr(one) != repr(two):
                raise Interacts
        elif is_new:
            pairs[one] = two
        elif pairs.get(one) is not two and not same_constant(one, two):
            raise Interacts


def _leaves(values: Mapping[Value, Value], tree: object) -> list[Any]:
    return [values.get(leaf, leaf) for leaf in leaves(tree) if not isinstance(leaf, Scope)]


def _records(scope: Scope) -> Iterator[Record]:
    return (each for each in scope.records() if each.name != DECISION)


def _taken(scope: Scope, answers: Iterator[tuple[str, bool]], values: dict[Value, Value]) -> Iterator[Record]:
    """Yields the calls for these answers; ``values`` gets what the results of branches are."""
    given: tuple[Any, bool] | None = None
    for item in scope.items:
        if isinstance(item, Scope):
            yield from _taken(item, answers, values)
        elif item.name == DECISION:
            place, answer = next(answers, ("", False))
            if place != str(item.source):
                raise Interacts
            given = item, answer
        elif given is not None and _is_branch_of(item, given[0]):
            side = item.subgraphs[0 if given[1] else 1]
            yield from _taken(side, answers, values)
            for one, two in zip(item.results(), side.result, strict=True):
                values[one] = values.get(two, two)
            given = None
        else:
            yield item
            for body in item.subgraphs:
                yield from body.records()


def _is_branch_of(item: Record, decision: Record) -> bool:
    return item.name == "torch.cond" and item.source is decision.source and item.args[0] is decision.args[0]
