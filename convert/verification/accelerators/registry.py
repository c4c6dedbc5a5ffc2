"""The accelerators that tmconvert knows by name."""

from __future__ import annotations

from collections.abc import Sequence

from tmconvert.errors import UsageError
from tmconvert.errors.suggestions import no_such_name
from tmconvert.verification.accelerators.accelerator import Accelerator
from tmconvert.verification.accelerators.scripted import SCRIPTED

_KNOWN: dict[str, Accelerator] = {}


def register_accelerator(accelerator: Accelerator) -> None:
    """Makes an accelerator known by its name; it replaces an earlier one of that name."""
    _KNOWN[accelerator.name] = accelerator


def known_accelerators() -> dict[str, Accelerator]:
    """Returns the accelerators by name."""
    return {**{each.name: each for each in SCRIPTED}, **_KNOWN}


def accelerators_named(names: Sequence[str], target: str) -> list[Accelerator]:
    """Returns the accelerators that are to run a file of ``target``.

    Raises UsageError TM6002 for an unknown name, and one that runs no such files; VerificationError TM4003
    where its software is not installed.
    """
    known, found = known_accelerators(), list[Accelerator]()
    for name in dict.fromkeys(names):
        if name not in known:
            raise no_such_name(name, list(known), "there is no accelerator", "TM6002")
        if target not in known[name].targets:
            takes = " and ".join(known[name].targets)
            raise UsageError("TM6002", f"the accelerator {name} runs files of {takes}, not of {target}")
        if not known[name].is_available():
            raise known[name].unavailable()
        found.append(known[name])
    return found
