"""The user's line: the innermost frame that is neither torch's nor ours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import torch

from ....source import Source

_OURS = str(Path(__file__).parents[3])  # all of tmconvert
# functions that make calls for lines of the user's that do not run, and how to tell which line it is
STAND_INS: dict[CodeType, Callable[[FrameType], Source]] = {}
_TRACER = str(Path(__file__).with_name("tracer.py"))
_TORCH = str(Path(torch.__file__).parent)


def user_place() -> Source:
    """File and line of the call that is being recorded."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename):
            return Source(code.co_filename, frame.f_lineno)
        if code.co_filename.startswith(_OURS):  # most are torch's
            if _is_bottom(frame):
                break
            if code in STAND_INS:
                return STAND_INS[code](frame)
        frame = frame.f_back
    return Source("")


def is_assertion() -> bool:
    """Whether the user called an assertion of torch's, and not this call itself."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        code = frame.f_code
        if code.co_name.startswith(("_assert", "_check")) and code.co_filename.startswith(_TORCH):
            return True
        frame = frame.f_back
    return False


def _is_bottom(frame: FrameType) -> bool:
    """Whether the run began here: who asked for it is no part of the model."""
    return frame.f_code.co_name == "_run" and frame.f_code.co_filename == _TRACER


@cache
def is_users(file: str) -> bool:
    return not file.startswith((_OURS, _TORCH, "<"))
