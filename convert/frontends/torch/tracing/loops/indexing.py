"""Calls with the number of a round among their arguments: indices become tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tmconvert.frontends.torch.tracing.loops.copies import Differs
from tmconvert.frontends.torch.tracing.loops.progressions import Progression
from tmconvert.frontends.torch.tracing.loops.tidy import like, own_name
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.ir.tree import leaves, map_leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.loops.building import Step


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
            lambda leaf: step.sequence(leaf) if isinstance(leaf, Progression) else leaf,
            (call.args, call.kwargs),
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
    if isinstance(call.args[-1], Progression):  # the length
        tensor, axis, start, length = call.args
        stop = _sum(start, length, call)
        calls = _open_slice(step, call, scope, (tensor, axis % len(tensor.shape)), slice(start, stop))
        calls[-1].result = call.result
        yield from calls
        return
    tensor, axis, counter, length = _positional(call, ("dim", "start", "length"))
    _, taken = _taken(step, scope, call, tensor, axis % len(tensor.shape), counter, length)
    taken.result = call.result
    yield taken


def _positional(call: Record, names: tuple[str, ...]) -> list[Any]:
    given = [*call.args]
    given += [call.kwargs.get(name) for name in names[len(given) - 1 :]]
    if not isinstance(given[1], int) or not isinstance(given[2], Progression):
        raise Differs("another argument than an index depends on the number of the round", call.source)
    return given


def _taken(
    step: Step, scope: Scope, call: Record, tensor: Value, axis: int, counter: Progression, length: int
) -> tuple[Value, Record]:
    """Returns some slices of a tensor, from the number of the round on, and the call that takes them."""
    rows = _indices(step, call, (tensor.shape or ())[axis], counter, length)
    value = like(tensor, scope, _with(tensor.shape or (), axis, length))
    return value, Record("index_select", True, (tensor, axis, rows), {}, value, call.source)


def _with(shape: tuple[int, ...], axis: int, length: int) -> list[int]:
    return [*shape[:axis], length, *shape[axis + 1 :]]


def _indices(step: Step, call: Record, size: int, counter: Progression, length: int) -> Value:
    """Returns the indices from the number of the round on, along an axis of this size."""
    indices = [counter.at(number) for number in range(step.copies.count)]
    if min(indices) < 0 <= max(indices):
        raise Differs("an index is negative in some rounds only", call.source)
    if min(indices) < 0:
        then = (*counter.then, ("add", size)) if counter.then else ()
        counter = Progression(counter.start + (0 if then else size), counter.step, then)
    elif max(indices) + length > size:
        raise Differs("a slice is shorter in the last rounds", call.source)
    return step.sequence(counter, length)


def _getitem(step: Step, call: Record, scope: Scope) -> Calls:
    """Takes the slices of the round first, then indexes these."""
    tensor, index = call.args
    calls, _, rest = _indexed(step, call, scope, tensor, index)
    yield from calls
    yield Record(call.name, call.is_method, (calls[-1].result, rest), {}, call.result, call.source)


def _setitem(step: Step, call: Record, scope: Scope) -> Calls:
    """Writes to the slices of the round, and puts these back."""
    tensor, index, new = call.args
    if isinstance(new, Progression):
        new = step.sequence(new)
    calls, axes, rest = _indexed(step, call, scope, tensor, index)
    if len(calls) != 1 or calls[0].result.is_open:
        raise Differs("a write has the number of the round in several indices", call.source)
    row = like(calls[0].result, scope)
    yield from calls
    yield Record(call.name, call.is_method, (calls[0].result, rest, new), {}, row, call.source)
    args = (tensor, axes[0], calls[0].args[2], row)
    yield Record("index_copy", True, args, {}, call.result, call.source)


def _slice(step: Step, call: Record, scope: Scope) -> Calls:
    """Takes slices as an index does: what ``torch.vmap`` makes of one."""
    names = ("self", "dim", "start", "end", "step")
    given: dict[str, Any] = dict(zip(names, call.args, strict=False)) | call.kwargs
    tensor, axis = given["self"], given.get("dim", 0) % len(given["self"].shape)
    part = slice(given.get("start"), given.get("end"), given.get("step"))
    args = (tensor, (*[slice(None)] * axis, part))
    yield from _getitem(step, Record("__getitem__", True, args, {}, call.result, call.source), scope)


def _scatter(step: Step, call: Record, scope: Scope) -> Calls:
    """Writes other rows in the place of those of the round: what a write through a view became."""
    name = own_name(call)
    names = ("input", "src", "dim", "index" if name == "select_scatter" else "start", "end", "step")
    given: dict[str, Any] = dict(zip(names, call.args, strict=False)) | call.kwargs
    tensor, new, axis, counter = (given[each] for each in names[:4])
    if not isinstance(counter, Progression) or given.get("step", 1) not in (None, 1):
        raise Differs("another argument than an index depends on the number of the round", call.source)
    axis %= len(tensor.shape)
    if name == "select_scatter":
        row = like(new, scope, [*new.shape[:axis], 1, *new.shape[axis:]])
        yield Record("unsqueeze", True, (new, axis), {}, row, call.source)
        new = row
    rows = _indices(step, call, tensor.shape[axis], counter, new.shape[axis])
    yield Record("index_copy", True, (tensor, axis, rows, new), {}, call.result, call.source)


def _indexed(
    step: Step, call: Record, scope: Scope, tensor: Value, index: Any
) -> tuple[list[Record], list[int], Any]:
    """Returns calls that take the slices of the round, their axes, and the index of what they give."""
    parts: list[Any] = list(index) if isinstance(index, tuple) else [index]
    rank = len(tensor.shape or ())
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    calls: list[Record] = []
    axes: list[int] = []
    axis = 0
    for place, part in enumerate(parts):
        if not any(isinstance(leaf, Progression) for leaf in leaves(part)):
            axis += 0 if part is None else rank - taken if part is Ellipsis else _axes_of(part)
            continue
        source = calls[-1].result if calls else tensor
        window = _window(part, call)
        axes.append(axis)
        if window is None:
            parts[place] = slice(None)
            calls += _open_slice(step, call, scope, (source, axis), part)
        else:
            counter, length, parts[place] = window
            calls.append(_taken(step, scope, call, source, axis, counter, length)[1])
        axis += 1
    return calls, axes, tuple(parts)


def _axes_of(part: object) -> int:
    if isinstance(part, Value) and part.dtype == "bool":
        return len(part.shape or ())
    return 1


def _window(part: Any, call: Record) -> tuple[Progression, int, Any] | None:
    """Returns where the slices of a round start, how many there are, and the index of these; None where
    their number depends on the round.
    """
    if isinstance(part, Progression):
        return part, 1, 0
    if isinstance(part, slice) and part.step in (None, 1):
        start, stop = part.start, part.stop
        if isinstance(start, Progression) and isinstance(stop, Progression) and start.step == stop.step:
            length = int(stop.start - start.start)
            if length > 0 and start.then == stop.then == ():
                return start, length, slice(None)
        return None
    raise Differs("a slice with a step depends on the number of the round", call.source)


def _sum(one: Any, two: Any, call: Record) -> Progression:
    numbers = [each if isinstance(each, Progression) else Progression(each, 0) for each in (one, two)]
    if any(each.then for each in numbers):
        raise Differs("the length of a slice does not grow evenly", call.source)
    return Progression(sum(each.start for each in numbers), sum(each.step for each in numbers))


def _open_slice(
    step: Step, call: Record, scope: Scope, place: tuple[Value, int], part: slice
) -> list[Record]:
    """Returns the calls that take a slice, at an axis of a tensor, whose length is another in each round."""
    tensor, axis = place
    size = (tensor.shape or ())[axis]
    start, stop = (
        _bound(each, size, call) for each in (part.start or 0, size if part.stop is None else part.stop)
    )
    for number in range(step.copies.count):
        one, two = (each.at(number) if isinstance(each, Progression) else each for each in (start, stop))
        if not 0 <= one <= two <= size:
            raise Differs("a slice is shorter in the last rounds", call.source)
    calls: list[Record] = []

    def emit(name: str, *args: object, like_shape: Any = (), is_method: bool = True) -> Value:
        is_open = bool(like_shape)
        value = Value(scope, f"{name}_out", tuple(like_shape), "int64", depends=True, is_open=is_open)
        calls.append(Record(name if is_method else f"torch.{name}", is_method, args, {}, value, call.source))
        return value

    first, last = (step.sequence(each) if isinstance(each, Progression) else each for each in (start, stop))
    one, two = (each.at(0) if isinstance(each, Progression) else each for each in (start, stop))
    count = last
    if isinstance(first, Value) or first:
        count = emit("rsub", first, last) if isinstance(first, Value) else emit("sub", last, first)
    rows = emit("arange", count, like_shape=(two - one,), is_method=False)
    if count is not last:
        rows = emit("add", rows, first, like_shape=(two - one,))
    value = like(tensor, scope, _with(tensor.shape or (), axis, two - one))
    value.is_open = value.depends = True
    calls.append(Record("index_select", True, (tensor, axis, rows), {}, value, call.source))
    return calls


def _bound(bound: Any, size: int, call: Record) -> Any:
    """Returns where a slice starts or ends, counted from the start of its axis."""
    if isinstance(bound, Progression):
        if bound.at(0) < 0:
            return _sum(bound, size, call)
        return bound
    if not isinstance(bound, int):
        raise Differs("a slice depends on the number of the round, and on a size", call.source)
    return min(bound + size if bound < 0 else bound, size)


INDEXED: dict[str, Callable[[Step, Record, Scope], Calls]] = {
    "select": _select,
    "narrow": _narrow,
    "slice": _slice,
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "select_scatter": _scatter,
    "slice_scatter": _scatter,
    "narrow_scatter": _scatter,
}
