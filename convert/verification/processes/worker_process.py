"""The worker process of ``worker.py``: runs files in runtimes that may abort, and returns arrays.

A request is a line of JSON and the bytes of its arrays, on stdin; an answer is one on what stdout was.
Neither is ever unpickled. The process ends with the one that started it, even in the middle of a run.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from tmconvert.errors import TmconvertError
from tmconvert.verification.processes.messages import Message, read_message, send_message


def main() -> None:
    """Answers requests until stdin ends."""
    # What libraries print may not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, requests), daemon=True).start()
    send_message(answers, {"ready": True}, [])
    while True:
        request = requests.get()
        if request.header["do"] in _UNANSWERED:
            _UNANSWERED[request.header["do"]](request)
        else:
            _reply(answers, request)


def _receive(stream: BinaryIO, requests: queue.SimpleQueue[Message]) -> None:
    try:
        while (message := read_message(stream)) is not None:
            requests.put(message)
    except BaseException:  # without a thread that reads, the process would wait forever
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # also out of native code that never returns


def _reply(answers: BinaryIO, request: Message) -> None:
    try:
        send_message(answers, *_answer(request))
    except OSError:  # nobody reads any more
        raise
    except Exception as error:  # runtimes' own are refusals of the file by now: this is code of ours
        send_message(answers, {"error": _defect(error)}, [])


def _defect(error: Exception) -> dict[str, Any]:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename}:{last.lineno}, in {last.name}, in the process of the runtime"
    message = f"{type(error).__name__}: {error}"
    report = "".join(traceback.format_exception(error))
    return {"kind": "defect", "message": message, "notes": [("place", place)], "cause": report}


def _answer(request: Message) -> Message:
    from tmconvert.verification import runtime

    runtime.is_apart = True
    try:
        return _ACTIONS[request.header["do"]](request)
    except TmconvertError as error:
        kind = type(error).__name__
        report = {"kind": kind, "code": error.code, "message": error.message, "notes": error.notes}
        if error.__cause__ is not None:
            report["cause"] = f"{type(error.__cause__).__name__}: {error.__cause__}"
        return Message({"error": report}, [])
    except MemoryError:
        return Message({"error": {"kind": "MemoryError"}}, [])


def _load(request: Message) -> None:
    """Imports the runtime's packages, while the other process still writes the file."""
    with contextlib.suppress(Exception):  # it is reported when a file is run
        _runtime(request).load()


def _forget(request: Message) -> None:
    _runtime(request).forget_here()


def _version(request: Message) -> Message:
    return Message({"version": _runtime(request).version_here}, [])


def _run(request: Message) -> Message:
    header = request.header
    inputs = dict(zip(header["inputs"], request.arrays, strict=True))
    paths = [Path(path) for path in header["paths"]]
    made = _runtime(request).run_here(paths, inputs, header["outputs"], header["shapes"])
    return Message({}, list(made))


def _observe(request: Message) -> Message:
    inputs = dict(zip(request.header["inputs"], request.arrays, strict=True))
    (path,) = request.header["paths"]
    found = _runtime(request).observe_here(Path(path), inputs)
    report = [[name, each.step, each.low, each.high] for name, each in found.items()]
    return Message({"observed": report}, [each.array for each in found.values()])


def _runtime(request: Message) -> Any:
    module, _, name = request.header["runtime"].partition(":")
    return getattr(_imported(module), name)(**request.header["settings"])


def _imported(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError:  # a hook finds it, as for a target of a project that is being developed
        import site

        site.main()
        return import_module(module)


_UNANSWERED: dict[str, Callable[[Message], None]] = {"load": _load, "forget": _forget}
_ACTIONS: dict[str, Callable[[Message], Message]] = {"version": _version, "run": _run, "observe": _observe}
