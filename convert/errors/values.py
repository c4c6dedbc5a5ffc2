"""Argument values: their form in messages, and checks of paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tmconvert.errors import UsageError

LONGEST = 60  # characters of a value in a message
PATH = "a str or a path without NUL characters"


def shown_value(value: object) -> str:
    """The ``repr`` of a value, shortened; the default ``repr`` if the object's own fails.

    >>> shown_value("net.onnx")
    "'net.onnx'"
    """
    try:
        text = repr(value)
    except Exception:  # code of the user's
        text = object.__repr__(value)
    text = " ".join(text.split("\n"))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def type_and_value(value: object) -> str:
    """Formats type and value of an argument for a message.

    >>> type_and_value(3)
    'int (3)'
    >>> type_and_value(None)
    'None'
    """
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{type(value).__name__} ({shown_value(value)})"


def is_path(value: Any) -> bool:
    """Whether the value can be a path: a str, or an os.PathLike of one, without NUL characters."""
    if isinstance(value, os.PathLike):
        try:
            value = os.fspath(value)
        except Exception:  # code of the user's
            return False
    return isinstance(value, str) and "\0" not in value


def checked_path(value: Any) -> Path:
    """Returns the path of a file to write. Raises UsageError TM6009."""
    if not is_path(value):
        raise UsageError("TM6009", f"path must be {PATH}, got {type_and_value(value)}")
    return Path(value)
