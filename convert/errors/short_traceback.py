"""Shortens tracebacks of public functions to the caller's frames."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tmconvert.errors import InternalError, Refusal, TmconvertError

P = ParamSpec("P")
R = TypeVar("R")


def one_frame(function: Callable[P, R]) -> Callable[P, R]:
    """Removes the frames of tmconvert from the traceback of an error that has its own message and location.

    Tracebacks of internal errors stay whole, and all do with TMCONVERT_DEBUG=1. An exception of the user's
    code stays the cause.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TmconvertError as error:
            if isinstance(error, InternalError) or os.environ.get("TMCONVERT_DEBUG", "") not in ("", "0"):
                raise
            cause = error.__cause__
            is_ours = isinstance(cause, (TmconvertError, Refusal))
            raise error.with_traceback(None) from (None if is_ours else cause)

    return called
