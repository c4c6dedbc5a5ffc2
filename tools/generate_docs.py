#!/usr/bin/env python3
"""Writes the generated pages of the documentation.

    python tools/generate_docs.py            write all that is not current
    python tools/generate_docs.py --check    only list it; the exit status is 1 where there is some

The table of layers in ARCHITECTURE.md is made from tests/test_layers.py, docs/reference/cli.md from the click
commands, docs/reference/error-codes.md from the explanations, and docs/ops.md from the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

BEGIN, END = "<!-- layers: begin (tools/generate_docs.py) -->", "<!-- layers: end -->"
FOLDERS = ("symbolics", "cli")  # the other packages are in convert/
MADE = "<!-- Made by `python tools/generate_docs.py`; do not edit. -->\n\n"


def architecture() -> str:
    """ARCHITECTURE.md with the current table of layers."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + layers() + END + rest.partition(END)[2]


def layers() -> str:
    """The layers of tests/test_layers.py, the lowest first."""
    from tests.test_layers import CONTENTS, LAYERS

    rows = ["| layer | modules | contents |", "|---|---|---|"]
    for name, prefixes in LAYERS.items():
        shown = ", ".join(f"`{_shown(prefix)}`" for prefix in prefixes)
        rows.append(f"| {name} | {shown} | {CONTENTS[name]} |")
    return "\n".join([*rows, ""])


def _shown(prefix: str) -> str:
    """The folder or file of a module that is named as in the table."""
    parts = prefix.split(".")
    path = Path("" if parts[0] in FOLDERS else "convert", *parts)
    return str(path if (ROOT / path).is_dir() else path.with_suffix(".py"))


def command_line() -> str:
    """A page of all commands, with their options in tables."""
    from tmconvert.cli import COMMANDS, main

    lines = [
        "# Command line",
        "",
        MADE.strip(),
        "",
        "`MODEL` is the path of a model file, recognised by its content, or `PACKAGE.MODULE:FACTORY`, which",
        "makes a PyTorch module. Results go to stdout, messages to stderr.",
        "",
        "| command | purpose |",
        "|---|---|",
        *(f"| [`{name}`](#{name}) | {_escaped(_cell(line))} |" for name, line in COMMANDS.items()),
    ]
    context = click.Context(main, info_name="tmconvert")
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        lines += ["", f"## {name}", *_command(command, click.Context(command, context, name))]
    return "\n".join([*lines, ""])


def _command(command: click.Command, context: click.Context) -> list[str]:
    lines = ["", f"    {context.command_path} {' '.join(command.collect_usage_pieces(context))}", ""]
    lines += _paragraphs(command.help or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            lines += [
                "",
                f"### {context.info_name} {name}",
                *_command(inner, click.Context(inner, context, name)),
            ]
    rows = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    options = [row for row in rows if row is not None and row[1] and not row[0].startswith("-h,")]
    if options:
        lines += ["", "| option | meaning |", "|---|---|"]
        lines += [f"| `{_cell(names)}` | {_escaped(_cell(meaning))} |" for names, meaning in options]
    return lines


def _paragraphs(text: str) -> list[str]:
    """Click's help text as Markdown; angle brackets and stars are text."""
    import inspect

    return [_escaped(line) for line in inspect.cleandoc(text.replace("\b", "")).splitlines()]


def error_codes() -> str:
    """A page of all error codes by family."""
    from tmconvert.errors.explanations import EXPLANATIONS

    families = {
        "TM1": "Loading",
        "TM2": "Unsupported models",
        "TM3": "Invariants of the graph",
        "TM4": "Verification",
        "TM5": "Writing",
        "TM6": "Usage",
        "TM9": "Defects of tmconvert",
    }
    lines = [
        "# Error codes",
        "",
        MADE.strip(),
        "",
        "`tmconvert explain CODE` prints the same text. Codes are stable: scripts may rely on them.",
        "",
        "Exit status: 1 for TM1, TM2, TM4 and TM5, 2 for TM6, 3 for TM3 and TM9.",
    ]
    for prefix, family in families.items():
        lines += ["", f"## {family} ({prefix}xxx)"]
        for code, each in EXPLANATIONS.items():
            if code.startswith(prefix):
                title = _escaped(each.title[0].upper() + each.title[1:])
                lines += ["", f"### {code}", "", f"**{title}.** {_escaped(each.cause)}", ""]
                lines += ["Example:", "", f"    {each.example}", "", f"Remedy: {_escaped(each.remedy)}"]
    missing = [code for code in EXPLANATIONS if code[:3] not in families]
    assert not missing, missing
    return "\n".join([*lines, ""])


def ops() -> str:
    """The page of `tmconvert ops --markdown`."""
    from click.testing import CliRunner

    from tmconvert.cli.commands.ops import command

    return CliRunner().invoke(command, ["--markdown"], catch_exceptions=False).stdout


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PAGES: Mapping[str, Callable[[], str]] = {
    "ARCHITECTURE.md": architecture,
    "docs/reference/cli.md": command_line,
    "docs/reference/error-codes.md": error_codes,
    "docs/ops.md": ops,
}


def is_current(name: str) -> bool:
    """Whether a page is what its generator makes."""
    path = ROOT / name
    return path.exists() and path.read_text(encoding="utf-8") == PAGES[name]()


def main() -> int:
    stale = [name for name in PAGES if not is_current(name)]
    for name in stale:
        print(f"{name} is not current")
        if "--check" not in sys.argv:
            (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
