"""The interface of accelerators."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError


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


def is_installed(package: str) -> bool:
    with contextlib.suppress(PackageNotFoundError):
        return bool(version(package))
    return False
