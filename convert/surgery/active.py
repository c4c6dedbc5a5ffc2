"""The active insertion, which records calls on nodes: that of the innermost ``with graph.insert_exprs()``."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tmconvert.errors import UsageError

if TYPE_CHECKING:
    from tmconvert.surgery.insertion import Insertion

_ACTIVE: ContextVar[tuple[Any, ...]] = ContextVar("insertions", default=())


def push(insertion: object) -> None:
    """Makes an insertion, or other calls with its methods, the active one."""
    _ACTIVE.set((*_ACTIVE.get(), insertion))


def pop() -> None:
    """Ends the insertion that records."""
    _ACTIVE.set(_ACTIVE.get()[:-1])


def current() -> Insertion | None:
    """Returns the active insertion; None outside of all ``with`` blocks."""
    active = _ACTIVE.get()
    return active[-1] if active else None


def required(what: str) -> Insertion:
    """Returns the active insertion. Raises UsageError TM6060 outside of all ``with`` blocks."""
    insertion = current()
    if insertion is None:
        raise UsageError(
            "TM6060",
            f"{what} is recorded inside of `with graph.insert_exprs()` only",
            notes=[("help", "insert calls in such a block, or use graph.call_function")],
        )
    return insertion
