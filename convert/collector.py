"""Python's garbage collector beside a large program."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

NEVER = 2**31 - 1  # collections of the middle generation before a full one
MANY = 20_000  # young objects: graphs are large, and make little garbage


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """While modules load, which make many objects and no garbage. They count as old from then on."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # frozen ones of somebody else would become old, too
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def full_collections_wait() -> Iterator[None]:
    """Collections of all that there is wait until it is done; young objects are collected less often.

    With PyTorch and torchvision loaded a full collection takes 0.2 s, most of a small conversion, which makes
    enough objects to start one. What has piled up until then is counted on, so the next one comes soon after.
    """
    young, middle, old = gc.get_threshold()
    if old == NEVER:  # another thread's conversion has seen to it
        yield
        return
    gc.set_threshold(young and max(young, MANY), middle, NEVER)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)
