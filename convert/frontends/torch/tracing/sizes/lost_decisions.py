"""Finds decisions by a number that Python made of a size, and in which no trace of the size is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tmconvert.frontends.torch.tracing.recording.tape import Record, Tape, Value
from tmconvert.ir.tree import leaves, leaves_of

Place = tuple[str, str]  # of a comparison or a lost number, as in the outcomes of a tape
LOST_NUMBER = (
    "{}: the model decides by a number that Python computes of it in a way that the file cannot repeat, such "
    "as int() of a logarithm or a number rounded to some digits"
)


def decided_by_lost(
    tape: Tape, agreeing: Mapping[int, Tape], depends_on: Callable[[Place], bool]
) -> list[Place]:
    """Returns where the module decides by a number that Python made of the size, in which no trace of it is
    left; those named ``CONDITION`` by a tensor.
    """
    runs, found = [(each, _makers(each) if tape.lost else {}) for each in (tape, *agreeing.values())], []
    for place in tape.lost:
        sizes = [
            [
                _sizes_of(value, makers) if number is None else number
                for value, number in run.lost.get(place, ())
            ]
            for run, makers in runs
        ]
        is_of_size = None in sizes[0] or any(each != sizes[0] for each in sizes)
        if is_of_size and depends_on(place):
            found.append(place)
    return found


def _makers(tape: Tape) -> dict[Value, Record]:
    """Returns the calls by their results."""
    return {value: record for record in tape.top.records() for value in leaves_of(Value, record.result)}


def _sizes_of(tensor: Value | None, makers: Mapping[Value, Record]) -> tuple[object, ...] | None:
    """Returns the sizes that a tensor is computed of, in this run; None where it is computed of an input."""
    seen, found, pending = set[Value](), list[object](), [tensor]
    while pending:
        value = pending.pop()
        if value is not None and (value in seen or value.captured is not None):
            continue
        maker = makers.get(value) if value else None
        if value is None or maker is None or maker.subgraphs:
            return None
        seen.add(value)
        if maker.name in ("size", "numel"):
            source, *axis = leaves(maker.args)
            found.append(source.shape[axis[0]] if axis else source.shape)
        else:
            pending += leaves_of(Value, (maker.args, maker.kwargs))
    return tuple(found)
