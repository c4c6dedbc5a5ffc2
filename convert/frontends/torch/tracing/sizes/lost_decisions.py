"""Finds decisions by a number that Python made of a size, and in which no trace of the size is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tmconvert.frontends.torch.tracing.recording.tape import Record, Tape, Value
from tmconvert.ir.tree import leaves_of

Place = tuple[str, str]  # of a comparison or a lost number, as in the outcomes of a tape
LOST_NUMBER = (
    "{}: the model decides by a number that Python computes of it in a way that the file cannot repeat, such "
    "as int() of a logarithm or a number rounded to some digits"
)


def decided_by_lost(tape: Tape, agreeing: Mapping[int, Tape], depends_on: Callable[[Place], bool]) -> str:
    """Returns what is decided by a number that Python made of the size, in which no trace of it is left."""
    makers: dict[Value, Record] = {}
    for record in tape.top.records() if tape.lost else ():
        makers |= dict.fromkeys(leaves_of(Value, record.result), record)
    for place, sizes in tape.lost.items():
        numbers = [[number for _, number in other.lost.get(place, ())] for other in agreeing.values()]
        is_of_size = any(each != [number for _, number in sizes] for each in numbers) or any(
            value is None or (number is None and _is_of_sizes(value, makers)) for value, number in sizes
        )
        if is_of_size and depends_on(place):
            return LOST_NUMBER.format(place[0])
    return ""


def _is_of_sizes(tensor: Value, makers: Mapping[Value, Record]) -> bool:
    """Whether a tensor is computed of inputs or of their sizes, not only of constants and sizes of these."""
    seen, pending = set[Value](), [tensor]
    while pending:
        value = pending.pop()
        if value in seen or value.captured is not None:
            continue
        seen.add(value)
        maker = makers.get(value)
        if maker is None or maker.subgraphs:
            return True
        pending += leaves_of(Value, (maker.args, maker.kwargs))
    return False
