"""Hears which files a conversion opens, whichever reader or library opens them."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import tmconvert

_OF_SYSTEM, _OF_MEMORY = ("/dev/", "/proc/", "/sys/"), "/dev/shm/"  # the last has files of users
_LISTENING: list[OpenedFiles] = []


class OpenedFiles:
    """The files that Python opens for reading within the block, apart from those of installed packages.

    Python tells audit hooks of each file that is opened, also by its libraries and in other threads. A file
    counts whether it exists or not, since an optional file may appear.

    >>> with OpenedFiles() as opened:
    ...     data = Path("net.onnx.data").read_bytes()  # doctest: +SKIP
    >>> opened.paths()  # doctest: +SKIP
    ('/models/net.onnx.data',)
    """

    def __init__(self) -> None:
        self._heard: dict[str, None] = {}

    def __enter__(self) -> OpenedFiles:
        _install()
        _LISTENING.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _LISTENING.remove(self)

    def hear(self, path: str) -> None:
        self._heard[path] = None

    def paths(self, written: Iterable[str] = ()) -> tuple[str, ...]:
        """Returns the absolute paths, but for ``written`` files, temporary ones and those of programs."""
        own = {os.path.realpath(path) for path in written}
        heard = (path for path in [*self._heard, *_imported()] if not path.startswith(_programs()))
        found = {os.path.realpath(_source_of(path)) for path in heard} - own
        return tuple(sorted(filter(_is_of_user, found)))


def _imported() -> list[str]:
    """Returns the files of modules that plugins may have imported before."""
    return [file for module in [*sys.modules.values()] if isinstance(file := _file_of(module), str)]


def _file_of(module: object) -> object:
    return vars(module).get("__file__") if hasattr(module, "__dict__") else None


def _source_of(path: str) -> str:
    try:
        return importlib.util.source_from_cache(path) if path.endswith(".pyc") else path
    except ValueError:
        return path


def _is_of_user(path: str) -> bool:
    is_of_system = path.startswith(_OF_SYSTEM) and not path.startswith(_OF_MEMORY)
    if is_of_system or path.startswith(_programs()) or Path(path).is_dir():
        return False
    return ".tmconvert-" not in path or Path(path).exists()  # a staged output is gone by now


@functools.cache
def _programs() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    own = [os.path.join(each, name) for each in tmconvert.__path__ for name in ("", "symbolics", "cli")]  # noqa: PTH118
    folders = [*map(sysconfig.get_path, names), *own]
    forms = {form for each in folders for form in (os.path.abspath(each), os.path.realpath(each))}  # noqa: PTH100
    return tuple(os.path.join(each, "") for each in forms)  # noqa: PTH118


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _LISTENING:
        path, _, flags = args
        if isinstance(path, (str, bytes)) and not (flags or 0) & (os.O_WRONLY | os.O_RDWR):
            for each in _LISTENING:
                each.hear(os.path.abspath(os.fsdecode(path)))  # noqa: PTH100


@functools.cache
def _install() -> None:
    """Adds the hook, which cannot be removed, and sleeps while nobody listens."""
    sys.addaudithook(_hear)
