"""Formats the violations of a dialect or a profile."""

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


def violation_lines(violations: Sequence[Violation], of: str) -> Iterator[Line]:
    """Returns for each rule of ``of``, such as "dialect nnie", the remedy, and each location."""
    rules = list(dict.fromkeys(violation.rule for violation in violations))
    total, broken = counted(len(violations), "violation"), counted(len(rules), "rule")
    yield f"{total} of {broken} of the {of}"
    for rule in rules:
        found = [violation for violation in violations if violation.rule == rule]
        yield ""
        yield [(rule, "bold red"), (_remark(found[0]), "")]
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


def _remark(violation: Violation) -> str:
    """Returns what becomes of the operator, and whether that is confirmed; empty where there is no doubt."""
    by = "tool" if violation.effect else "document"
    effects = {"elsewhere": "not run there", "wrong": "computed wrongly", "refused": "not loaded"}
    known = [effects[violation.effect]] if violation.effect else []
    known += [] if violation.confirmed else [f"no {by} confirms it"]
    return f"  ({', '.join(known)})" if known else ""
