"""torch.vmap: records the batched ATen ops that functorch produces for a function."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._functorch import apis

from tmconvert.frontends.torch.names import Name
from tmconvert.frontends.torch.tracing.recording.inner_ops import Inside
from tmconvert.frontends.torch.tracing.recording.recorder import Recorder


@contextmanager
def calls_of_vmap(recorder: Recorder) -> Iterator[None]:
    """Makes the recorder see calls of functions that ``torch.vmap`` made, in this thread."""
    thread = threading.get_ident()
    original = apis.vmap_impl

    def batched(*args: Any, **kwargs: Any) -> Any:
        if recorder.is_busy or recorder.is_batched or threading.get_ident() != thread:
            return original(*args, **kwargs)
        recorder.is_batched = True
        try:
            with Inside(recorder, Name("torch.vmap", False)):
                return original(*args, **kwargs)
        finally:
            recorder.is_batched = False

    apis.vmap_impl = batched
    try:
        yield
    finally:
        apis.vmap_impl = original
