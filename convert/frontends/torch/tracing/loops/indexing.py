"""Calls with the number of a round among their arguments: indices become tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tmconvert.frontends.torch.tracing.loops.copies import Differs
from tmconvert.frontends.torch.tracing.loops.tidy import like, own_name
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.tree import leaves, map_leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.loops.building import Step


@dataclass(frozen=True)
class Counter:
    """A number of a round: ``start + step * number``."""

    start: float
    step: float


# which take a tensor of no axes like a number
_NAMES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge")
_OTHERS = ("div", "true_divide", "rsub", "remainder", "fmod", "masked_fill", "where")
ARITHMETIC = frozenset(
    (*_NAMES, *_OTHERS, *(f"__{r}{name}__" for name in _NAMES for r in ("", "r")), "floor_divide")
)
Calls = Iterator[Record]


def with_counters(step: Step, call: Record, scope: Scope) -> Calls:
    """Yields the calls that do the same with tensors in the place of numbers. Raises Differs."""
    if call.name == "tm.assume":
        return
    name = own_name(call)
    if name in INDEXED:
        yield from INDEXED[name](step, call, scope)
    elif name in ARITHMETIC or name.rstrip("_") in ARITHMETIC:
        call.args, call.kwargs = map_leaves(
            lambda leaf: step.sequence(leaf) if isinstance(leaf, Counter) else leaf, (call.args, call.kwargs)
        )
        yield call
    else:
        raise Differs(f"the number of the round is an argument of {call.name}", call.source)


def _select(step: Step, call: Record, scope: Scope) -> Calls:
    tensor, axis, counter = _positional(call, ("dim", "index"))
    axis %= len(tensor.shape)
    row, taken = _taken(step, scope, call, tensor, axis, counter, 1)
    yield taken
    yield Record("squeeze", True, (row, axis), {}, call.result, call.source)


def _narrow(step: Step, call: Record, scope: Scope) -> Calls:
    tensor, axis, counter, length = _positional(call, ("dim", "start", "length"))
    if not isinstance(length, int):
        raise Differs("the length of a slice grows in each round", call.source)
    _, taken = _taken(step, scope, call, tensor, axis % len(tensor.shape), counter, length)
    taken.result = call.result
    yield taken


def _positional(call: Record, names: tuple[str, ...]) -> list[Any]:
    given = [*call.args]
    given += [call.kwargs.get(name) for name in names[len(given) - 1 :]]
    if not isinstance(given[1], int) or not isinstance(given[2], Counter):
        raise Differs("another argument than an index depends on the number of the round", call.source)
    return given


def _taken(
    step: Step, scope: Scope, call: Record, tensor: Value, axis: int, counter: Counter, length: int
) -> tuple[Value, Record]:
    """Returns some slices of a tensor, from the number of the round on, and the call that takes them."""
    shape = [*(tensor.shape or ())]
    last = counter.start + counter.step * (step.copies.count - 1)
    if (counter.start < 0) != (last < 0):
        raise Differs("an index is negative in some rounds only", call.source)
    if counter.start < 0:
        counter = Counter(counter.start + shape[axis], counter.step)
    elif max(counter.start, last) + length > shape[axis]:
        raise Differs("a slice is shorter in the last rounds", call.source)
    shape[axis] = length
    value = like(tensor, scope, shape)
    rows = step.sequence(counter, length)
    return value, Record("index_select", True, (tensor, axis, rows), {}, value, call.source)


def _getitem(step: Step, call: Record, scope: Scope) -> Calls:
    """Takes the slices of the round first, then indexes these."""
    tensor, index = call.args
    calls, _, rest = _indexed(step, call, scope, tensor, index)
    yield from calls
    yield Record(call.name, call.is_method, (calls[-1].result, rest), {}, call.result, call.source)


def _setitem(step: Step, call: Record, scope: Scope) -> Calls:
    """Writes to the slices of the round, and puts these back."""
    tensor, index, new = call.args
    if isinstance(new, Counter):
        new = step.sequence(new)
    calls, axes, rest = _indexed(step, call, scope, tensor, index)
    if len(calls) != 1:
        raise Differs("a write has the number of the round in several indices", call.source)
    row = like(calls[0].result, scope)
    yield from calls
    yield Record(call.name, call.is_method, (calls[0].result, rest, new), {}, row, call.source)
    args = (tensor, axes[0], calls[0].args[2], row)
    yield Record("index_copy", True, args, {}, call.result, call.source)


def _indexed(
    step: Step, call: Record, scope: Scope, tensor: Value, index: object
) -> tuple[list[Record], list[int], Any]:
    """Returns calls that take the slices of the round, their axes, and the index of what they give."""
    parts = list(index) if isinstance(index, tuple) else [index]
    rank = len(tensor.shape or ())
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    calls: list[Record] = []
    axes: list[int] = []
    axis = 0
    for place, part in enumerate(parts):
        if not any(isinstance(leaf, Counter) for leaf in leaves(part)):
            axis += 0 if part is None else rank - taken if part is Ellipsis else _axes_of(part)
            continue
        counter, length, parts[place] = _window(part, call)
        _, record = _taken(step, scope, call, calls[-1].result if calls else tensor, axis, counter, length)
        calls.append(record)
        axes.append(axis)
        axis += 1
    return calls, axes, tuple(parts)


def _axes_of(part: object) -> int:
    if isinstance(part, Value) and part.dtype == "bool":
        return len(part.shape or ())
    return 1


def _window(part: object, call: Record) -> tuple[Counter, int, Any]:
    """Returns where the slices of a round start, how many there are, and the index of these."""
    if isinstance(part, Counter):
        return part, 1, 0
    if isinstance(part, slice) and part.step in (None, 1):
        start, stop = part.start, part.stop
        if isinstance(start, Counter) and isinstance(stop, Counter) and start.step == stop.step:
            length = int(stop.start - start.start)
            if length > 0:
                return start, length, slice(None)
    raise Differs("the length of a slice grows in each round", call.source)


INDEXED: dict[str, Callable[[Step, Record, Scope], Calls]] = {
    "select": _select,
    "narrow": _narrow,
    "__getitem__": _getitem,
    "__setitem__": _setitem,
}
