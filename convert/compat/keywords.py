"""Keywords of other tools that have no counterpart: a warning or an error states why."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tmconvert.errors import CallError, UsageError


def check_keywords(
    function: str, given: Mapping[str, Any], without_meaning: Mapping[str, str], refused: Mapping[str, str],
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Warns of keywords without a meaning. Raises UsageError TM6002 for refused ones, CallError for others.

    ``without_meaning`` and ``refused`` have the reasons by keyword, ``defaults`` the values of the other tool
    that state nothing; without one these are None, False, and what is empty.
    """
    for name, value in given.items():
        if name not in without_meaning and name not in refused:
            raise CallError("TM6009", f"{function} has no keyword {name!r}")
        if value == defaults.get(name) or (name not in defaults and not value):
            continue
        if name in refused:
            message = f"{name} of {function} cannot be followed: {refused[name]}"
            raise UsageError("TM6002", message, notes=[("help", f"omit {name}")])
        warnings.warn(f"{function}: {name} has no meaning here: {without_meaning[name]}", stacklevel=4)
