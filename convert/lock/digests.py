"""SHA-256 digests of files, and how paths are written in records that lie next to them."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tmconvert.formats.mapped_file import open_regular

_CHUNK = 1 << 20
# packages, and their folders that are packages of their own where tmconvert is installed
_PACKAGES = {"tmconvert": ("symbolics", "cli"), "tmconvert.symbolics": (), "tmconvert.cli": ()}
_COMPILED = (".so", ".pyd")


def file_digest(path: Path) -> str | None:
    """Returns the SHA-256 of a file; None if it cannot be read."""
    made = hashlib.sha256()
    try:
        with open_regular(path) as file:
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                made.update(chunk)
    except (OSError, ValueError):
        return None
    return made.hexdigest()


@cache
def product_digest() -> str:
    """Returns the SHA-256 of tmconvert's own files, by their names in its packages."""
    made = hashlib.sha256()
    for package, others in _PACKAGES.items():
        found = find_spec(package)
        for folder in map(Path, () if found is None else found.submodule_search_locations or ()):
            for path in sorted(folder.rglob("*")):
                name = path.relative_to(folder).as_posix()
                is_other = (
                    "__pycache__" in path.parts or path.suffix in _COMPILED or name.split("/")[0] in others
                )
                if path.is_file() and not is_other:
                    made.update(f"{package}/{name}\0{file_digest(path)}\n".encode())
    return made.hexdigest()


def relative_path(path: Path, folder: Path) -> str:
    """Returns a path as it is from a folder, with the same separators on all systems."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive of Windows
        return path.absolute().as_posix()
