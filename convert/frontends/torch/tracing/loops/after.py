"""The uses of a loop's results after it: the last results, all results joined, or one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tmconvert.frontends.torch.tracing.loops.copies import LEAST, Differs
from tmconvert.frontends.torch.tracing.loops.tidy import Item, like, own_name, scopes_of
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.tree import Tree, leaves_of, map_leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.loops.building import Step

JOINS = {"stack": "stack", "cat": "cat", "concat": "cat", "concatenate": "cat"}
Places = Mapping[Value, tuple[int, int]]


class Stretch(NamedTuple):
    """A part of a list: results at ``positions`` of consecutive rounds, from ``first`` to ``last``."""

    positions: tuple[int, ...]
    first: int
    last: int

    @property
    def length(self) -> int:
        return len(self.positions) * (abs(self.last - self.first) + 1)


def uses_after(top: Scope, step: Step, made: Places) -> None:
    """Puts results of the scan in the place of those of the rounds, wherever they are used.

    The copies are no longer among the items.
    """
    for each in [*scopes_of(top)]:
        if each is not step.scope:
            _Uses(each, step, made).replace(is_top=each is top)


class _Uses:
    """The uses in one scope; calls that they need are put right before them."""

    def __init__(self, scope: Scope, step: Step, made: Places) -> None:
        self.scope, self.step, self.made = scope, step, made
        self.items: list[Item] = []
        self.item: Item | None = None

    def replace(self, is_top: bool) -> None:
        """Replaces all uses."""
        for item in self.scope.items:
            self.item = item
            if any(value in self.made for value in leaves_of(Value, (item.args, item.kwargs))):
                if isinstance(item, Record) and own_name(item) in JOINS:
                    self._join(item)
                is_module = isinstance(item, Scope)
                item.args = tuple(self._tree(each, is_module) for each in item.args)
                item.kwargs = {key: self._tree(each, is_module) for key, each in item.kwargs.items()}
            self.items.append(item)
        self.item = None
        self.scope.result = self._tree(self.scope.result, not is_top)
        self.scope.items[:] = self.items

    def _tree(self, tree: Tree, takes_rows: bool) -> Tree:
        """Returns a tree with other Values; lists with the results of all rounds are one, for modules."""
        if takes_rows and isinstance(tree, (tuple, list)):
            parts = self._parts(tree)
            if any(isinstance(part, Stretch) for part in parts):
                shown = [self._rows(part) if isinstance(part, Stretch) else part for part in parts]
                return type(tree)(self._tree(part, takes_rows) for part in shown)
            return (
                map_leaves(self._one, tree)
                if hasattr(tree, "_fields")
                else type(tree)(self._tree(part, takes_rows) for part in tree)
            )
        return map_leaves(self._one, tree)

    def _one(self, leaf: object) -> Any:
        """Returns the Value that a result of one round is after the loop."""
        if not isinstance(leaf, Value) or leaf not in self.made:
            return leaf
        number, position = self.made[leaf]
        age = self.step.copies.count - 1 - number  # rounds before the last
        final = self.step.final(position, age)
        if final is not None:
            return final
        return self._emit("select", self.step.row(position), 0, number, shape=leaf.shape or ())

    def _emit(self, method: str, tensor: Value, *args: object, shape: Sequence[int]) -> Value:
        value = like(tensor, self.scope, shape)
        source = self.step.source if self.item is None else self.item.source
        call = Record(method, True, (tensor, *args), {}, value, source or self.step.source)
        self.items.append(call)
        self.step.emitted.add(call)
        return value

    # ---- joins

    def _join(self, call: Record) -> None:
        """Joins stacked results in the place of a list of them."""
        given = dict(zip(("tensors", "dim"), call.args, strict=False)) | call.kwargs
        tensors, axis = given.get("tensors"), given.get("dim", 0)
        if not isinstance(tensors, (tuple, list)) or not isinstance(axis, int):
            return
        parts = self._parts(tensors)
        if not any(isinstance(part, Stretch) for part in parts) or not isinstance(call.result, Value):
            return
        kind, rank = JOINS[own_name(call)], len(call.result.shape or ())
        axis %= rank
        joined = [
            self._spread(part, kind, axis)
            if isinstance(part, Stretch)
            else part
            if kind == "cat"
            else self._emit("unsqueeze", self._one(part), axis, shape=_with(part.shape or (), axis, 1))
            for part in parts
        ]
        self.step.joins.add(call)
        call.name, call.is_method, call.function = "torch.cat", False, None
        call.args, call.kwargs = (joined, axis), {}

    def _parts(self, tensors: Sequence[object]) -> list[Any]:
        """Returns the elements of a list, where the results of consecutive rounds are one Stretch."""
        parts: list[Any] = []
        place = 0
        while place < len(tensors):
            found = self._stretch(tensors[place:])
            parts.append(tensors[place] if found is None else found)
            place += 1 if found is None else found.length
        return parts

    def _stretch(self, tensors: Sequence[object]) -> Stretch | None:
        """Returns the results of consecutive rounds that a list starts with; None for fewer than three."""
        places = [self.made.get(each) if isinstance(each, Value) else None for each in tensors]
        if places[0] is None:
            return None
        first, position = places[0]
        period = next((i for i, each in enumerate(places) if i and each and each[1] == position), 0)
        if not period or None in places[:period] or any(each[0] != first for each in places[:period]):  # type: ignore[index]
            return None
        positions = tuple(each[1] for each in places[:period])  # type: ignore[index]
        way = places[period][0] - first  # type: ignore[index]
        count = 1
        while places[count * period :][:period] == [(first + way * count, each) for each in positions]:
            count += 1
        if abs(way) != 1 or count < LEAST:
            return None
        return Stretch(positions, first, first + way * (count - 1))

    def _rows(self, part: Stretch, kind: str = "stack", axis: int = 0) -> Value:
        """Returns the stacked results of a stretch, in its order; the first axis is that of the rounds."""
        if len(part.positions) > 1:
            row = self.step.joined(kind, part.positions, axis)
        else:
            row = self.step.row(part.positions[0])
        shape = [*(row.shape or ())]
        low, high = min(part.first, part.last), max(part.first, part.last)
        if high - low + 1 < self.step.length(part.positions[0]):
            if not self.step.is_static:
                raise Differs("a part of a list of all rounds is used after the loop", self.step.source)
            shape[0] = high - low + 1
            row = self._emit("narrow", row, 0, low, shape[0], shape=shape)
        if part.last < part.first:
            row = self._emit("flip", row, (0,), shape=shape)
        return row

    def _spread(self, part: Stretch, kind: str, axis: int) -> Value:
        """Returns the results of a stretch joined along an axis."""
        row = self._rows(part, kind, axis)
        count, *shape = row.shape or ()
        moved = [*shape[:axis], count, *shape[axis:]]
        if axis:
            row = self._emit("movedim", row, 0, axis, shape=moved)
        if kind == "stack" and len(part.positions) == 1:
            return row
        joined = [*moved[:axis], moved[axis] * moved[axis + 1], *moved[axis + 2 :]]
        return self._emit("flatten", row, axis, axis + 1, shape=joined)


def _with(shape: Sequence[int], axis: int, size: int) -> list[int]:
    return [*shape[:axis], size, *shape[axis:]]
