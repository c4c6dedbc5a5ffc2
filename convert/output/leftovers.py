"""Registers hidden temporary files and folders, and removes those left over.

Each is registered before it is made, so that a process that receives a signal can remove all of them
(``remove_all``). Files that stay after ``kill -9`` are removed by the next process that writes to their
folder (``remove_abandoned``). A process holds a lock on each of its files, so that files of running processes
are kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MARK = "tmconvert"
_OURS = re.compile(rf"\..*\.{MARK}-[0-9a-f]{{16}}(\..*)?", re.DOTALL)
_DAY = 86_400  # seconds after which a file is abandoned where there are no locks

_living: dict[Path, int] = {}  # and the process that made it: a fork has these, too


def hidden_name(stem: str, suffix: str) -> str:
    """Returns a unique name: ``.out.tmconvert-6019814a27c1d3f0.onnx``."""
    # 40 characters of the stem leave room below the 255 bytes that a name may have.
    return f".{stem[:40]}.{MARK}-{os.urandom(8).hex()}{suffix}"


def register(path: Path) -> None:
    """Registers an absolute path before the file or folder is created."""
    _living[path] = os.getpid()


def unregister(path: Path) -> None:
    """Unregisters a file that was removed or renamed."""
    _living.pop(path, None)


def remove_all() -> None:
    """Removes all registered files when the process ends; later accesses to them fail."""
    for path, process in list(_living.items()):
        if process == os.getpid():
            _remove(path)
        _living.pop(path, None)


class Lock:
    """Marks a file or folder as in use for other processes, until it is released or the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        if fcntl is None:
            return
        with contextlib.suppress(OSError):  # a file system without locks
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    @property
    def is_lost(self) -> bool:
        """Whether another process removed the file before it was locked."""
        return not self._path.exists()

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def remove_abandoned(folder: Path) -> None:
    """Removes from ``folder`` the hidden files and folders of processes that have ended."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name) and not entry.is_symlink():
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(path: Path) -> None:
    if fcntl is None:
        if time.time() - path.lstat().st_mtime > _DAY:
            _remove(path)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError for a living one
        _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
