"""Copies of tensors by Python's protocols, and tensors that take the storage of another one."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.source_lines import user_place

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recorder import Recorder


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


def _varies(recorder: Recorder, tensor: torch.Tensor) -> bool:
    value = recorder.value_of(tensor)
    return bool(value.depends or value.is_open)


def takes_storage() -> UnsupportedError:
    """Returns the error for a tensor that was given the storage of one that depends on an input."""
    place = user_place()
    return UnsupportedError(
        "TM2011",
        "the module reads the data of a tensor that depends on its input: set_(), copy.copy() or pickle "
        "takes its storage",
        source=place,
        excerpt=linecache.getline(place.file, place.line or 0).strip(),
        notes=[("help", "use clone() for a copy, and copy_() for new values")],
    )
