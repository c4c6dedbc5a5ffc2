"""Makes one call of torch.while_loop of the rounds of a loop that ends on data.

A round does ``before``, decides, and does ``after`` unless that was the end. It is ``while ...: after`` where
nothing is before, and else ``for ...: before; if ...: break; after``. Tensors that change are carried in
*slots*. In a loop with ``before``, what comes after a round that stopped needs to know which of its results
are new: a slot that is ``kept`` has what a round gave that did not stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tmconvert.frontends.torch.tracing.control_flow.joining import LABELS, is_cheap
from tmconvert.frontends.torch.tracing.loops.building import LABEL, WHILE, Step
from tmconvert.frontends.torch.tracing.loops.copies import Carried, Copies, Differs, Inside, steps_of
from tmconvert.frontends.torch.tracing.loops.progressions import Progression
from tmconvert.frontends.torch.tracing.loops.tidy import Item, like
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.inert import GlobalRef

CONDITION = "loop_condition"


@dataclass(eq=False)
class Slot:
    """A carried tensor: in the loop, what it is then, after the loop, and before it."""

    inside: Value
    new: Value
    final: Value
    initial: Value | None


class Rounds(Step):
    """The subgraphs of a loop that ends on data.

    ``before`` counts the items before the decision, ``go`` is the answer with which it goes on, and ``most``
    the number of rounds after which it ends in any case. ``rests`` states that ``before`` was recorded once
    more, in the round that stopped; where none did, results are used as in the rounds ``like`` these.
    """

    is_static = False

    def __init__(
        self,
        outer: Scope,
        copies: Copies,
        items: Sequence[Item],
        *,
        before: int,
        go: bool,
        most: int | None,
        rests: bool,
        like: Rounds | None = None,
    ) -> None:
        self.before, self.go, self.most, self.rests = before, go, most, rests
        self._like = like
        self._front: list[Record] = []  # what is computed of the number of the round
        self._number: Slot | None = None
        self.kept: dict[int, Slot] = {}
        self._lists: dict[int, tuple[Slot, Value]] = {}
        self.rounds_went: Slot | None = None  # the number of rounds that did not stop
        self._condition_value: Any = None  # the condition
        self.side = Scope("", LABELS[0], None)
        self.outputs: dict[int, Slot] = {}
        super().__init__(outer, copies, items)
        self._border = sum(len(step.made) for item in items[:before] for step in steps_of(item))

    def _copy(self, items: Sequence[Item]) -> None:
        for place, item in enumerate(items):
            if place != self.before:
                is_after = place > self.before > 0
                self._item(item, self.side if is_after else self.scope)
                continue
            use = next(self._uses)
            next(self._uses)
            if isinstance(use, Inside) and self.before:
                self._condition_value = self.made[use.position]
            elif isinstance(use, Carried) and len(use.initial) == 1 and not self.before:
                self._condition_value = self._slots(use)[0]
            else:
                raise Differs("its condition is not that of the round", self.source)

    # ---- numbers

    def _round(self) -> Slot:
        if self._number is None:
            inside = Value(self.scope, "number", (), "int64")
            start = Value(self.outer, "const", (), "int64", captured=torch.tensor(0))
            self._number = Slot(inside, inside, Value(self.outer, "rounds", (), "int64"), start)
            self._number.new = self._inner("add", inside, 1, like=inside)
        return self._number

    def _of_number(self, method: str, *args: Any) -> Value:
        """Adds a call with the number of the round."""
        is_float = any(isinstance(each, float) or getattr(each, "dtype", "") == "float32" for each in args)
        dtype = "float32" if is_float else "int64"
        return self._inner(method, *args, like=self._round().inside, dtype=dtype)

    def _inner(self, method: str, *args: object, like: Value, shape: Any = None, dtype: Any = None) -> Value:
        value = Value(
            self.scope, f"{method}_out", like.shape if shape is None else shape, dtype or like.dtype
        )
        self._front.append(Record(method, True, args, {}, value, self.source))
        return value

    def sequence(self, counter: Progression, length: int | None = None) -> Value:
        key = (counter, type(counter.start), length)
        if key not in self._sequences:
            number = self._round().inside
            value = self.compute(counter, number, self._of_number)
            if length is not None:
                value = self._inner("reshape", value, (1,), like=value, shape=(1,))
            if length is not None and length > 1:
                row = Value(self.scope, "arange_out", (length,), "int64")
                self._front.append(Record("torch.arange", False, (length,), {}, row, self.source))
                value = self._inner("add", value, row, like=row)
            self._sequences[key] = value
        return self._sequences[key]

    def _constant(self, use: Any) -> Value:
        value = self.sequence(use.progression)
        shape, dtype = use.like.shape, use.like.dtype
        value = self._inner("to", value, GlobalRef("torch", dtype), like=value, dtype=dtype)
        return self._inner("reshape", value, shape, like=value, shape=shape)

    # ---- results

    def final(self, position: int, age: int) -> Value | None:
        """Returns the result at a position of the last round, or of the last one that did not stop."""
        self.check_shape(position)
        stopped = self.rests and age == 0
        if age > (1 if self.rests else 0):
            raise Differs("a result of one round is used after the loop", self.source)
        is_kept = not stopped
        if self._like is not None and position < self._border:
            is_kept = position in self._like.kept
            if is_kept and position in self._like.outputs:
                raise Differs("its last round ends otherwise", self.source)
        if not self.before or not is_kept:
            return self._unkept(position).final
        return self._kept_slot(position).final

    def _unkept(self, position: int) -> Slot:
        if position not in self.outputs:
            inner = next((each for key, each in self._carried.items() if key[0] == position), None)
            value = self.made[position]
            inside = inner[0] if inner else like(value, self.scope)
            self.outputs[position] = Slot(inside, value, like(value, self.outer), None)
        return self.outputs[position]

    def _kept_slot(self, position: int) -> Slot:
        if position not in self.kept:
            value = self.made[position]
            self.kept[position] = Slot(like(value, self.scope), value, like(value, self.outer), None)
        return self.kept[position]

    def length(self, position: int) -> int:
        return self.copies.count - int(self.rests and position >= self._border)

    def row(self, position: int) -> Value:
        """Returns the results of all rounds at a position: the first rows of a buffer for the most rounds."""
        if self.most is None:
            raise Differs("a list grows in a loop without a largest number of rounds", self.source)
        self.check_shape(position)
        if position not in self._lists:
            value = self.made[position]
            buffer = Value(self.outer, "rows", (self.most, *(value.shape or ())), value.dtype)
            new, inside = like(buffer, self.scope), like(buffer, self.scope)
            scope = self.side if self.before and position >= self._border else self.scope
            row = like(value, scope, (1, *(value.shape or ())))
            scope.items.append(Record("unsqueeze", True, (value, 0), {}, row, self.source))
            index = self.sequence(Progression(0, 1), 1)
            scope.items.append(Record("index_copy", True, (inside, 0, index, row), {}, new, self.source))
            self.made.append(new)
            slot = Slot(inside, new, buffer, None)
            rows = Value(self.outer, "rows", (self.length(position), *(value.shape or ())), value.dtype)
            rows.depends = rows.is_open = True
            self._lists[position] = slot, rows
        return self._lists[position][1]

    def _taken_rows(self) -> Iterator[Record]:
        """Yields the calls that take the rows of the rounds from buffers, after the loop."""
        for position, (slot, rows) in self._lists.items():
            count = self._round().final
            if self.before and position >= self._border and self.rounds_went is not None:
                count = self.rounds_went.final
            index = Value(self.outer, "arange_out", rows.shape[:1], "int64", depends=True, is_open=True)  # type: ignore[index]
            yield Record("torch.arange", False, (count,), {}, index, self.source)
            yield Record("index_select", True, (slot.final, 0, index), {}, rows, self.source)

    # ---- the call

    def used_slots(self) -> list[Slot]:
        """Returns the slots that are used after the loop."""
        return [*self.outputs.values(), *self.kept.values()]

    def call(self) -> Iterator[Record]:
        went = self._went()
        self._count_rounds()
        slots, kept = self._all_slots()
        if self.before and (self.side.items or kept):
            self._branch(went, kept)
        if self.before:
            inside = Value(self.scope, "goes_on", (), "bool")
            start = Value(self.outer, "const", (), "bool", captured=torch.tensor(True))
            running = Slot(inside, went, Value(self.outer, "goes_on", (), "bool"), start)
            slots.insert(0, running)
        if self.most is not None:
            self._round()
        if self._number is not None:
            slots.append(self._number)
        step, condition = self.scope, self._condition(slots)
        step.items[:0] = self._front
        step.args = tuple(each.inside for each in slots)
        step.parameters = tuple(f"state_{i}" for i in range(len(slots)))
        step.result = tuple(each.new for each in slots)
        args = (condition, step, tuple(self._initial(each) for each in slots))
        yield from self._calls
        result = tuple(each.final for each in slots)
        yield Record(WHILE, False, args, {}, result, self.source, subgraphs=(condition, step))
        yield from self._taken_rows()

    def _all_slots(self) -> tuple[list[Slot], list[Slot]]:
        """Returns all slots, and those that change only where the round did not stop."""
        found: list[Slot] = []
        kept: list[Slot] = [*self.kept.values()]
        kept += [self.rounds_went] if self.rounds_went else []
        for position, (slot, _) in self._lists.items():
            (kept if self.before and position >= self._border else found).append(slot)
        for (position, starts), formal in self._carried.items():
            new = [self.made[position], *formal[:-1]]
            for age, (inside, value, initial) in enumerate(zip(formal, new, reversed(starts), strict=True)):
                slot = Slot(inside, value, like(inside, self.outer), initial)
                slot = slot if age else self.outputs.pop(position, slot)
                slot.initial = slot.initial or initial
                (kept if self.before and position >= self._border else found).append(slot)
        found += self.outputs.values()
        return found + kept, kept

    def _count_rounds(self) -> None:
        """Counts the rounds that did not stop, where a list has a result of each."""
        if self.before and any(position >= self._border for position in self._lists):
            inside = Value(self.scope, "number", (), "int64")
            final, start = Value(self.outer, "rounds", (), "int64"), self._round().initial
            new = self._inner("add", inside, 1, like=inside)
            self.rounds_went = Slot(inside, new, final, start)

    def _initial(self, slot: Slot) -> Value:
        if slot.initial is None:  # of a slot that the first round fills
            shape, dtype = [*(slot.inside.shape or ())], slot.inside.dtype
            slot.initial = like(slot.inside, self.outer)
            kwargs = {"dtype": GlobalRef("torch", dtype)}
            self._calls.append(Record("torch.zeros", False, (shape,), kwargs, slot.initial, self.source))
        return slot.initial

    def _went(self) -> Value:
        """Returns whether the round goes on, in the body; nothing for a loop with nothing before."""
        if not self.before:
            return self.scope  # type: ignore[return-value]
        return self._as_bool(self._condition_value, self.scope.items, self.scope)

    def _as_bool(self, value: Value, items: list[Any], scope: Scope) -> Value:
        def call(method: str, *args: object, shape: Any) -> Value:
            made = Value(scope, f"{method}_out", shape, value.dtype if method == "reshape" else "bool")
            items.append(Record(method, True, args, {}, made, self.source))
            return made

        if value.shape != ():
            value = call("reshape", value, (), shape=())
        if value.dtype != "bool":
            value = call("ne", value, 0, shape=())
        return value if self.go else call("logical_not", value, shape=())

    def _branch(self, went: Value, kept: Sequence[Slot]) -> None:
        """Does what is after the decision where the round goes on; else the kept slots stay."""
        items, side = self.scope.items, self.side
        made = [like(slot.inside, self.scope) for slot in kept]
        if is_cheap(side):
            for item in side.items:
                for value in item.results():  # type: ignore[union-attr]
                    value.scope = self.scope
            items += side.items
            for slot, value in zip(kept, made, strict=True):
                args = (went, slot.new, slot.inside)
                items.append(Record("torch.where", False, args, {}, value, self.source, torch.where))
        else:
            side.parent, side.source, side.result = self.scope, self.source, tuple(slot.new for slot in kept)
            other = Scope("", LABELS[1], self.scope, source=self.source)
            other.result = tuple(slot.inside for slot in kept)
            sides = (side, other)
            call = Record("torch.cond", False, (went, *sides, ()), {}, tuple(made), self.source)
            call.subgraphs = sides
            items.append(call)
        for slot, value in zip(kept, made, strict=True):
            slot.new = value

    def _condition(self, slots: Sequence[Slot]) -> Scope:
        """Returns the subgraph of the condition, whose formal inputs are those of the slots."""
        path = self.scope.path.replace(LABEL, CONDITION)
        found = Scope(path, CONDITION, self.outer, source=self.source)
        formal = {id(each.inside): like(each.inside, found) for each in slots}
        found.args = tuple(formal.values())
        found.parameters = tuple(f"state_{i}" for i in range(len(slots)))
        value = (
            found.args[0]
            if self.before
            else self._as_bool(formal[id(self._condition_value)], found.items, found)
        )
        if self.most is not None and self._number is not None:
            number = formal[id(self._number.inside)]
            below = Value(found, "lt_out", (), "bool")
            found.items.append(Record("lt", True, (number, self.most), {}, below, self.source))
            both = Value(found, "and_out", (), "bool")
            found.items.append(Record("logical_and", True, (value, below), {}, both, self.source))
            value = both
        found.result = value
        return found
