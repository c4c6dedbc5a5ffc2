"""Comparisons of sizes in the rounds of a loop: whether they have one outcome at all sizes.

A loop's counter is a plain number, so ``t < n`` is another comparison in each round, and none of them is
a guard of the file. How far their operands are apart grows evenly with the size: two runs show whether one
has another outcome in a longer loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tmconvert.frontends.torch.tracing.loops.tidy import FEW, is_assumption, numbers_of_sizes, scopes_of
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Tape, Value

Kind = tuple[str, str, bool]  # line, operator, outcome
Sizes = Mapping[str, int]
FEWEST = 3  # the module runs at smaller sizes
BELOW = frozenset((("lt", True), ("le", True), ("gt", False), ("ge", False)))
ABOVE = frozenset((("gt", True), ("ge", True), ("lt", False), ("le", False)))
EQUAL = frozenset((("eq", True), ("ne", False)))


def lines_of_rounds(tapes: Iterable[Tape]) -> set[str]:
    """Returns the lines that compare sizes more often in a longer loop."""
    counts = [Counter(str(each.source) for each in _comparisons(tape.top)) for tape in tapes]
    lines = {line for count in counts for line in count if count[line] >= FEW}
    return {line for line in lines if any(count[line] != counts[0][line] for count in counts)}


def counting(tapes: Iterable[Tape], lines: set[str]) -> set[str]:
    """Returns the lines whose comparisons have other operands in each round."""
    gaps = (each for tape in tapes for each in _gaps(tape.top, lines).items())
    return {kind[0] for kind, found in gaps if len({*found}) > 1}


def changing(runs: Sequence[tuple[Sizes, Tape]], lines: set[str]) -> dict[str, str]:
    """Returns the lines whose comparisons have another outcome at other sizes, each with the reason.

    ``runs`` are the tapes with their sizes: the first one is compared with those that are twice as large.
    """
    found: dict[str, str] = {}
    sizes, first = runs[0]
    gaps = _gaps(first.top, lines)
    for others, tape in runs[1:]:
        larger = next(((n, others[name]) for name, n in sizes.items() if others[name] >= 2 * n), None)
        if larger is None:
            continue
        there = _gaps(tape.top, lines)
        for kind, here in gaps.items():
            if len(here) >= FEW and not _holds(kind, here, there.get(kind, []), *larger):
                found[kind[0]] = "a comparison of sizes comes out otherwise in a longer loop"
    return found


def _holds(kind: Kind, here: Sequence[Any], there: Sequence[Any], size: int, larger: int) -> bool:
    """Whether all differences of two operands have the sign that the outcome needs at any size."""
    test = kind[1:]
    if None in (*here, *there) or not there:
        return False
    if test in EQUAL:
        return True
    if test in BELOW or (test not in ABOVE and max(here) < 0):
        here, there = [-each for each in here], [-each for each in there]
    now, later = min(here), min(there)
    fewest = now - (later - now) / (larger - size) * (size - FEWEST)
    least = 0 if test in {("ge", True), ("le", True), ("gt", False), ("lt", False)} else 1e-9
    return later >= now >= least and fewest >= least


def _gaps(top: Scope, lines: set[str]) -> dict[Kind, list[Any]]:
    """Returns how much larger the first operand of each comparison is than the second; None if unknown."""
    numbers = numbers_of_sizes(top)
    found: dict[Kind, list[Any]] = {}
    for each in _comparisons(top):
        if str(each.source) in lines:
            name, *operands, outcome = each.args
            left, right = (numbers.get(one) if isinstance(one, Value) else one for one in operands)
            gap = None if left is None or right is None else left - right
            found.setdefault((str(each.source), name, outcome), []).append(gap)
    return found


def _comparisons(top: Scope) -> Iterable[Record]:
    for scope in scopes_of(top):
        for item in scope.items:
            if isinstance(item, Record) and is_assumption(item):
                yield item
