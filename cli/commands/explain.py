"""``tmconvert explain``."""

from __future__ import annotations

import difflib
import textwrap

import click

from tmconvert.cli.rendering import write, write_table
from tmconvert.errors import UsageError
from tmconvert.errors.explanations import EXPLANATIONS

TEXT_WIDTH = 78

_DIGITS = str.maketrans("OQILSB", "001158")


@click.command("explain")
@click.argument("code", metavar="[CODE]", required=False)
def command(code: str | None) -> None:
    """Explain the error CODE: its cause, an example, a remedy. Without CODE, list all codes."""
    if code is None:
        write_table(["code", "meaning"], [[name, each.title] for name, each in EXPLANATIONS.items()])
        return
    wanted = code.strip("[] ").upper()
    wanted = f"TM{wanted}" if wanted.isdigit() else wanted
    explanation = EXPLANATIONS.get(wanted)
    if explanation is None:
        digits = wanted[2:].translate(_DIGITS)  # letters that look like digits
        close = difflib.get_close_matches(wanted[:2] + digits, EXPLANATIONS, n=3)
        notes = [
            ("help", "`tmconvert explain` lists all codes" + (f"; near: {', '.join(close)}" if close else ""))
        ]
        raise UsageError("TM6012", f"there is no error code {code!r}", notes=notes)
    write([(wanted, "bold red"), (f": {explanation.title}", "bold")], "")
    write(*_paragraph(explanation.cause), "")
    write([("example", "bold")], *_paragraph(explanation.example), "")
    write([("remedy", "bold")], *_paragraph(explanation.remedy))


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(
        text, TEXT_WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
