"""Calls of TorchScript in a run: the ATen ops of the program are recorded in their place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from ....errors import TmconvertError
from ..names import Name
from .borrowed import said_to_be_exported

if TYPE_CHECKING:
    from .recorder import Recorder

CALLED: tuple[Any, ...] = (
    torch._C.ScriptMethod,
    torch._C.ScriptFunction,
)  # a ScriptModule's forward is a ScriptMethod


@contextmanager
def script_calls(recorder: Recorder) -> Iterator[None]:
    """Lets the recorder see what scripts compute, in this thread."""
    originals = [vars(kind)["__call__"] for kind in CALLED]
    for kind in CALLED:
        kind.__call__ = _seen(recorder, kind.__call__, threading.get_ident())
    try:
        with torch.jit.optimized_execution(False):
            yield
    finally:
        for kind, original in zip(CALLED, originals, strict=True):
            kind.__call__ = original


def _seen(recorder: Recorder, original: Callable[..., Any], thread: int) -> Callable[..., Any]:
    def call(script: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.is_busy or threading.get_ident() != thread:
            return original(script, *args, **kwargs)
        name = Name(f"torch.jit.{script.name}", False)
        try:
            with said_to_be_exported(False):  # else torch takes the Python function that was scripted
                return recorder.traced_through(name, original, (script, *args), kwargs)
        except TmconvertError:
            raise
        except Exception:
            if recorder.failure is not None:  # which TorchScript has put into words of its own
                raise recorder.failure from None
            raise

    return call
