"""Progress of long work: its stages, and how much of a stage is done, reported to a function of the caller.

Work reports to the function of the innermost ``reporting`` of its thread; without one, reports go nowhere.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

# of the caller: f(done, total) or f(done, total, stage=...)
Progress = Callable[..., Any]
Stage = Literal["import", "trace", "read", "calibrate", "convert", "write", "verify", "compare", "measure"]
# (done, total, stage); total is 0 at the beginning of a stage
Listener = Callable[[int, int, Stage], object]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def reporting(progress: Progress | None) -> Iterator[None]:
    """Reports to ``progress`` within the context; None leaves things as they are.

    A function with a parameter ``stage`` is also called at the beginning of each stage, with zeros; others
    only for steps that are counted.
    """
    if progress is None:
        yield
        return
    token = _listener.set(_as_listener(progress))
    try:
        yield
    finally:
        _listener.reset(token)


def _as_listener(progress: Progress) -> Listener:
    try:
        takes_stage = "stage" in inspect.signature(progress).parameters
    except (TypeError, ValueError):  # functions of extension modules
        takes_stage = False
    if takes_stage:
        return lambda done, total, stage: progress(done, total, stage=stage)
    return lambda done, total, _: progress(done, total) if total else None


def begin(stage: Stage) -> None:
    """Reports that a stage begins, also to the logger ``tmconvert.progress`` of a program that logs."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger(__name__).debug("%s begins", stage)
    listener = _listener.get()
    if listener is not None:
        listener(0, 0, stage)


def counter(stage: Stage) -> Callable[[int, int], object] | None:
    """Returns the function that reports steps as (done, total); None where nobody listens."""
    listener = _listener.get()
    return None if listener is None else lambda done, total: listener(done, total, stage)
