"""Keywords of other tools that have no counterpart: a warning or an error states why."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from tmconvert.errors import CallError, UsageError
from tmconvert.errors.values import shown_value


def check_keywords(
    function: str, given: Mapping[str, Any], without_meaning: Mapping[str, str], refused: Mapping[str, str]
) -> None:
    """Warns of keywords without a meaning. Raises UsageError TM6002 for refused ones, CallError for others.

    ``without_meaning`` and ``refused`` have the reasons by keyword. Values that are false say nothing.
    """
    for name, value in given.items():
        if name not in without_meaning and name not in refused:
            raise CallError("TM6009", f"{function} has no keyword {name!r}")
        is_set = not (
            value is None or value is False or (isinstance(value, (list, tuple, dict)) and not value)
        )
        if name in refused and is_set:
            message = f"{name}={shown_value(value)} of {function} cannot be followed: {refused[name]}"
            raise UsageError("TM6002", message, notes=[("help", f"omit {name}")])
        if is_set:
            warnings.warn(f"{function}: {name} has no meaning here: {without_meaning[name]}", stacklevel=4)


def other_than(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments whose values are not the defaults of the other tool.

    >>> other_than({"optimize": True}, {"optimize": False, "profile": True})
    {'optimize': False, 'profile': True}
    """
    return {name: value for name, value in given.items() if name not in defaults or defaults[name] != value}
