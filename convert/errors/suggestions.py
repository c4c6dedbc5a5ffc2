"""Errors for unknown names, with the most similar one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from tmconvert.errors import UsageError
from tmconvert.errors.values import shown_value

MOST_NAMES = 8  # in a message


def no_such_name(name: object, known: Iterable[str], what: str, code: str = "TM6050") -> UsageError:
    """Returns the error for an unknown name: ``what`` begins its sentence, the most similar name ends it. A
    note has the first names where none is similar.

    >>> no_such_name("FuseConvBN", ["FuseConvBn"], "there is no pass").message
    "there is no pass 'FuseConvBN': did you mean 'FuseConvBn'?"
    """
    by_lower = {each.lower(): each for each in known}
    text = name.lower() if isinstance(name, str) else ""
    close = [each for each in by_lower if text and each.endswith(f"::{text}")]
    close = close or difflib.get_close_matches(text, by_lower, 1)
    hint = f": did you mean {by_lower[close[0]]!r}?" if close else ""
    names = list(by_lower.values())
    shown = ", ".join(names[:MOST_NAMES]) + (f", ... ({len(names)} names)" if len(names) > MOST_NAMES else "")
    notes = [("help", f"valid names: {shown}")] if names and not close else []
    return UsageError(code, f"{what} {shown_value(name)}{hint}", notes=notes)


def check_op(name: str, ops: Iterable[str]) -> None:
    """Raises UsageError TM6050 for an unknown op; names of functions of a source have no ``::``."""
    known = sorted(ops)
    spaces = {each.partition("::")[0] for each in known}
    if name not in known and (name.partition("::")[0] in spaces or f"aten::{name}" in known):
        raise no_such_name(name, known, "there is no op")
