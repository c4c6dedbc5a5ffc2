"""Limits the cost of Python's garbage collector during conversions."""

from __future__ import annotations

import contextlib
import gc
import sys
import time
from collections.abc import Iterator

NEVER = 2**31 - 1  # collections of the middle generation before a full one
MOST = 0.04  # of the time of conversions, for full collections after them
MANY = 50_000  # young objects: graphs are large, and make little garbage
OFTEN = 100  # collections of young objects before one of the middle generation


def collect_less_often() -> None:
    """Makes this process, which is for one command, collect young objects less often.

    The modules that it loads have 60,000 objects, none of them garbage, which else are searched many times.
    What its conversion has made is not collected at the end: the system frees the memory.
    """
    global _ends_after_conversion
    _ends_after_conversion = True
    gc.set_threshold(MANY, *gc.get_threshold()[1:])


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """Disables the collector while modules load, and counts their objects as old from then on."""
    was_enabled, loaded = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        # frozen objects of somebody else would become old, too; they are counted one by one
        if len(sys.modules) > loaded and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def full_collections_wait() -> Iterator[None]:
    """Postpones full collections, and collects young objects less often, until the conversion is done.

    With PyTorch and torchvision loaded a full collection takes 0.2 s, longer than the rest of a small
    conversion. One is run when conversions have taken enough of the processor in total that its cost is
    small. What the conversion itself has made is collected at its end, in milliseconds: graphs refer to
    themselves, and hold the weights of the model.
    """
    young, middle, old = gc.get_threshold()
    if old == NEVER:  # another thread's conversion has seen to it
        yield
        return
    gc.set_threshold(young and max(young, MANY), max(middle, OFTEN), NEVER)
    before = time.thread_time()
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)
        if young and gc.isenabled() and not _ends_after_conversion:
            gc.collect(1)
            _collect_now_and_then(time.thread_time() - before)


def skip_last_collection() -> None:
    """Makes this process end without a search of all objects for garbage, a tenth of a small conversion.

    The system frees the memory of a process that ends.
    """
    gc.freeze()


_ends_after_conversion = False  # whether the process is for one command
_spent = 0.0  # seconds on the processor, of conversions since the last full collection
_cost = 0.2  # the same of that collection


def _collect_now_and_then(seconds: float) -> None:
    global _spent, _cost
    _spent += seconds
    if _spent * MOST < _cost:
        return
    before = time.thread_time()
    gc.collect()
    _spent, _cost = 0.0, time.thread_time() - before
