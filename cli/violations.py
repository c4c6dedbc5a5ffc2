"""Formats the violations of a Caffe net."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tmconvert.cli.rendering import Line
from tmconvert.conversion.format_numbers import counted

if TYPE_CHECKING:
    from tmconvert.targets.violation import Violation


MOST_LAYERS = 3  # that are named where one message is about several


def _by_message(violations: Sequence[Violation]) -> list[list[Violation]]:
    """Groups violations by message."""
    groups: dict[str, list[Violation]] = {}
    for violation in violations:
        groups.setdefault(violation.message, []).append(violation)
    return list(groups.values())


def violation_lines(violations: Sequence[Violation], dialect: str) -> Iterator[Line]:
    """Returns for each rule the remedy, and each location."""
    rules = list(dict.fromkeys(violation.rule for violation in violations))
    total, broken = counted(len(violations), "violation"), counted(len(rules), "rule")
    yield f"{total} of {broken} of the dialect {dialect}"
    for rule in rules:
        found = [violation for violation in violations if violation.rule == rule]
        yield ""
        doubt = "" if found[0].confirmed else "  (no document confirms it)"
        yield [(rule, "bold red"), (doubt, "")]
        for same in _by_message(found):
            first, count = same[0], len(same)
            layer = f"{first.layer}: " if first.layer else ""
            line = f"line {first.line}: " if first.line else ""
            others = [each.layer or f"line {each.line}" for each in same[1:]]
            shown = ", ".join(others[:MOST_LAYERS]) + (", ..." if len(others) > MOST_LAYERS else "")
            more = f"  (and {counted(count - 1, 'more place')}: {shown})" if count > 1 else ""
            yield f"  {line}{layer}{first.message}{more}"
        if found[0].help:
            yield [("  help: ", "blue"), (found[0].help, "")]
