"""Runs the user's code while a model is loaded; exceptions are reported with the user's line."""

from __future__ import annotations

import importlib
import inspect
import linecache
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from tmconvert.errors import LoadError, TmconvertError, UnsupportedError, UsageError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.source_lines import is_users
from tmconvert.frontends.torch.tracing.recording.state_guard import StateGuard, same_randomness

_IMPORTING = str(Path(importlib.__file__).parent)
# what others wrote: a line of the user's that calls it tells more
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
# exceptions whose cause is the installation, by a part of their text, and what helps
_INSTALLATION = {
    "operator torchvision::nms does not exist": (
        "torchvision is another build than torch: install both from the same index, "
        "pip install --force-reinstall torch torchvision --index-url INDEX"
    )
}


@contextmanager
def users_code(what: str) -> Iterator[None]:
    """Converts exceptions of ``what``, also SystemExit, to LoadError TM1023."""
    try:
        yield
    except (TmconvertError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        notes = [("help", help) for text, help in _INSTALLATION.items() if text in str(error)]
        raise LoadError("TM1023", f"{what} raises {shown(error)}", notes=notes, **_where(error)) from error


def raise_users_own(
    module: Callable[..., Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    traced: Exception | SystemExit,
) -> None:
    """Raises UnsupportedError TM2014 if the module also fails untraced; tracing it raised ``traced``."""
    guard = StateGuard()
    with torch.no_grad(), same_randomness():
        if isinstance(module, torch.nn.Module):
            guard.add_modules(list(module.modules()))
            for buffer in module.buffers():
                guard.about_to_write(buffer)
        try:
            module(*args, **kwargs)
        except (Exception, SystemExit) as error:
            raise failure(error, traced if shown(traced) == shown(error) else error) from error
        finally:
            guard.restore()


def failure(error: BaseException, seen: BaseException) -> UnsupportedError:
    """Returns UnsupportedError TM2014 for a model that raises ``error``, with the user's line in ``seen``."""
    return UnsupportedError(
        "TM2014", f"the model fails with the example inputs: {shown(error)}", **_where(seen)
    )


def check_arguments(module: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    """Raises UsageError TM6008 for example inputs that the model's ``forward`` cannot be called with."""
    signature = _signature(module)
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
        return
    except TypeError as error:
        reason = str(error)
    try:
        bound = set(signature.bind_partial(*args, **kwargs).arguments)
    except TypeError:
        bound = set(signature.parameters)  # there are too many
    lacking = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.name not in bound
        and parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    add = " ".join(f"--input '{name}=float32[1,3]'" for name in lacking)
    calls = ", ".join(f"{name!r}: {name}" for name in lacking)
    help = f"add {add} (example_kwargs={{{calls}}}), with the types and shapes of your model" if add else ""
    count = len(args) + len(kwargs)
    named = f"; by name: {', '.join(kwargs)}" if kwargs else ""
    raise UsageError(
        "TM6008",
        f"the example inputs do not fit the model: {reason}",
        notes=[
            ("it has", signature_of(module)),
            ("given", f"{count} input{'s' * (count != 1)}{named}"),
            *([("help", help)] if help else []),
        ],
    )


def signature_of(module: object) -> str:
    """Returns the signature as text, ``forward(x, mask=None)``; empty where it is unknown."""
    signature = _signature(module)
    if signature is None:
        return ""
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    plain = signature.replace(parameters=parameters, return_annotation=signature.empty)
    name = "forward" if isinstance(module, torch.nn.Module) else getattr(module, "__name__", "the function")
    return f"{name}{plain}"


def _signature(module: Any) -> inspect.Signature | None:
    if isinstance(module, torch.jit.ScriptModule):  # its signature is (*args, **kwargs), or one of C++
        return None
    try:
        return inspect.signature(module.forward if isinstance(module, torch.nn.Module) else module)
    except (TypeError, ValueError, AttributeError):
        return None


def shown(error: BaseException) -> str:
    """Formats the exception like the last line of a traceback."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]


def _where(error: BaseException) -> dict[str, Any]:
    """Keyword arguments for our errors: the user's line that raised the exception, and its text."""
    file, line = "", None
    if isinstance(error, SyntaxError) and error.filename:
        file, line = error.filename, error.lineno
    else:
        found = [
            (frame.f_code.co_filename, number)
            for frame, number in traceback.walk_tb(error.__traceback__)
            if is_users(frame.f_code.co_filename, frame.f_code.co_name, frame.f_globals)
            and not frame.f_code.co_filename.startswith(_IMPORTING)
        ]
        own = [place for place in found if not place[0].startswith(_INSTALLED)]
        if found:
            file, line = (own or found)[-1]
    if not file or line is None:
        return {}
    return {"source": Source(file, line), "excerpt": linecache.getline(file, line).strip()}
