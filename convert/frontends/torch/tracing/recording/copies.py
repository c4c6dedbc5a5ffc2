"""Copies of tensors by Python's protocols, and tensors that take the storage of another one."""

from __future__ import annotations

import linecache
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder


def deep_copy(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``copy.deepcopy`` of a tensor, which is recorded as a clone."""
    tensor, memo = args
    if id(tensor) in memo or not _varies(recorder, tensor):
        return recorder.run(function, *args, **kwargs)
    copied = recorder.called(torch.Tensor.clone, (tensor,), {})
    memo[id(tensor)] = copied
    return copied


def storage_of(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the storage of a tensor, whose length tells its sizes."""
    recorder.shape_of(args[0])  # notes that they are read
    storage = recorder.run(function, *args, **kwargs)
    if _varies(recorder, args[0]):
        untyped = storage._untyped_storage if isinstance(storage, torch.TypedStorage) else storage
        recorder.storages[untyped._cdata] = storage
    return storage


@contextmanager
def refused_swaps(recorder: Recorder) -> Iterator[None]:
    """Raises UnsupportedError TM2011 where ``torch.utils.swap_tensors`` exchanges traced tensors."""
    plain, thread = torch.utils.swap_tensors, threading.get_ident()

    def swapped(t1: torch.Tensor, t2: torch.Tensor) -> None:
        if threading.get_ident() == thread and not recorder.is_busy:
            raise _not_followed(
                "torch.utils.swap_tensors exchanges the contents of two tensors, which cannot be followed",
                "assign the tensors to each other's names, or use copy_()",
            )
        plain(t1, t2)  # type: ignore[no-untyped-call]

    torch.utils.swap_tensors = swapped
    try:
        yield
    finally:
        torch.utils.swap_tensors = plain


def _varies(recorder: Recorder, tensor: torch.Tensor) -> bool:
    value = recorder.value_of(tensor)
    return bool(value.depends or value.is_open)


def takes_storage() -> UnsupportedError:
    """Returns the error for a tensor that was given the storage of one that depends on an input."""
    return _not_followed(
        "the module reads the data of a tensor that depends on its input: set_(), copy.copy() or pickle "
        "takes its storage",
        "use clone() for a copy, and copy_() for new values",
    )


def _not_followed(message: str, help: str) -> UnsupportedError:
    place = user_place()
    excerpt = linecache.getline(place.file, place.line or 0).strip()
    return UnsupportedError("TM2011", message, source=place, excerpt=excerpt, notes=[("help", help)])
