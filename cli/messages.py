"""Log lines and progress on stderr."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator

from tmconvert.cli.rendering import is_quiet, is_terminal, write_message
from tmconvert.errors.source import printable


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
    """Shows a spinner on stderr, on a terminal only, until the work is done."""
    if not enabled or is_quiet() or not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(printable(what)), spinner="line"):
        yield


@contextlib.contextmanager
def counting(what: str, then: str) -> Iterator[Callable[[int, int], None] | None]:
    """Returns a function that shows the number of samples done and of all on a terminal; None elsewhere."""
    if is_quiet() or not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True, redirect_stdout=False
    ) as bar:
        task = bar.add_task(printable(what), total=None)

        def tell(done: int, total: int) -> None:
            bar.update(
                task, description=printable(what if done < total else then), completed=done, total=total
            )

        yield tell
