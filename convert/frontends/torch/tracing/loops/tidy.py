"""Orders the items of a tape such that the rounds of a loop are equal.

The first round of a loop computes sizes that later rounds reuse, and the parts of a tensor are made before
the loop that takes them one by one. So computations of sizes move to what they compute from, and a part
becomes a call right before its use.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from tmconvert.frontends.torch.names import aten_name
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.tree import leaves_of, map_leaves

Item = Record | Scope
FEW = 3  # comparisons at one line that need no loop
Kind = tuple[str, str]  # the name of a call and its line


def own_name(call: Record) -> str:
    """Returns the name of the ATen op of a call: ``select`` for ``Tensor.select`` and ``torch.select``."""
    return aten_name(call.name, call.is_method).rpartition(":")[2].partition(".")[0]


def is_of_sizes(item: Item) -> bool:
    """Whether an item computes nothing but sizes."""
    if not isinstance(item, Record) or item.subgraphs:
        return False
    results = list(item.results())
    return bool(results) and all(value.shape is None and value.captured is None for value in results)


def scopes_of(scope: Scope) -> Iterator[Scope]:
    """Yields a scope and all within, also the subgraphs of calls."""
    yield scope
    for item in scope.items:
        for inner in [item] if isinstance(item, Scope) else item.subgraphs:
            yield from scopes_of(inner)


def made_by(item: Item) -> Iterator[Value]:
    """Yields the Values that an item makes, also within its scopes."""
    if isinstance(item, Record):
        yield from item.results()
    for inner in [item] if isinstance(item, Scope) else item.subgraphs:
        yield from leaves_of(Value, inner.args) if inner is not item else ()
        for each in inner.items:
            yield from made_by(each)


def used_by(item: Item) -> Iterator[Value]:
    """Yields the Values that an item uses, also within its scopes."""
    yield from leaves_of(Value, (item.args, item.kwargs))
    for inner in [item] if isinstance(item, Scope) else item.subgraphs:
        for each in inner.items:
            yield from used_by(each)
        yield from leaves_of(Value, inner.result)


def tidy(top: Scope, parts: Collection[Kind], lines: Collection[str]) -> None:
    """Prepares all scopes.

    ``parts`` are the calls whose number of results depends on sizes, and ``lines`` those that compare sizes
    in each round.
    """
    for scope in list(scopes_of(top)):
        _take_parts(scope, parts)
        _hoist_sizes(scope)
        compared = Counter(str(item.source) for item in scope.items if is_assumption(item))
        of_rounds = {line for line in lines if compared[line] >= FEW}
        scope.items[:] = [
            each for each in scope.items if not is_assumption(each) or str(each.source) not in of_rounds
        ]


def counts_of_parts(top: Scope) -> dict[Kind, list[int]]:
    """Returns the numbers of results of all calls that make parts of a tensor."""
    found: dict[Kind, list[int]] = {}
    for scope in scopes_of(top):
        for item in scope.items:
            if isinstance(item, Record) and own_name(item) in PARTS:
                found.setdefault((item.name, str(item.source)), []).append(len(list(item.results())))
    return found


def drop_unused_sizes(top: Scope) -> None:
    """Drops computations of sizes that nothing uses, and the parts of tensors that became calls."""
    count = 1
    while count:
        used = {value for item in top.items for value in used_by(item)} | {*leaves_of(Value, top.result)}
        count = 0
        for scope in scopes_of(top):
            kept = [item for item in scope.items if not (_is_free(item) and used.isdisjoint(made_by(item)))]
            count += len(scope.items) - len(kept)
            scope.items[:] = kept


def _is_free(item: Item) -> bool:
    """Whether an item may be dropped if nothing uses it."""
    return is_of_sizes(item) or (isinstance(item, Record) and own_name(item) in PARTS)


def is_assumption(item: Item) -> bool:
    """Whether an item is a comparison of sizes."""
    return isinstance(item, Record) and item.name == "tm.assume"


def _hoist_sizes(scope: Scope) -> None:
    groups: list[list[Item]] = [[]]
    places: dict[Value, int] = {}
    for item in scope.items:
        if is_of_sizes(item) or is_assumption(item):
            place = max((places.get(value, 0) for value in used_by(item)), default=0)
            groups[place].append(item)
        else:
            place = len(groups)
            groups.append([item])
        places.update(dict.fromkeys(made_by(item), place))
    scope.items[:] = [item for group in groups for item in group]


def numbers_of_sizes(top: Scope) -> dict[Value, int]:
    """Returns the numbers of all sizes in this run."""
    found: dict[Value, Any] = {}
    for scope in scopes_of(top):
        for item in scope.items:
            if not isinstance(item, Record) or not isinstance(item.result, Value):
                continue
            if item.result.shape is None and item.result.captured is None:
                number = _number(item, found)
                if number is not None:
                    found[item.result] = number
    return found


def _number(call: Record, known: Mapping[Value, object]) -> Any:
    operands = [known.get(each, each) if isinstance(each, Value) else each for each in call.args]
    home, _, name = call.name.rpartition(".")
    shape: Any = getattr(operands[0], "shape", None)
    if call.name == "size":
        return shape[operands[1]]
    if call.name == "numel":
        return math.prod(shape)
    if any(isinstance(each, Value) for each in operands):
        return None
    function: Callable[..., Any] | None = getattr(
        {"operator": operator, "math": math}.get(home, builtins), name, None
    )
    return None if function is None else function(*operands)


# ---- parts


def _unbound(call: Record, tensor: Value, axis: int, place: int) -> tuple[str, tuple[Any, ...]]:
    return "select", (tensor, axis, place)


def _split(call: Record, tensor: Value, axis: int, place: int) -> tuple[str, tuple[Any, ...]]:
    sizes = [(value.shape or ())[axis] for value in call.results()]
    return "narrow", (tensor, axis, sum(sizes[:place]), sizes[place])


# the position of the axis among the arguments of a call that makes parts, and what makes one part
PARTS = {"unbind": (1, _unbound), "split": (2, _split), "chunk": (2, _split)}


def _take_parts(scope: Scope, kinds: Collection[Kind]) -> None:
    """Puts the call that makes one part right before each item that uses the part."""
    parts: dict[Value, tuple[Record, int]] = {}
    items: list[Item] = []
    for item in scope.items:
        taken = dict.fromkeys(value for value in used_by(item) if value in parts)
        for value in taken:
            call = _part(scope, value, *parts[value])
            items.append(call)
            replace(item, {value: call.result})
        items.append(item)
        if isinstance(item, Record) and (item.name, str(item.source)) in kinds:
            parts |= {value: (item, place) for place, value in enumerate(item.results())}
    scope.items[:] = items


def _part(scope: Scope, value: Value, made: Record, place: int) -> Record:
    tensor = made.args[0]
    position, of = PARTS[own_name(made)]
    axis = made.kwargs.get("dim", (*made.args, 0, 0)[position]) % max(len(tensor.shape or ()), 1)
    name, args = of(made, tensor, axis, place)
    return Record(name, True, args, {}, like(value, scope), made.source)


def like(value: Value, scope: Scope, shape: Sequence[int] | None = None) -> Value:
    """Returns a new Value of the type of another, in a scope."""
    shape = value.shape if shape is None else tuple(shape)
    return Value(
        scope,
        value.hint,
        shape,
        value.dtype,
        depends=value.depends,
        is_open=value.is_open,
        qparams=value.qparams,
    )


def replace(item: Item, values: Mapping[Value, Value]) -> None:
    """Puts other Values in the place of those that an item uses, also within its scopes."""

    def other(leaf: object) -> Any:
        return values.get(leaf, leaf) if isinstance(leaf, Value) else leaf

    item.args, item.kwargs = map_leaves(other, (item.args, item.kwargs))
    for inner in [item] if isinstance(item, Scope) else item.subgraphs:
        for each in inner.items:
            replace(each, values)
        inner.result = map_leaves(other, inner.result)
