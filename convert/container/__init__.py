"""The container format of ``tmconvert save``; see docs/container.md."""

from __future__ import annotations

from os import PathLike

from tmconvert.errors.values import checked_path
from tmconvert.ir.traced_module import TracedModule, register_container_writer


def save(module: TracedModule, path: str | PathLike[str]) -> None:
    """Writes a module to a container: ``TracedModule.save``. Raises UsageError TM6009, WriteError."""
    from tmconvert.container.writer import save_container

    save_container(module, checked_path(path))


register_container_writer(save)
