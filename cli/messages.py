"""Log lines and progress on stderr."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tmconvert.cli.rendering import is_quiet, is_terminal, write_message
from tmconvert.errors.source import printable
from tmconvert.progress import Stage, reporting

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


class _ToStderr(logging.Handler):
    """Writes ``warning: ...`` for warnings and up, the bare message below."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        write_message(prefix + record.getMessage())


@contextlib.contextmanager
def logging_to_stderr(verbose: bool) -> Iterator[None]:
    """Shows what tmconvert logs: everything when verbose, else warnings.

    What the user's own code prints goes there, too: stdout is for results.
    """
    logger = logging.getLogger("tmconvert")
    handler, level, propagate = _ToStderr(), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logger.propagate = False
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


@contextlib.contextmanager
def progress(what: str, *, enabled: bool = True) -> Iterator[None]:
    """Shows the stage of the work on stderr, on a terminal only, and a bar for steps that are counted."""
    if not enabled or is_quiet() or not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn("line"), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as shown:
        task = shown.add_task(printable(what), total=None)

        def tell(done: int, total: int, stage: Stage) -> None:
            shown.columns = (*columns, *_counting()) if done < total else columns
            text = f"{_STAGES[stage]} {what.partition(' ')[2]}"
            shown.update(task, description=printable(text), completed=done, total=total or None)

        with reporting(tell):
            yield


def _counting() -> tuple[ProgressColumn, ...]:
    """Returns the columns for steps that are counted."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    return BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()


_STAGES: dict[Stage, str] = {
    "import": "importing PyTorch for",
    "trace": "tracing",
    "read": "reading",
    "calibrate": "calibrating",
    "convert": "converting",
    "write": "writing",
    "verify": "verifying",
    "compare": "comparing",
    "measure": "measuring",
}
