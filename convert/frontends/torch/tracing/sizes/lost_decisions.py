"""Finds decisions by a number that Python made of a size, and in which no trace of the size is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.tape import Tape

Place = tuple[str, str]  # of a comparison or a lost number, as in the outcomes of a tape
LOST_NUMBER = (
    "{}: the model decides by a number that Python computes of it in a way that the file cannot repeat, such "
    "as int() of a logarithm or a number rounded to some digits"
)


def decided_by_lost(tape: Tape, agreeing: Mapping[int, Tape], depends_on: Callable[[Place], bool]) -> str:
    """Returns what is decided by a number that Python made of the size, in which no trace of it is left."""
    for place, sizes in tape.lost.items():
        numbers = [[number for _, number in other.lost.get(place, ())] for other in agreeing.values()]
        is_of_size = sizes[0][0] is None or any(each != [number for _, number in sizes] for each in numbers)
        if is_of_size and depends_on(place):
            return LOST_NUMBER.format(place[0])
    return ""
