#!/usr/bin/env python3
"""Writes the generated pages of the documentation.

    python tools/generate_docs.py            write all that is not current
    python tools/generate_docs.py --check    only list it; the exit status is 1 where there is some

The table of layers in ARCHITECTURE.md is made from tests/test_layers.py, docs/reference/cli.md and a page for
each command from the click commands, docs/reference/options.md from the declared options,
docs/reference/error-codes.md from the explanations, and docs/ops.md from the catalogue. llms.txt lists the
pages for language models; SKILL.md, for agents, has tools/skill_introduction.md, the commands and the codes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tmconvert.targets.option import Option

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

BEGIN, END = "<!-- layers: begin (tools/generate_docs.py) -->", "<!-- layers: end -->"
FOLDERS = ("symbolics", "cli")  # the other packages are in convert/
SECTIONS = {
    "Guides": "docs",
    "Tasks": "docs/how-to",
    "First steps": "docs/tutorial",
    "Changing models": "docs/surgery",
    "Devices": "docs/devices",
    "Reference": "docs/reference",
    "Commands": "docs/reference/cli",
    "Design": "docs/design",
    "Development": "docs/development",
}
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
    """A page that lists the commands."""
    from tmconvert.cli import COMMANDS

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
        *(f"| [`{name}`](cli/{name}.md) | {_escaped(_cell(line))} |" for name, line in COMMANDS.items()),
    ]
    return "\n".join([*lines, ""])


def command_page(name: str) -> str:
    """A page of one command, with its options in tables."""
    from tmconvert.cli import main

    context = click.Context(main, info_name="tmconvert", **main.context_settings)
    command = main.get_command(context, name)
    assert command is not None
    lines = _command(command, click.Context(command, context, name))
    return "\n".join([f"# tmconvert {name}", "", MADE.strip(), *lines, ""])


def _command(command: click.Command, context: click.Context) -> list[str]:
    lines = ["", f"    {context.command_path} {' '.join(command.collect_usage_pieces(context))}", ""]
    lines += _paragraphs(command.help or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            lines += [
                "",
                f"## {context.info_name} {name}",
                *_command(inner, click.Context(inner, context, name)),
            ]
    for heading, rows in _rows(command, context).items():
        lines += [
            "",
            *([f"**{heading}**", ""] if heading else []),
            "| option | meaning |",
            "|---|---|",
            *rows,
        ]
    return lines


def _rows(command: click.Command, context: click.Context) -> dict[str, list[str]]:
    """The rows of options by heading; those without a declaration have none."""
    from tmconvert.cli.options import GroupedCommand, GroupedOption
    from tmconvert.targets.option import HEADINGS

    rows: dict[str, list[str]] = {heading: [] for heading in ("", *HEADINGS.values())}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1] and "--help" not in record[0]:
            declared = isinstance(parameter, GroupedOption) and isinstance(command, GroupedCommand)
            heading = HEADINGS[parameter.declaration.group] if declared else ""
            rows[heading].append(f"| `{_cell(record[0])}` | {_escaped(_cell(record[1]))} |")
    return {heading: lines for heading, lines in rows.items() if lines}


def options() -> str:
    """A page of the options of conversions and calibrations, as keywords and as flags."""
    from tmconvert.conversion.options.commands import all_conversion_options
    from tmconvert.targets.option import HEADINGS

    lines = [
        "# Options",
        "",
        MADE.strip(),
        "",
        "Each option is a keyword of `to_onnx`, `to_tflite` and `to_caffe`, and a flag of the commands.",
        "The calibration options are also keywords of `calibrate`, and flags of its command.",
        "[Command line](cli.md) lists the flags of each command.",
    ]
    for group, heading in HEADINGS.items():
        lines += ["", f"## {heading}", ""]
        lines += ["| keyword | flag | targets | meaning |", "|---|---|---|---|"]
        lines += [_option_row(option) for option in all_conversion_options() if option.group == group]
    return "\n".join([*lines, ""])


def _option_row(option: Option) -> str:
    keyword = f"`{option.name}={not option.default}`" if option.kind == "switch" else f"`{option.name}`"
    keyword = f"{keyword} of `{option.part_of}`" if option.part_of else keyword
    flags = ", ".join(filter(None, [option.short_flag, option.spelling]))
    flag = f"`{_cell(f'{flags} {option.value_name}'.strip())}`"
    default = option.default_text or ("" if option.default in (None, (), 0, False) else str(option.default))
    choices = f" One of {', '.join(option.choices)}." if option.choices else ""
    shown_default = f" Default: {default}." if default and option.kind != "switch" else ""
    cells = (
        "" if option.only == "command line" else keyword,
        flag if option.is_flag else "",
        ", ".join(option.targets) or "all",
        _escaped(_cell(option.help + choices + shown_default)),
    )
    return f"| {' | '.join(cells)} |"


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


def llms() -> str:
    """The list of pages for language models: each with its title and its first sentence."""
    lines = ["# tmconvert", "", f"> {_sentence(ROOT / 'README.md')}", ""]
    lines += ["Commands and error codes for agents: [SKILL.md](SKILL.md)"]
    for heading, folder in SECTIONS.items():
        lines += ["", f"## {heading}", ""]
        for path in sorted((ROOT / folder).glob("*.md")):
            title = next(
                line[2:] for line in path.read_text(encoding="utf-8").splitlines() if line[:2] == "# "
            )
            shown = _sentence(path)
            lines.append(f"- [{title}]({path.relative_to(ROOT)})" + (f": {shown}" if shown else ""))
    return "\n".join([*lines, ""])


def _sentence(path: Path) -> str:
    """The first sentence of a page that is in a paragraph."""
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        text = " ".join(paragraph.split()).replace("**", "")
        if text[:1].isalpha() or text.startswith("`"):
            return re.split(r"(?<=[.:]) (?=[A-Z`])", text)[0]
    return ""


def skill() -> str:
    """How agents use the commands: their usage and flags, and the remedies of the error codes."""
    from tmconvert.cli import COMMANDS, main
    from tmconvert.errors.explanations import EXPLANATIONS

    introduction = (ROOT / "tools" / "skill_introduction.md").read_text(encoding="utf-8")
    lines = [*introduction.rstrip().splitlines(), "", MADE.strip(), "", "## Commands"]
    root = click.Context(main, info_name="tmconvert", **main.context_settings)
    for name, purpose in COMMANDS.items():
        command = main.get_command(root, name)
        assert command is not None
        context = click.Context(command, root, name)
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
        flags = [
            f"`{max(each.opts, key=len)}`"
            for each in options
            if not each.hidden and "--help" not in each.opts
        ]
        lines += ["", f"### {name}", "", f"    {usage}", "", f"{purpose}." if purpose[-1] != "." else purpose]
        lines += ["", f"Flags: {', '.join(flags)}"] if flags else []
    lines += ["", "## Error codes", "", "| code | error | remedy |", "|---|---|---|"]
    lines += [
        f"| {code} | {_cell(each.title)} | {_cell(each.remedy)} |" for code, each in EXPLANATIONS.items()
    ]
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def pages() -> Mapping[str, Callable[[], str]]:
    """The generated pages, and what makes each."""
    from tmconvert.cli import COMMANDS

    return {
        "ARCHITECTURE.md": architecture,
        "docs/reference/cli.md": command_line,
        **{f"docs/reference/cli/{name}.md": partial(command_page, name) for name in COMMANDS},
        "docs/reference/error-codes.md": error_codes,
        "docs/reference/options.md": options,
        "docs/ops.md": ops,
        "llms.txt": llms,
        "SKILL.md": skill,
    }


def is_current(name: str) -> bool:
    """Whether a page is what its generator makes."""
    path = ROOT / name
    return path.exists() and path.read_text(encoding="utf-8") == pages()[name]()


def main() -> int:
    stale = [name for name in pages() if not is_current(name)]
    for name in stale:
        if "--check" in sys.argv:
            print(f"{name} is not current")
            continue
        (ROOT / name).write_text(pages()[name](), encoding="utf-8")
        print(f"wrote {name}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
