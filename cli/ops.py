"""``tmconvert ops``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..targets import OLDEST_OPSET, TARGETS
from .conversion import version_of, version_text
from .options import json_option, opset_option
from .rendering import is_terminal, write_json, write_message, write_table
from .wording import counted

if TYPE_CHECKING:
    from ..api import OpSupport


@click.command("ops")
@click.option("--target", type=click.Choice(TARGETS), help="Only this target.  [default: all]")
@opset_option
@click.option("--search", metavar="TEXT", default="", help="Only ops whose name has TEXT in it.")
@json_option
def command(target: str | None, opset: int | None, search: str, as_json: bool) -> None:
    """List the ops that each target supports, and how.

    "since 11" means by an operator or a few, from that version of the target on; "native" in every
    version; "decomposed" by way of other ops. Where a target lacks an op, the reason stands there.
    """
    targets = TARGETS if target is None else (target,)
    versions = {name: version_of(name, opset if name == "onnx" or target else None) for name in targets}
    from .. import api

    support = {name: api.supported_ops(name, opset if name == "onnx" else None) for name in targets}
    rows = [row for row in zip(*support.values(), strict=True) if search.lower() in row[0].op.lower()]
    if as_json:
        write_json({"targets": versions, "ops": [_document(row) for row in rows]})
        return
    if not rows:
        write_message(f"no op has {search!r} in its name")
        return
    header = ["op", *(version_text(name, version) for name, version in versions.items())]
    write_table(header, [[row[0].op, *map(_cell, row)] for row in rows], style=_style)
    if is_terminal(sys.stdout):
        write_message(counted(len(rows), "op"))


def _document(row: tuple[OpSupport, ...]) -> dict[str, object]:
    cells = {
        each.target: {"support": each.support, "since": each.since, "reason": each.reason or None}
        for each in row
    }
    return {"op": row[0].op, **cells}


def _cell(each: OpSupport) -> str:
    if each.support == "native":
        return f"since {'2.' if each.target == 'tflite' else ''}{each.since}" if _later(each) else "native"
    return "decomposed" if each.support == "decomposed" else f"no: {each.reason}"


def _later(each: OpSupport) -> bool:
    """Whether the target lacks the op in one of the versions that we write."""
    return (each.since or 0) > (OLDEST_OPSET if each.target == "onnx" else 0)


def _style(cell: str) -> str:
    if cell.startswith("no: "):
        return "red"
    return "yellow" if cell == "decomposed" else ""
