"""Formats the log of passes: changes and refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tmconvert.conversion.format_numbers import counted

if TYPE_CHECKING:
    from tmconvert.passes.rewriting import PassEvent, PassRecord

SHOWN = 3  # refusals of a pass for the same reason


def pass_lines(records: Sequence[PassRecord], *, shows_all: bool) -> Iterator[str]:
    """Returns for each pass its number of changes, and its refusals with reason and location.

    A pass that runs more than once has one paragraph; its refusals are those of the last run. ``shows_all``
    adds every change, and shows all refusals with the same reason; otherwise three of them are shown.

        fuse_conv_bn: 2 changes, 1 refusal
        fuse_conv_bn: `bn3` stays: its input has other users (model.py:31)
    """
    for name in dict.fromkeys(record.name for record in records):
        runs = [record for record in records if record.name == name]
        done, refused = [event for record in runs for event in record.done], runs[-1].refused
        number = counted(len(done), "change") if done else "no changes"
        in_runs = f" in {len(runs)} runs" if len(runs) > 1 else ""
        refusals = f", {counted(len(refused), 'refusal')}" if refused else ""
        yield f"{name}: {number}{in_runs}{refusals}"
        for event in done if shows_all else ():
            yield f"{name}: {event}"
        for line in _refusals(refused, len(refused) if shows_all else SHOWN):
            yield f"{name}: {line}"


def _refusals(events: Sequence[PassEvent], most: int) -> Iterator[str]:
    """Returns ``most`` refusals that differ in more than node names, and the number of others."""
    groups: dict[str, list[PassEvent]] = {}
    for event in events:
        groups.setdefault(re.sub("`[^`]*`", "``", event.text), []).append(event)
    for alike in groups.values():
        yield from map(str, alike[:most])
        if len(alike) > most:
            yield f"{counted(len(alike) - most, 'more refusal')} for the same reason (-vv shows all)"
