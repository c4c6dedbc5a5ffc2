"""Output of the command line: text and JSON on stdout, messages on stderr.

On a terminal rich adds colour and fits the text to the width; anywhere else the same text is plain. Control
characters in text from a model file are escaped, never sent to the terminal.
"""

from __future__ import annotations

import contextlib
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from tmconvert.errors import TmconvertError, WriteError
from tmconvert.errors.source import printable

if TYPE_CHECKING:
    from rich.console import Console

Segment = tuple[str, str]  # (text, rich style)
Line = str | Sequence[Segment]
_is_quiet = False


def write(*lines: Line) -> None:
    """Writes lines to stdout. Raises WriteError, or BrokenPipeError when the reader has gone."""
    if sys.stdout is None:
        raise WriteError("TM5001", "cannot write to stdout: it is closed")
    try:
        _emit(sys.stdout, lines)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise WriteError("TM5001", f"cannot write to stdout: {error.strerror}") from error


def write_json(document: object) -> None:
    """Writes one JSON document to stdout."""
    import json

    write(*json.dumps(document, indent=2).split("\n"))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drops all messages, but no errors."""
    global _is_quiet
    before, _is_quiet = _is_quiet, True
    try:
        yield
    finally:
        _is_quiet = before


def is_quiet() -> bool:
    """Whether messages are dropped."""
    return _is_quiet


def write_message(*lines: Line) -> None:
    """Writes lines to stderr unless messages are dropped; failures, as on a full disk, are ignored."""
    if not _is_quiet:
        _write_to_stderr(lines)


def _write_to_stderr(lines: Sequence[Line]) -> None:
    if sys.stderr is None:
        return
    try:
        _emit(sys.stderr, lines)
    except BrokenPipeError:
        raise
    except OSError:
        return


def write_error(error: TmconvertError) -> None:
    """Writes an error to stderr, coloured and wrapped on a terminal."""
    if not is_terminal(sys.stderr):
        _write_to_stderr(error.render().split("\n"))
        return
    _write_to_stderr(error_lines(error, _console(sys.stderr).width))


def error_lines(error: TmconvertError, width: int) -> list[list[Segment]]:
    """Returns the lines of ``error.render()`` with styles, wrapped with indentation."""
    head = f"error[{error.code}]: "
    lines = _fitted([(head, "bold red")], error.message, "bold", width, indent=len("error: "))
    if error.source is not None:
        lines += _fitted([("  --> ", "blue")], str(error.source), "", width)
    if error.excerpt:
        lines.append([("   |", "blue")])
        for text in error.excerpt.splitlines():
            parts = _wrap(text, width - 6) or [""]
            lines += [[("   |  ", "blue"), (part, "")] for part in parts]
        lines.append([("   |", "blue")])
    for label, text in error.notes:
        lines += _fitted([("   = ", "blue"), (f"{label}: ", "bold")], text, "", width)
    return lines


def sys_stderr() -> TextIO:
    return sys.stderr


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def plain_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Aligns columns by spaces; the last one is not padded."""
    table = [[printable(cell.replace("\n", " ")) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def write_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    style: Callable[[str], str] = lambda cell: "",
    to: TextIO | None = None,
) -> None:
    """Writes a table to stdout or ``to``: rich on a terminal, plain columns elsewhere."""
    stream = sys.stdout if to is None else to
    emit = write_message if stream is sys.stderr else write
    if not is_terminal(stream):
        emit(*plain_table(header, rows))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell), style=style(cell)) for cell in row))
    _console(stream).print(table)


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def _emit(stream: TextIO, lines: Iterable[Line]) -> None:
    lines = list(lines)
    if is_terminal(stream) and not all(isinstance(line, str) for line in lines):
        from rich.text import Text

        console = _console(stream)
        for line in lines:
            segments: Any = [(line, "")] if isinstance(line, str) else line
            styled = Text.assemble(*((printable(part), style) for part, style in segments))
            console.print(styled, soft_wrap=True)
        return
    texts = [line if isinstance(line, str) else "".join(part for part, _ in line) for line in lines]
    plain = "".join(f"{printable(text)}\n" for text in texts)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(plain.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _fitted(
    head: list[Segment], text: str, style: str, width: int, indent: int | None = None
) -> list[list[Segment]]:
    """Wraps ``head`` and ``text`` at words; continuation lines are indented below the text."""
    taken = sum(len(part) for part, _ in head)
    below = taken if indent is None else indent
    parts = [part for line in text.splitlines() or [""] for part in _wrap(line, width - taken) or [""]]
    return [[*head, (parts[0], style)], *([(" " * below, ""), (part, style)] for part in parts[1:])]


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 20), break_on_hyphens=False, replace_whitespace=False)
