"""``torchvision.ops.batched_nms`` as one call, where torchvision is there.

It asks how many boxes there are, which only the data tells, and loops over the classes that it finds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from ..names import Name

if TYPE_CHECKING:
    from .recorder import Recorder

MODULE, NAME = "torchvision.ops.boxes", Name("torch.ops.torchvision.batched_nms", False)


def _class_by_class(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    return _batched_nms_vanilla(boxes, scores, idxs, iou_threshold)  # type: ignore[name-defined]  # noqa: F821


@contextmanager
def boxes_class_by_class(recorder: Recorder) -> Iterator[None]:
    """During the run batched_nms goes class by class, however many boxes there are, and is recorded.

    The user may hold the function itself: it gets another body, which finds the names of its own module.
    """
    module: Any = sys.modules.get(MODULE)
    if module is None:
        yield
        return
    loop, body = module._batched_nms_vanilla, module.batched_nms.__code__

    def recorded(*args: Any) -> Any:
        if recorder.is_busy:
            return loop(*args)
        with torch._C.DisableTorchFunction():
            return recorder.record(NAME, loop, args, {})

    module._batched_nms_vanilla, module.batched_nms.__code__ = recorded, _class_by_class.__code__
    try:
        yield
    finally:
        module._batched_nms_vanilla, module.batched_nms.__code__ = loop, body
