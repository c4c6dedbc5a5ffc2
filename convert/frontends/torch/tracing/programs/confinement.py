"""Confines a library while it works for a document of a stranger's: code, files, connections.

Python reports what a program does to audit hooks, and ends what a hook raises an exception for. The hook
here refuses, in a thread that is confined, connections, processes, pickles, and code and files that do not
belong to the installed packages. It cannot be removed, so it is installed with the first use, and sleeps
otherwise.
"""

from __future__ import annotations

import functools
import importlib
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import tmconvert

# Frames of these may open files: modules that are imported, lines of source code for messages.
_READERS = ("<frozen importlib", "<frozen zipimport", importlib.__file__, linecache.__file__)
_OWN = str(Path(tmconvert.__file__).parent) + os.sep
_OFFLINE = (("huggingface_hub.constants", "HF_HUB_OFFLINE"), ("transformers.utils.hub", "_is_offline_mode"))
_STATE = threading.local()


class Confined(Exception):
    """A confined library was kept from a file, code or a connection."""


class Confinement:
    """Keeps this thread from connections, processes, pickles, and from files and code of strangers.

    Only the standard library, installed packages and what is ``readable`` are read and executed meanwhile,
    and nothing in ``folder``; the current folder and what contains ``folder`` do not count as installed. With
    ``only_folder`` all but ``folder`` may be read and executed. On leaving, Confined is raised for the first
    refusal, whatever the library made of it. The Hub's programs are offline meanwhile.

    >>> with Confinement("net"):
    ...     open("/etc/passwd")
    Traceback (most recent call last):
    Confined: it would open /etc/passwd
    """

    def __init__(self, folder: str, *readable: str, only_folder: bool = False) -> None:
        self._folder = _forms(folder)
        paths = [*_installed(self._folder), *readable]
        self._roots = None if only_folder else {form for path in paths for form in _forms(path)}
        self._refused: list[str] = []
        self._online: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> None:
        _install()
        for module, name in _OFFLINE:
            found = sys.modules.get(module)
            if hasattr(found, name):
                self._online.append((found, name, getattr(found, name)))
                setattr(found, name, True)
        _STATE.confinement = self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _STATE.confinement = None
        for module, name, value in self._online:
            setattr(module, name, value)
        if self._refused:
            raise Confined(self._refused[0]) from error

    def hears(self, event: str, args: Sequence[Any]) -> None:
        """Raises Confined for an event that is refused."""
        reason = _REFUSED[event](self, args)
        if reason:
            self._refused.append(reason)
            raise Confined(reason)

    def is_foreign(self, path: object) -> bool:
        """Whether a path is neither of the standard library nor of installed packages."""
        if not isinstance(path, str | bytes):
            return False  # a file descriptor
        forms = _forms(os.fsdecode(path))
        is_inside = any(_is_in(form, folder) for form in forms for folder in self._folder)
        if is_inside or self._roots is None:
            return is_inside
        return not any(_is_in(form, root) for form in forms for root in self._roots)

    def is_reading_source(self) -> bool:
        """Whether the importing of a module, or a message that shows code, is what opens a file."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_READERS):
                return True
            if file.startswith(_OWN) and file != __file__:  # who called the library
                return False
            frame = frame.f_back
        return False


def _installed(folder: set[str]) -> list[str]:
    """Returns the folders of the standard library and of installed packages."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    for name in ("torch", "transformers", "timm"):
        paths += getattr(sys.modules.get(name), "__path__", ())
    current = str(Path.cwd())
    listed = [path for path in sys.path if path and current not in _forms(path)]
    listed = [path for path in listed if not any(_is_in(form, path) for form in folder)]
    return [_OWN, *paths, *listed]


def _forms(path: str) -> set[str]:
    """Returns a path as it is written and with symbolic links resolved: parts of packages may be links."""
    return {os.path.abspath(path), os.path.realpath(path)}  # noqa: PTH100 - resolve() follows links


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _connection(confinement: Confinement, args: Sequence[Any]) -> str:
    return "it would open a connection"


def _process(confinement: Confinement, args: Sequence[Any]) -> str:
    return "" if confinement.is_reading_source() else "it would start a program"


def _library(confinement: Confinement, args: Sequence[Any]) -> str:
    own = not isinstance(args[0], str) or os.sep not in args[0] or not confinement.is_foreign(args[0])
    return "" if own or confinement.is_reading_source() else f"it would load the native library {args[0]}"


def _pickle(confinement: Confinement, args: Sequence[Any]) -> str:
    return "" if confinement.is_reading_source() else "it would open a pickle"


def _code(confinement: Confinement, args: Sequence[Any]) -> str:
    file = getattr(args[0], "co_filename", "<string>")
    return "" if file.startswith("<") or not confinement.is_foreign(file) else f"it would execute {file}"


def _native_module(confinement: Confinement, args: Sequence[Any]) -> str:
    return f"it would execute {args[1]}" if args[1] and confinement.is_foreign(args[1]) else ""


def _file(confinement: Confinement, args: Sequence[Any]) -> str:
    if not confinement.is_foreign(args[0]) or confinement.is_reading_source():
        return ""
    return f"it would open {os.fsdecode(args[0])}"


_REFUSED: dict[str, Callable[[Confinement, Sequence[Any]], str]] = {
    "open": _file,
    "exec": _code,
    "import": _native_module,
    "ctypes.dlopen": _library,
    "pickle.find_class": _pickle,
    **dict.fromkeys(
        ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"), _process
    ),
    **dict.fromkeys(
        (
            "socket.connect",
            "socket.getaddrinfo",
            "socket.gethostbyname",
            "socket.gethostbyaddr",
            "socket.sendto",
            "socket.sendmsg",
            "http.client.connect",
            "urllib.Request",
        ),
        _connection,
    ),
}


def _hear(event: str, args: tuple[Any, ...]) -> None:
    confinement = getattr(_STATE, "confinement", None)
    if confinement is not None and event in _REFUSED:
        confinement.hears(event, args)


@functools.cache
def _install() -> None:
    sys.addaudithook(_hear)
