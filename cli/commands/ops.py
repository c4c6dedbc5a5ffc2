"""``tmconvert ops``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.conversion import version_of
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import is_terminal, write, write_json, write_message, write_table
from tmconvert.conversion.format_numbers import counted
from tmconvert.conversion.options.conversion import VERSIONS
from tmconvert.symbolics.target_names import TARGETS, words_of

if TYPE_CHECKING:
    from tmconvert.conversion.support import OpSupport

Row = Sequence["OpSupport"]

_MARKDOWN_HEAD = """\
# Ops

The ops of the graph, and how each target supports them: *native* by one operator of the target or a few,
*decomposed* into other ops. A number is the first opset or runtime, if that is not the first one that
tmconvert writes (opset 7).

Generated tests (`tests/test_catalogue.py`) prove each entry: the op is converted and run at every opset
where its lowering changes, and refused where this page has "no". ONNX supports every element type of the
second column, with casts where an operator lacks one.

Made by `tmconvert ops --markdown > docs/ops.md`; do not edit.
"""


@click.command("ops", cls=GroupedCommand, example="tmconvert ops --target onnx --search conv")
@declared_options("ops")
def command(target: str | None, search: str | None, json: bool, markdown: bool, **given: Any) -> None:
    """List the ops that each target supports, and how.

    "native" ops are written as one or a few operators, "decomposed" ones by other ops, and those "from 9" are
    supported from version 9 on. With --target the table shows all versions, element types, ranks and the
    reasons, with --search the signatures of the ops.
    """
    if json and markdown:
        raise click.UsageError("--json and --markdown exclude each other")
    targets = TARGETS if target is None else (target,)
    versions = {name: version_of(name, given if target else _own(name, given)) for name in targets}
    rows = [row for row in _rows(versions) if (search or "").lower() in row[0].op.lower()]
    if json:
        write_json({"targets": versions, "ops": [_document(row) for row in rows]})
    elif markdown:
        write(*_page(targets, rows))
    elif not rows:
        write_message(f"no op has {search!r} in its name")
    else:
        _table(versions, rows, all_versions=not any(given.values()))
        if search:
            write(*(row[0].signature for row in rows))


def _own(target: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The option for the version of the target."""
    return {option.name: given[option.name] for option in VERSIONS if option.applies_to(target)}


def _rows(versions: dict[str, Any]) -> list[Row]:
    from tmconvert import api

    support = [api.supported_ops(name, version) for name, version in versions.items()]
    return list(zip(*support, strict=True))


def _title(target: str, version: object) -> str:
    """With the version, but for a long default: so the longest row fits 80 columns."""
    title = f"{words_of(target).title} {version}"
    is_short = len(title) <= len("decomposed")
    return title if is_short or version != version_of(target, {}) else words_of(target).title


def _table(versions: dict[str, Any], rows: list[Row], *, all_versions: bool) -> None:
    if len(versions) > 1:
        header = ["op", *(_title(name, version) for name, version in versions.items())]
        cells = [[row[0].op, *map(_short, row)] for row in rows]
    else:
        from tmconvert.conversion.report_text import version_text

        ((target, version),) = versions.items()
        header = [
            "op",
            "element types",
            words_of(target).title if all_versions else version_text(target, version),
        ]
        cell = _all_versions if all_versions else _at_version
        cells = [[each.op, each.limits, cell(each)] for (each,) in rows]
    write_table(header, cells, style=_style)
    if is_terminal(sys.stdout):
        write_message(counted(len(rows), "op"))


def _document(row: Row) -> dict[str, object]:
    cells = {
        each.target: {
            "support": each.support,
            "since": each.since,
            "reason": each.reason or None,
            "versions": [{"since": since, "support": how} for since, how in each.versions],
        }
        for each in row
    }
    return {"op": row[0].op, "signature": row[0].signature, "arguments": row[0].arguments, **cells}


def _page(targets: Sequence[str], rows: list[Row]) -> Iterator[str]:
    yield from _MARKDOWN_HEAD.split("\n")
    yield f"| op | element types | {' | '.join(words_of(target).title for target in targets)} |"
    yield "|---" * (2 + len(targets)) + "|"
    for row in rows:
        cells = [f"`{row[0].signature}`", row[0].limits, *map(_all_versions, row)]
        yield f"| {' | '.join(cells)} |".replace("\n", " ")


def _short(each: OpSupport) -> str:
    if each.support == "no" and each.since is not None:
        return f"from {_version(each, each.since)}"
    return each.support


def _at_version(each: OpSupport) -> str:
    return f"no: {each.reason}" if each.support == "no" else each.support


def _all_versions(each: OpSupport) -> str:
    """``native``, ``decomposed 7 to 16, native from 17``, ``no: reason``."""
    if not each.versions:
        return f"no: {each.reason}"
    ends = [*(since for since, _ in each.versions[1:]), None]
    parts = []
    for (since, how), end in zip(each.versions, ends, strict=True):
        if end is not None:
            parts.append(f"{how} {_version(each, since)} to {_version(each, end - 1)}")
        elif len(each.versions) > 1 or each.starts_later:
            parts.append(f"{how} from {_version(each, since)}")
        else:
            parts.append(how)
    return ", ".join(parts)


def _version(each: OpSupport, version: int) -> str:
    from tmconvert.targets.registry import target_named

    return str(target_named(each.target).version_name(version))


def _style(cell: str) -> str:
    if cell.startswith(("no", "from ")):
        return "red"
    return "yellow" if cell.startswith("decomposed") else ""
