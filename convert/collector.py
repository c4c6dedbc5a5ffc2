"""Python's garbage collector beside a large program."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def older_objects_left_out() -> Iterator[None]:
    """What there is already is not looked through for garbage; what is made from here on is.

    With PyTorch and torchvision loaded a full collection takes 0.2 s, most of a conversion, and a conversion
    makes enough objects to start one. Whoever has objects frozen already keeps them so.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
