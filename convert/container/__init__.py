"""The files of ``tmconvert save``: containers (see docs/container.md), and pickles for MegEngine."""

from __future__ import annotations

from os import PathLike

from tmconvert.errors.values import checked_path
from tmconvert.ir.traced_module import TracedModule


def save(module: TracedModule, path: str | PathLike[str]) -> None:
    """Writes a module to a container: ``TracedModule.save``. Raises UsageError TM6009, WriteError."""
    from tmconvert.container.writer import save_container

    save_container(module, checked_path(path))


def save_for_megengine(module: TracedModule, path: str | PathLike[str]) -> None:
    """Writes a module to a pickle that MegEngine loads. Raises UsageError TM6009, WriteError."""
    from tmconvert.frontends.megengine.writing.saving import save_megengine

    save_megengine(module, checked_path(path))
