"""Ends the process cleanly on SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGQUIT, and removes temporary files.

The first signal is raised as an exception, so that context managers clean up; then the remaining hidden files
are removed. The process ends at once while a module is imported, since extension modules may crash on an
exception during import, and on a second signal. This module is imported first, and imports little.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK")  # as far as the system has them
_IMPORTS = "<frozen importlib._bootstrap>"
_STATUS = 128  # and the number of the signal, as shells have it


class Ended(BaseException):
    """Raised in the main thread when the process receives a signal that ends it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


is_handled = False
is_worker = False
"""Whether another process started this one, and reports its end."""
folders: list[str] = []
"""Temporary folders that a library removes when Python ends, unless the process ends at once."""
received: int | None = None
"""The first signal that came. An exception raised since then may be what became of it."""


def status_of(number: int) -> int:
    return _STATUS + number


def message_of(number: int) -> str:
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


@contextlib.contextmanager
def ending_by_signals() -> Iterator[None]:
    """Handles these signals inside the context, except those that are already handled or ignored
    (``nohup``). After one came they stay handled: a second one ends the process while Python ends it.
    """
    global received, is_handled
    if is_handled:
        yield
        return
    received, kept, is_handled = None, {}, True
    if threading.current_thread() is threading.main_thread():
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is None:
                continue
            before = signal.getsignal(number)
            if before is signal.SIG_DFL or before is signal.default_int_handler:
                kept[number] = signal.signal(number, _handler(os.getpid()))
    try:
        yield
    finally:
        if received is None:
            for number, handler in kept.items():
                signal.signal(number, handler)
            is_handled = False


def remove_leftovers() -> None:
    """Removes the temporary files of this process; imports nothing, since little time may be left."""
    leftovers = sys.modules.get("tmconvert.output.leftovers")
    if leftovers is not None:
        leftovers.remove_all()


def _handler(process: int) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        global received
        if os.getpid() != process:  # a fork of the user's, which none of this concerns
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        if received is not None or _is_importing(frame):
            _end_at_once(number)
        received = number
        raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)

    return handle


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False


def _end_at_once(number: int) -> NoReturn:
    remove_leftovers()
    if folders:
        import shutil  # as the library did

        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        if not is_worker:
            os.write(2, f"\n{message_of(number)}\n".encode())
    os._exit(status_of(number))
