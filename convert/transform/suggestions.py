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
    close = difflib.get_close_matches(name.lower(), by_lower, 1) if isinstance(name, str) else []
    hint = f": did you mean {by_lower[close[0]]!r}?" if close else ""
    names = list(by_lower.values())
    shown = ", ".join(names[:MOST_NAMES]) + (f", ... ({len(names)} names)" if len(names) > MOST_NAMES else "")
    notes = [("help", f"valid names: {shown}")] if names and not close else []
    return UsageError(code, f"{what} {shown_value(name)}{hint}", notes=notes)
