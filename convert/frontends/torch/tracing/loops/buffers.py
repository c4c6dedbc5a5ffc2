"""Tensors that grow from round to round and are read whole: ``h = torch.cat([h, y]); s = h.mean(0)``.

Such a tensor becomes a buffer of its last size. Each round writes its part, and reads the rows that are
written so far: ``buffer[:k]``. A list that is joined in each round is such a tensor, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tmconvert.frontends.torch.tracing.loops.copies import LEAST
from tmconvert.frontends.torch.tracing.loops.growth import Growth, growths, read_end
from tmconvert.frontends.torch.tracing.loops.tidy import (
    Item,
    like,
    made_by,
    own_name,
    replace,
    scopes_of,
    used_by,
)
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.tree import leaves_of, map_leaves

JOINS = {"stack": "stack", "cat": "cat", "concat": "cat", "concatenate": "cat"}


def buffer_growth(top: Scope) -> None:
    """Makes buffers of all tensors that grow by one part at a time and are read whole."""
    for scope in [*scopes_of(top)]:
        _append_lists(scope)
        grown = growths(scope)
        for item in scope.items if grown else ():
            read_end(item, grown)
        for chain in _chains(grown):
            uses = Counter(
                [value for item in top.items for value in used_by(item)] + leaves_of(Value, top.result)
            )
            if sum(uses[each.result] > 1 for each in chain[:-1]) >= LEAST - 1:
                _Buffer(scope, chain).write()


def _append_lists(scope: Scope) -> None:
    """Appends to the tensor of the round before, where each round joins a list with one more element."""
    last: dict[tuple[str, str], tuple[list[Any], Any]] = {}
    items: list[Item] = []
    for item in scope.items:
        found = _joined_list(item) if isinstance(item, Record) else None
        if found is not None and isinstance(item, Record):
            (tensors, axis), key = found, (item.name, str(item.source))
            earlier, result = last.get(key, ([], None))
            last[key] = tensors, item.result
            if earlier and earlier == tensors[:-1]:
                new = tensors[-1]
                if JOINS[own_name(item)] == "stack":
                    part = like(new, scope, [*new.shape[:axis], 1, *new.shape[axis:]])
                    items.append(Record("unsqueeze", True, (new, axis), {}, part, item.source))
                    new = part
                args = ([result, new], axis)
                item = Record("torch.cat", False, args, {}, item.result, item.source)
        items.append(item)
    scope.items[:] = items


def _joined_list(call: Record) -> tuple[list[Any], int] | None:
    if own_name(call) not in JOINS or not isinstance(call.result, Value) or not call.result.shape:
        return None
    given = dict(zip(("tensors", "dim"), call.args, strict=False)) | call.kwargs
    tensors, axis = given.get("tensors"), given.get("dim", 0)
    if not isinstance(tensors, (list, tuple)) or not isinstance(axis, int):
        return None
    return [*tensors], axis % len(call.result.shape)


def _chains(grown: dict[Any, Growth]) -> Iterator[list[Growth]]:
    """Yields the growths that follow each other, of parts of one size at the end of one tensor."""
    chains: dict[Value, list[Growth]] = {}
    for growth in grown.values():
        chain = chains.pop(growth.old, [])
        is_same = not chain or (growth.axis, growth.new.shape) == (chain[-1].axis, chain[-1].new.shape)
        if growth.is_last and growth.old.dtype == growth.new.dtype and is_same:
            chains[growth.result] = [*chain, growth]
    yield from (chain for chain in chains.values() if len(chain) >= LEAST)


class _Buffer:
    """The buffer of the growths of one tensor in a scope."""

    def __init__(self, scope: Scope, chain: list[Growth]) -> None:
        self.scope, self.chain, self.axis = scope, chain, chain[0].axis
        self.links = {growth.result: growth for growth in chain}
        values = [chain[0].old, *(growth.result for growth in chain)]
        shape = values[-1].shape or ()
        self.buffers = {value: like(values[-1], scope, shape) for value in values}
        self.source: Any = None

    def write(self) -> None:
        """Puts the buffer in the place of the tensor."""
        start, items = self._start(), list[Item]()
        lines = self._lines()
        for place, item in enumerate(self.scope.items):
            if place == start:
                items += self._made(item)
            growth = self.links.get(getattr(item, "result", None))  # type: ignore[arg-type]
            if growth is not None and isinstance(item, Record):
                old, new = self.buffers[growth.old], self.buffers[growth.result]
                bounds = [(each.shape or ())[self.axis] for each in (growth.old, growth.result)]
                args = (old, growth.new, self.axis, *bounds)
                items.append(Record("slice_scatter", True, args, {}, new, item.source))
                continue
            is_late = place >= start and str(getattr(item, "source", "")) in lines
            for value in dict.fromkeys(used_by(item)):
                if value in self.links or (is_late and value is self.chain[0].old):
                    items.append(self._read(value, item))
                    replace(item, {value: items[-1].result})
            items.append(item)
        reads = {
            value: self._read(value, items[-1])
            for value in leaves_of(Value, self.scope.result)
            if value in self.links
        }
        self.scope.result = map_leaves(
            lambda leaf: reads[leaf].result if leaf in reads else leaf, self.scope.result
        )
        self.scope.items[:] = [*items, *reads.values()]

    def _start(self) -> int:
        """Returns the place where the buffer is made: after the tensor's first part, or before the loop."""
        first = self.chain[0].old
        made = next((at for at, item in enumerate(self.scope.items) if first in made_by(item)), None)
        if made is not None:
            return made + 1
        link = self.chain[0].result
        return next(at for at, item in enumerate(self.scope.items) if getattr(item, "result", None) is link)

    def _lines(self) -> set[str]:
        """Returns the lines that read the tensor in rounds."""
        return {
            str(item.source)
            for item in self.scope.items
            if any(value in self.links for value in used_by(item))
        }

    def _made(self, item: Item) -> Iterator[Record]:
        first = self.chain[0].old
        buffer, source = self.buffers[first], item.source
        shape = [*(buffer.shape or ())]
        shape[self.axis] -= (first.shape or ())[self.axis]
        rest = like(buffer, self.scope, shape)
        kwargs = {"dtype": GlobalRef("torch", buffer.dtype)}
        assert source is not None
        yield Record("torch.zeros", False, (shape,), kwargs, rest, source)
        yield Record("torch.cat", False, ([first, rest], self.axis), {}, buffer, source)

    def _read(self, value: Value, item: Item) -> Record:
        """Returns the call that takes what is written of the buffer."""
        made = like(value, self.scope)
        args = (self.buffers[value], self.axis, 0, (value.shape or ())[self.axis])
        assert item.source is not None
        return Record("narrow", True, args, {}, made, item.source)
