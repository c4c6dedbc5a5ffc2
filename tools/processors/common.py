"""What all kinds of processors need: the programs they call, and where they keep what they build."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

# the program, and the Debian package that has it
PACKAGES = {
    "cc": "gcc",
    "objdump": "binutils",
    "qemu-x86_64": "qemu-user",
    "qemu-aarch64": "qemu-user",
    "apt-get": "apt",
    "dpkg": "dpkg",
}


class NotAvailable(Exception):
    """This machine cannot run commands as on the processor; the text says what is missing."""


def missing(programs: Iterable[str]) -> list[str]:
    """What to install for the programs that PATH does not have."""
    return [
        f"{program} (Debian package {PACKAGES[program]})"
        for program in programs
        if shutil.which(program) is None
    ]


def cache() -> Path:
    """The folder of what is built, made if need be."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "tmconvert-processors"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
