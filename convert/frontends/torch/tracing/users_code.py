"""Code of the user that runs while a model is opened: what it raises is shown with the line."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ....errors import LoadError, TmconvertError, UnsupportedError
from ....source import Source
from .borrowed import Borrowed, same_randomness
from .places import is_users


@contextmanager
def users_code(what: str) -> Iterator[None]:
    """Turns what ``what`` raises, also SystemExit, into LoadError TM1023."""
    try:
        yield
    except (TmconvertError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise LoadError("TM1023", f"{what} raises {shown(error)}", **_where(error)) from error


def raise_users_own(
    module: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    traced: Exception | SystemExit,
) -> None:
    """Raises UnsupportedError TM2014 if the module fails untraced, too; tracing it raised ``traced``."""
    borrowed = Borrowed()
    with torch.no_grad(), same_randomness():
        if isinstance(module, torch.nn.Module):
            borrowed.add_module(module)
            for buffer in module.buffers():
                borrowed.about_to_write(buffer)
        try:
            module(*args, **kwargs)
        except (Exception, SystemExit) as error:
            where = _where(traced if shown(traced) == shown(error) else error)
            raise UnsupportedError(
                "TM2014", f"the model fails with the example inputs: {shown(error)}", **where
            ) from error
        finally:
            borrowed.give_back()


def shown(error: BaseException) -> str:
    """The exception as the last line of a traceback has it."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]


def _where(error: BaseException) -> dict[str, Any]:
    """Keyword arguments of our errors: the user's line that raised it, and its text."""
    file, line = "", None
    if isinstance(error, SyntaxError) and error.filename:
        file, line = error.filename, error.lineno
    else:
        for frame, number in traceback.walk_tb(error.__traceback__):
            code = frame.f_code
            if is_users(code.co_filename, code.co_name, frame.f_globals):
                file, line = code.co_filename, number
    if not file or line is None:
        return {}
    return {"source": Source(file, line), "excerpt": linecache.getline(file, line).strip()}
