"""Parts of a tensor that are joined again: ``torch.cat(list(x))`` is a reshape, whatever the size of ``x``.

Recorded part by part, the number of parts would be that of the example. So a join of all parts of a tensor,
in their order, becomes a call on the tensor; calls that made parts which nothing else uses are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.frontends.torch.names import Name, aten_name, join_of
from tmconvert.frontends.torch.tracing.recording.aliases import View
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Tape, Value
from tmconvert.ir.tree import leaves, map_leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

# calls that make parts: the position of the axis among their arguments
PARTS = {"unbind": 1, "split": 2, "chunk": 2, "split_with_sizes": 2, "tensor_split": 2}
_UNUSED = frozenset((*PARTS, "select", "reshape", "arange"))  # the others read the sizes of parts from data


def rejoined(
    recorder: Recorder, name: Name, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.Tensor | None:
    """Records a join of all parts of a tensor, and returns its result; None for other calls."""
    given = dict(zip(("tensors", "dim"), args, strict=False)) | kwargs
    tensors, dim = given.pop("tensors", None), given.pop("dim", 0)
    if given or not isinstance(tensors, (list, tuple)) or type(dim) is not int:
        return None
    view = _common(recorder, tensors)
    if view is None:
        return None
    rank, parts = len(view.viewed.shape or ()), _own(view.call)
    axis = view.call.kwargs.get("dim", (*view.call.args, 0, 0)[PARTS[parts]])
    if type(axis) is not int:
        return None
    is_stack = join_of(name) == "stack"
    if parts != "unbind" and (is_stack or axis % rank != dim % rank):
        return None
    result: torch.Tensor = recorder.run(function, *args, **kwargs)
    value, axis = view.viewed, axis % rank
    if parts == "unbind":
        place = dim % (rank if is_stack else max(rank - 1, 1))
        value = _step(recorder, value, "movedim", axis, place)
        value = value if is_stack else _step(recorder, value, "flatten", place, place + 1)
    else:
        value = _step(recorder, value, "clone")
    value.shape = tuple(result.shape)
    recorder.aliases.add(result, value)
    recorder.tape.rejoins = True
    return result


def _own(call: Record) -> str:
    return aten_name(call.name, call.is_method).rpartition(":")[2].partition(".")[0]


def _common(recorder: Recorder, tensors: Sequence[Any]) -> View | None:
    """Returns the view of the first tensor if all are the parts of one tensor, each one once and in order."""
    views = []
    for tensor in tensors:
        tracked = recorder.aliases.find(tensor) if isinstance(tensor, torch.Tensor) else None
        if tracked is None or tracked.view is None or _own(tracked.view.call) not in PARTS:
            return None
        if recorder.aliases.read(tracked) is not list(tracked.view.call.results())[tracked.view.place]:
            return None  # it was written to
        views.append(tracked.view)
    if not views or any(view.call is not views[0].call for view in views):
        return None
    places = [view.place for view in views]
    return views[0] if places == list(range(len(list(views[0].call.results())))) else None


def _step(recorder: Recorder, value: Value, method: str, *args: int) -> Value:
    shape = list(value.shape or ())
    if method == "movedim":
        shape.insert(args[1], shape.pop(args[0]))
    made = Value(
        recorder.scope,
        f"{method}_out",
        tuple(shape),
        value.dtype,
        depends=value.depends,
        is_open=value.is_open,
        qparams=value.qparams,
    )
    recorder.scope.items.append(Record(method, True, (value, *args), {}, made, user_place()))
    return made


def drop_unused_parts(tape: Tape) -> None:
    """Drops calls that made parts of tensors which nothing uses, also from the results of modules."""
    dropped: set[Value] = set()
    count = 1
    while count:
        used = {leaf for tree in _used(tape.top) for leaf in leaves(tree) if isinstance(leaf, Value)}
        count = 0
        for scope in tape.top.nested():
            unused = [item for item in scope.items if _is_unused(item, used)]
            count += len(unused)
            dropped.update(value for item in unused if isinstance(item, Record) for value in item.results())
            scope.items[:] = [item for item in scope.items if item not in unused]
    for scope in tape.top.nested():
        scope.result = map_leaves(
            lambda leaf: None if isinstance(leaf, Value) and leaf in dropped else leaf, scope.result
        )


def _is_unused(item: Record | Scope, used: set[Value]) -> bool:
    return isinstance(item, Record) and _own(item) in _UNUSED and used.isdisjoint(item.results())


def _used(top: Scope) -> Iterator[object]:
    """Yields what calls and modules take, what their function arguments return, and the model's results."""
    yield top.result
    for scope in top.nested():
        yield (scope.args, scope.kwargs)
        for item in scope.items:
            if isinstance(item, Record):
                yield (item.args, item.kwargs, [body.result for body in item.subgraphs])
