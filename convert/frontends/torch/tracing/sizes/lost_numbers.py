"""Numbers that Python makes of sizes by functions that files do not compute alike: ``int(math.log(n))``.

Such a number is a plain one in calls, where runs at other sizes show it. What Python decides by it may be the
same at all sizes that are tried. So the module runs again with another outcome of each comparison, and with
other numbers: if it makes other calls then, the size cannot stay open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tmconvert.frontends.torch.tracing.data.integers import file_of_caller
from tmconvert.frontends.torch.tracing.recording.source_lines import calling_place
from tmconvert.frontends.torch.tracing.recording.tape import Value
from tmconvert.frontends.torch.tracing.sizes.differences import difference
from tmconvert.frontends.torch.tracing.sizes.integers import TO_TEXT, TRACED, is_exact, untraced
from tmconvert.frontends.torch.tracing.sizes.lost_decisions import Place

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.module_run import ModuleRun
    from tmconvert.frontends.torch.tracing.recording.tape import Tape
    from tmconvert.frontends.torch.tracing.runs import Runs

MOST_NUMBERS = 8  # of the code, that are tried in the place of a lost one


def note_conversion(tape: Tape, name: str, number: Any) -> None:
    """Notes on the tape that code makes a text, a hash or a plain number of a traced number."""
    if name in TO_TEXT:
        if (place := calling_place(4)).file:
            tape.texts.setdefault(str(place))
        return
    if is_exact(number):
        tape.conversions.append(number)
    if (file := file_of_caller(name)) is not None:
        tape.int_files[file] = None


def lost_sizes(*numbers: Any) -> tuple[Any, ...]:
    """Returns the sizes that numbers were computed of, with their Values; none where no number is lost.

    A tensor whose element was read has None in the place of a size.
    """
    if all(map(is_exact, numbers)):
        return ()
    found: list[Any] = []
    pending = [*numbers]
    while pending:
        if isinstance(number := pending.pop(), TRACED):
            kind, *operands = number.origin
            if kind in ("size", "numel"):
                found.append((operands[0], untraced(number)))
            else:
                pending += operands
        elif isinstance(number, Value):
            found.append((number, None))
    return tuple(found) or ((None, 0),)


def depends_on(runs: Runs, place: Place, run: ModuleRun, sizes: Mapping[str, int]) -> bool:
    """Whether another outcome of a comparison of a lost number, or another such number, changes what a run at
    these sizes does.

    Other numbers are the next one, and those in the code. A side that fails is a check of the module.
    """
    given = run.tape.outcomes[place]
    others = [[not each for each in given]]
    if place[1] == "lost":
        numbers = dict.fromkeys([given[0] + 1, *list(run.tape.reads.code.numbers)[:MOST_NUMBERS]])
        others = [[number] * len(given) for number in numbers if number != given[0]]
    return any(_differs(runs, run, sizes, {place: each}) for each in others)


def _differs(
    runs: Runs, run: ModuleRun, sizes: Mapping[str, int], outcomes: Mapping[Place, list[Any]]
) -> bool:
    found = runs.tried(runs.sized(sizes), {**run.tape.outcomes, **outcomes})
    if found is None:
        return False
    runs.recovery.recover(found.tape)
    return bool(difference(run.tape, found.tape))
