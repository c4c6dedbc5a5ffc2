"""New folders, which appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tmconvert.errors import WriteError
from tmconvert.output.atomic import hidden_folder, write_error


def refuse_existing(folder: Path) -> None:
    """Raises WriteError TM5001 for a path that exists."""
    if os.path.lexists(folder):
        raise WriteError(
            "TM5001",
            f"cannot write {folder}: it exists already",
            notes=[("help", "choose the name of a new folder, or remove the old one first")],
        )


@contextlib.contextmanager
def staged_folder(folder: Path) -> Iterator[Path]:
    """Yields a hidden folder next to ``folder``, which gets its name at the end of the block.

    Its files are flushed to the disk first. After an error nothing is left. Raises WriteError TM5001, also
    where ``folder`` exists.
    """
    refuse_existing(folder)
    with hidden_folder(lambda: folder.absolute().parent, folder.name, folder) as hidden:
        staged = hidden / folder.name
        try:
            staged.mkdir()
            yield staged
            for path in sorted(each for each in staged.rglob("*") if each.is_file()):
                with path.open("rb") as file:
                    os.fsync(file.fileno())
            refuse_existing(folder)
            staged.rename(folder)
        except OSError as error:
            raise write_error(folder, error) from error
