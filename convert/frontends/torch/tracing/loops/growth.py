"""Tensors that grow from round to round: ``h = torch.cat([h, y])`` becomes one join after the loop.

That is what a list does whose tensors are joined. A round may read the end of the tensor: that of the part
that was appended last.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from tmconvert.frontends.torch.tracing.loops.tidy import Item, own_name, scopes_of, used_by
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.tree import leaves_of

JOINS = ("cat", "concat", "concatenate")


class Growth(NamedTuple):
    """A join of two tensors: the result, the one that grows, the new part, whether that is last, the axis."""

    result: Value
    old: Value
    new: Value
    is_last: bool
    axis: int


def join_growth(top: Scope) -> None:
    """Joins once what is appended to a tensor again and again, where nothing else reads the tensor."""
    for scope in [*scopes_of(top)]:
        grown = growths(scope)
        if not grown:
            continue
        for item in scope.items:
            read_end(item, grown)
        uses = Counter(
            [value for item in top.items for value in used_by(item)] + leaves_of(Value, top.result)
        )
        pending: dict[Value, tuple[list[Value], Record]] = {}
        items: list[Item] = []
        for item in scope.items:
            result = getattr(item, "result", None)
            growth = grown.get(result) if isinstance(result, Value) else None
            if growth is not None and isinstance(item, Record):
                earlier = pending.pop(growth.old, None) if uses[growth.old] == 1 else None
                old = [growth.old] if earlier is None else earlier[0]
                parts = [*old, growth.new] if growth.is_last else [growth.new, *old]
                pending[growth.result] = parts, item
            for value in [value for value in used_by(item) if value in pending]:
                if growth is None or value is not result:
                    items.append(_joined(*pending.pop(value), grown))
            if growth is None:
                items.append(item)
        scope.items[:] = [*items, *(_joined(*each, grown) for each in pending.values())]


def _joined(parts: list[Value], call: Record, grown: dict[Any, Growth]) -> Record:
    return Record("torch.cat", False, (parts, grown[call.result].axis), {}, call.result, call.source)


def growths(scope: Scope) -> dict[Any, Growth]:
    """Returns the joins at lines that append to the result of the same line, by their results."""
    found: dict[Any, Growth] = {}
    lines: dict[Any, str] = {}
    chained: set[str] = set()
    for item in scope.items:
        growth = _growth(item, lines) if isinstance(item, Record) else None
        if growth is not None and isinstance(item, Record):
            found[item.result], lines[item.result] = growth, str(item.source)
            chained |= {lines[item.result]} if lines.get(growth.old) == lines[item.result] else set()
    return {result: growth for result, growth in found.items() if lines[result] in chained}


def _growth(call: Record, lines: dict[Any, str]) -> Growth | None:
    if own_name(call) not in JOINS or not isinstance(call.result, Value) or call.result.shape is None:
        return None
    given = dict(zip(("tensors", "dim"), call.args, strict=False)) | call.kwargs
    tensors, axis = given.get("tensors"), given.get("dim", 0)
    if not isinstance(tensors, (list, tuple)) or len(tensors) != 2 or not isinstance(axis, int):
        return None
    is_last = lines.get(tensors[1]) != str(call.source)
    old, new = tensors if is_last else tensors[::-1]
    return Growth(call.result, old, new, is_last, axis % len(call.result.shape))


def read_end(item: Item, grown: dict[Any, Growth]) -> None:
    """Takes what a call selects of the end of a tensor that grows from the part that was appended last."""
    if not isinstance(item, Record) or not item.args or not isinstance(item.args[0], Value):
        return
    growth = grown.get(item.args[0])
    if growth is None or not growth.is_last:
        return
    index: Any = None
    if own_name(item) == "select" and item.args[1:2] == (growth.axis,):
        index = item.args[2]
    if item.name == "__getitem__":
        parts = item.args[1] if isinstance(item.args[1], tuple) else (item.args[1],)
        if all(type(part) in (int, slice) for part in parts[: growth.axis + 1]) and len(parts) > growth.axis:
            before = parts[: growth.axis]
            index = None if any(type(part) is int for part in before) else parts[growth.axis]
    if type(index) is int and -(growth.new.shape or (0,))[growth.axis] <= index < 0:
        item.args = (growth.new, *item.args[1:])
