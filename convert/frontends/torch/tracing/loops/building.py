"""Makes one call of torch.scan of the copies of a loop's body.

The scan goes over the numbers of the rounds. What a round computes from its number, such as an index, is a
slice of a tensor that is computed before the scan: ``torch.arange(count) * step + start``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.loops.after import uses_after
from tmconvert.frontends.torch.tracing.loops.copies import Carried, Copies, Counted, Differs, Inside, steps_of
from tmconvert.frontends.torch.tracing.loops.indexing import with_counters
from tmconvert.frontends.torch.tracing.loops.progressions import Progression
from tmconvert.frontends.torch.tracing.loops.tidy import Item, like, used_by
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.tree import leaves, leaves_of, map_leaves

LABEL = "loop_step"
SCAN, WHILE = "torch.scan", "torch.while_loop"


def rolled(top: Scope, scope: Scope, copies: Copies) -> None:
    """Replaces the copies among the items of a scope by a scan. Raises Differs."""
    start, end = copies.start, copies.start + copies.count * copies.period
    before, after = scope.items[:start], scope.items[end:]
    items = scope.items[start:end]
    step = Step(scope, copies, items)
    made = step.places(items)
    scope.items[:] = [*before, *after]
    if any(value in made and value.shape is None for value in _used_in(top)):
        scope.items[:] = [*before, *items, *after]
        raise Differs("a size of one round is used after the loop", step.source)
    uses_after(top, step, made)
    scope.items[:] = [*before, *step.call(), *scope.items[len(before) :]]


def _used_in(top: Scope) -> Iterator[Value]:
    for item in top.items:
        yield from used_by(item)
    yield from leaves_of(Value, top.result)


class Step:
    """The subgraph of a loop: the first copy, with formal inputs for what a round gets."""

    is_static = True  # the number of rounds is that of the copies

    def __init__(self, outer: Scope, copies: Copies, items: Sequence[Item]) -> None:
        self.outer, self.copies = outer, copies
        self.source = items[0].source or Source("")
        earlier = sum(isinstance(each, Record) and each.name in (SCAN, WHILE) for each in outer.items)
        name = f"{LABEL}@{earlier}"
        self.scope = Scope(f"{outer.path}.{name}" if outer.path else name, LABEL, outer, source=self.source)
        self.made: list[Any] = []  # by position
        self.emitted: set[Record] = set()  # calls after the loop that join results of all rounds
        self.joins: set[Record] = set()  # those of the model
        self.rows: dict[int, Value] = {}  # stacked results by position
        self.finals: dict[tuple[int, int], Value] = {}  # what is carried last, by position and age
        self._carried: dict[tuple[int, tuple[Value, ...]], list[Value]] = {}
        self._sequences: dict[Any, Value] = {}
        self._calls: list[Record] = []  # before the scan
        self._scanned: list[Value] = []
        self._uses = iter(copies.uses)
        self._copy(items[: copies.period])

    # ---- the copy

    def _copy(self, items: Sequence[Item]) -> None:
        for item in items:
            self._item(item, self.scope)

    def _item(self, item: Item, scope: Scope) -> None:
        """Adds a copy of an item to a scope, leaf by leaf in the order of ``copies.steps_of``."""
        if isinstance(item, Scope):
            args, kwargs = map_leaves(self._scalar, map_leaves(self._used, (item.args, item.kwargs)))
            scope.items.append(self._scope(item, Scope(item.path, item.class_name, scope, args, kwargs)))
            return
        subgraphs = {each: Scope(each.path, each.class_name, scope) for each in item.subgraphs}
        args, kwargs = map_leaves(
            lambda leaf: self._used(leaf) if not isinstance(leaf, Scope) else self._skip(subgraphs[leaf]),
            (item.args, item.kwargs),
        )
        result = map_leaves(lambda leaf: self._new(leaf, scope), item.result)
        call = Record(item.name, item.is_method, args, kwargs, result, item.source, item.function)
        call.subgraphs = tuple(subgraphs.values())
        for old, new in subgraphs.items():
            new.args = map_leaves(lambda leaf, new=new: self._new(leaf, new), old.args)  # type: ignore[misc]
            self._scope(old, new)
        if any(isinstance(leaf, Progression) for leaf in leaves((args, kwargs))):
            scope.items.extend(with_counters(self, call, scope))
        else:
            scope.items.append(call)

    def _scope(self, old: Scope, new: Scope) -> Scope:
        new.source, new.parameters, new.subgraphs = old.source, old.parameters, old.subgraphs
        for item in old.items:
            self._item(item, new)
        new.result = map_leaves(self._scalar, map_leaves(self._used, old.result))
        return new

    def _skip(self, body: Scope) -> Scope:
        next(self._uses)
        return body

    def _new(self, leaf: object, scope: Scope) -> Any:
        value: Any = like(leaf, scope) if isinstance(leaf, Value) else leaf
        if len(self.made) in self.copies.open:
            value.is_open = value.depends = True
        self.made.append(value)
        return value

    def _used(self, leaf: object) -> Any:
        use = next(self._uses)
        if isinstance(use, Inside):
            return self.made[use.position]
        if isinstance(use, Carried):
            return self._slots(use)[-1]
        if isinstance(use, Counted):
            return use.progression if use.like is None else self._constant(use)
        return use.leaf

    def _scalar(self, leaf: object) -> Any:
        return self.sequence(leaf) if isinstance(leaf, Progression) else leaf

    def _slots(self, use: Carried) -> list[Value]:
        """Returns the formal inputs for the result of the round before, of the one before that, and so on."""
        key = use.position, use.initial
        if key not in self._carried:
            self._carried[key] = [like(value, self.scope) for value in reversed(use.initial)]
        return self._carried[key]

    # ---- sequences

    def sequence(self, counter: Progression, length: int | None = None) -> Value:
        """Returns the number of a round; with a length, the numbers from there on in a tensor of one axis."""
        key = (counter, type(counter.start), length)
        if key not in self._sequences:
            value = self._numbers(counter)
            if length is not None:
                value = self._emit("unsqueeze", value, 1, shape=(self.copies.count, 1))
            if length is not None and length > 1:
                row = self._emit(None, length, shape=(length,))
                value = self._emit("add", value, row, shape=(self.copies.count, length))
            self._sequences[key] = self._slice(value)
        return self._sequences[key]

    def _constant(self, use: Counted) -> Value:
        key = use.progression, use.like.shape, use.like.dtype
        if key not in self._sequences:
            value = self._numbers(use.progression)
            value = self._emit("to", value, GlobalRef("torch", use.like.dtype), shape=value.shape or ())
            value.dtype = use.like.dtype
            shape = (self.copies.count, *use.like.shape)
            value = self._emit("reshape", value, (-1, *use.like.shape), shape=shape)
            self._sequences[key] = self._slice(value)
        return self._sequences[key]

    def _numbers(self, counter: Progression) -> Value:
        shape = (self.copies.count,)
        value = self._emit(None, self.copies.count, shape=shape)
        return self.compute(counter, value, lambda method, *args: self._emit(method, *args, shape=shape))

    def compute(self, progression: Progression, number: Value, emit: Callable[..., Value]) -> Value:
        """Returns the number that follows the number of a round, by calls of methods of tensors."""
        for name, *operands in progression.steps():
            if name != "table":
                number = emit(name, number, *operands)
                continue
            table = torch.tensor(operands[0])
            dtype = str(table.dtype).removeprefix("torch.")
            constant = Value(self.outer, "const", tuple(table.shape), dtype, captured=table)
            number = emit("__getitem__", constant, emit("remainder", number, len(table)))
        return number

    def _emit(self, method: str | None, *args: object, shape: tuple[int, ...]) -> Value:
        """Adds a call before the scan; without a method that of torch.arange."""
        is_float = any(isinstance(each, float) or getattr(each, "dtype", "") == "float32" for each in args)
        dtype = "float32" if is_float else args[0].dtype if isinstance(args[0], Value) else "int64"
        value = Value(self.outer, f"{method or 'arange'}_out", tuple(shape), dtype)
        self._calls.append(Record(method or "torch.arange", method is not None, args, {}, value, self.source))
        return value

    def _slice(self, value: Value) -> Value:
        self._scanned.append(value)
        return Value(self.scope, "number", (value.shape or ())[1:], value.dtype)

    # ---- results

    def places(self, items: Sequence[Item]) -> dict[Value, tuple[int, int]]:
        """Returns the copy and the position of all that the copies make."""
        found: dict[Value, tuple[int, int]] = {}
        for number in range(self.copies.count):
            copy = items[number * self.copies.period :][: self.copies.period]
            made = [leaf for item in copy for step in steps_of(item) for leaf in step.made]
            for position, leaf in enumerate(made):
                if isinstance(leaf, Value):
                    found.setdefault(leaf, (number, position))
        return found

    def length(self, position: int) -> int:
        """Returns the number of rounds that have a result at a position."""
        return self.copies.count

    def check_shape(self, position: int) -> None:
        """Raises Differs where the results of the rounds at a position have other shapes."""
        if position in self.copies.open:
            shape = list(self.made[position].shape)
            raise Differs(
                f"a tensor of another shape in each round, first {shape}, is used after the loop", self.source
            )

    def row(self, position: int) -> Value:
        """Returns the results of all rounds at a position, stacked."""
        self.check_shape(position)
        if position not in self.rows:
            value = self.made[position]
            self.rows[position] = like(value, self.outer, (self.copies.count, *value.shape))
        return self.rows[position]

    def joined(self, kind: str, positions: Sequence[int], axis: int) -> Value:
        """Returns the results of all rounds, where each joins several of its results; stacked."""
        values = [self.made[each] for each in positions]
        shape = list(values[0].shape)
        if kind == "stack":
            shape.insert(axis, len(values))
        else:
            shape[axis] = sum(value.shape[axis] for value in values)
        value = like(values[0], self.scope, shape)
        self.scope.items.append(Record(f"torch.{kind}", False, (values, axis), {}, value, self.source))
        self.made.append(value)
        return self.row(len(self.made) - 1)

    def final(self, position: int, age: int) -> Value | None:
        """Returns the result at a position of the round ``age`` before the last, if it is carried."""
        slots = next((each for key, each in self._carried.items() if key[0] == position), [])
        if age >= len(slots):
            return None
        return self.finals.setdefault((position, age), like(self.made[position], self.outer))

    def call(self) -> Iterator[Record]:
        """Yields the calls that make the sequences, and that of the scan."""
        if not self._scanned:
            self._scanned.append(self._numbers(Progression(0, 1)))
            slices = [Value(self.scope, "number", (), "int64")]
        else:
            slices = list(self._sequences.values())
        initial: list[Value] = []
        formal: list[Value] = []
        after: list[Value] = []
        finals: list[Value] = []
        for (position, starts), slots in self._carried.items():
            initial += reversed(starts)
            formal += slots
            after += [self.made[position], *slots[:-1]]
            finals += [
                self.finals.get((position, age)) or like(slot, self.outer) for age, slot in enumerate(slots)
            ]
        step = self.scope
        step.args = (*formal, *slices)
        step.parameters = tuple(f"state_{i}" for i in range(len(formal)))
        step.parameters += tuple(f"number_{i}" for i in range(len(slices)))
        step.result = (tuple(after), tuple(self.made[position] for position in self.rows))
        yield from self._calls
        args = (step, tuple(initial), tuple(self._scanned))
        result = (*finals, *self.rows.values())
        yield Record(SCAN, False, args, {}, result, self.source, subgraphs=(step,))
