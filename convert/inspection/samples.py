"""Copies the sample models and images, which are part of the installed package."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

from tmconvert.errors import InternalError, UsageError, WriteError

_LEFT_OUT = ("__pycache__", "*.pyc")


def copy_samples(folder: Path) -> list[Path]:
    """Copies the samples to a new folder, and returns the files, sorted.

    Raises UsageError TM6002 for a folder that exists and is not empty, WriteError TM5001 where it cannot be
    written.
    """
    source = samples_folder()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "TM6002",
            f"{folder} exists already",
            notes=[("help", "pass the name of a new folder, as in `tmconvert samples samples`")],
        )
    try:
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise WriteError("TM5001", f"cannot write the samples to {folder}: {error}") from error
    return sorted(path for path in folder.rglob("*") if path.is_file())


def samples_folder() -> Path:
    """Returns the folder of the samples: in the installed package, or in a checkout next to it."""
    spec = find_spec("tmconvert")
    assert spec is not None and spec.submodule_search_locations is not None
    for place in spec.submodule_search_locations:
        for folder in (Path(place) / "samples", Path(place).parent / "samples"):
            if (folder / "digits.tm").is_file():
                return folder
    raise InternalError("TM9000", "the samples are missing from this installation")
