"""The interface of accelerators, and those that tmconvert knows by name."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from tmconvert.errors import UsageError, VerificationError
from tmconvert.errors.suggestions import no_such_name


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    ``outputs`` are the arrays, in the order that was requested; None where there are none, for the reason in
    ``refused`` (the accelerator states that it cannot run the file) or ``ended`` (its process was aborted, or
    exceeded the time limit). ``elsewhere`` are operators, with reasons, that ran on the processor instead;
    ``is_whole`` states that there are none.
    """

    outputs: Sequence[np.ndarray] | None = None
    refused: str = ""
    ended: str = ""
    elsewhere: tuple[str, ...] = ()
    is_whole: bool = True


class Accelerator:
    """A device or library that runs files of ``targets``; ``about`` describes it.

    ``how_to_get`` states what has to be installed.
    """

    name = ""
    about = ""
    how_to_get = ""
    targets: tuple[str, ...] = ()

    def is_available(self) -> bool:
        """Whether its software is installed; a missing device shows in the first run."""
        raise NotImplementedError

    def run(self, path: Path, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Outcome:
        """Runs a file in another process. Raises VerificationError TM4003 where it is not available."""
        raise NotImplementedError

    def unavailable(self) -> VerificationError:
        message = f"{self.name} is not available: {self.about} cannot be used here"
        return VerificationError("TM4003", message, notes=[("help", self.how_to_get)])


_KNOWN: dict[str, Accelerator] = {}


def register_accelerator(accelerator: Accelerator) -> None:
    """Makes an accelerator known by its name; it replaces an earlier one of that name."""
    _KNOWN[accelerator.name] = accelerator


def known_accelerators() -> dict[str, Accelerator]:
    """Returns the accelerators by name."""
    from tmconvert.verification.accelerators.scripted import SCRIPTED

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


def is_installed(package: str) -> bool:
    with contextlib.suppress(PackageNotFoundError):
        return bool(version(package))
    return False
