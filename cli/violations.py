"""What is wrong with a Caffe net, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .rendering import Line
from .wording import counted

if TYPE_CHECKING:
    from ..caffe.violation import Violation


def violation_lines(violations: Sequence[Violation], dialect: str) -> Iterator[Line]:
    """By rule: what to do, and each place."""
    rules = list(dict.fromkeys(violation.rule for violation in violations))
    places, broken = counted(len(violations), "place"), counted(len(rules), "rule")
    yield f"{places} against {broken} of the dialect {dialect}"
    for rule in rules:
        found = [violation for violation in violations if violation.rule == rule]
        yield ""
        doubt = "" if found[0].confirmed else "  (no document confirms it)"
        yield [(rule, "bold red"), (doubt, "")]
        for violation in found:
            layer = f"{violation.layer}: " if violation.layer else ""
            line = f"line {violation.line}: " if violation.line else ""
            yield f"  {line}{layer}{violation.message}"
        if found[0].help:
            yield [("  help: ", "blue"), (found[0].help, "")]
