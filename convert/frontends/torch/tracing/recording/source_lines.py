"""Finds the user's line: the innermost stack frame outside of torch and tmconvert."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import torch

import tmconvert
from tmconvert.errors.source import Source

OURS = f"{Path(tmconvert.__file__).parent}{os.sep}"  # the folder of all of our code
# functions that make calls for lines of the user's that do not run, and how to tell which line it is
STAND_INS: dict[CodeType, Callable[[FrameType], Source]] = {}
_MODULE_RUN = str(Path(__file__).parent.with_name("module_run.py"))
_TORCH = str(Path(torch.__file__).parent)
# methods that dataclasses and named tuples make of text
_GENERATED = {"__init__", "__new__", "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"}
# packages whose code is not the user's
NOT_USERS = {"torch", "tmconvert", *sys.stdlib_module_names} - {"__main__"}


def user_place() -> Source:
    """Returns file and line of the call that is being recorded."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename, code.co_name, frame.f_globals):
            return Source(_file(code.co_filename), frame.f_lineno)
        if code.co_filename.startswith(OURS):  # most are torch's
            if is_bottom(frame):
                break
            if code in STAND_INS:
                place = STAND_INS[code](frame)
                if place.file:
                    return place
        frame = frame.f_back
    return Source("")


def calling_place(depth: int) -> Source:
    """Returns file and line of the code ``depth`` frames above the caller; empty if it is not the user's."""
    frame = sys._getframe(depth + 1)
    code = frame.f_code
    is_own = is_users(code.co_filename, code.co_name, frame.f_globals)
    return Source(_file(code.co_filename), frame.f_lineno) if is_own else Source("")


def is_assertion() -> bool:
    """Whether the call is inside of a torch assertion that the user called."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename, code.co_name, frame.f_globals):
            return False
        if code.co_name.startswith(("_assert", "_check")) and code.co_filename.startswith(_TORCH):
            return True
        frame = frame.f_back
    return False


def is_bottom(frame: FrameType) -> bool:
    """Whether the run began in this frame; frames outside of it are not part of the model."""
    return frame.f_code.co_name == "_run" and frame.f_code.co_filename == _MODULE_RUN


def is_users(file: str, function: str = "", names: Mapping[str, object] | None = None) -> bool:
    """Whether a line in ``function`` of this file is the user's; ``names`` are its globals.

    Code without a file has a name such as ``<stdin>``, ``<string>`` (``python -c``), ``<ipython-input-1>`` or
    ``<eval_with_key>.0`` (a GraphModule). Built-in modules of Python, and methods that Python and torch
    generate, such as ``__init__`` of a dataclass, have such names, too.
    """
    if not file.startswith("<"):
        return _is_users_file(file)
    if file.startswith("<frozen ") or (file == "<string>" and function in _GENERATED):
        return False
    return str((names or {}).get("__name__", "")).partition(".")[0] not in NOT_USERS


def _file(name: str) -> str:
    """Returns the name of a file; for generated code (``<eval_with_key>.3 from FILE``) without counters."""
    return name.partition(">")[0] + ">" if name.startswith("<") else name


@cache
def _is_users_file(file: str) -> bool:
    return not file.startswith((OURS, _TORCH)) and file != copy.__file__
