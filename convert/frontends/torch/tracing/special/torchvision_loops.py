"""Records functions of torchvision that loop over data-dependent counts of boxes as one call each.

``batched_nms`` reads the number of boxes and loops over their classes; masks and keypoints are resized box by
box, each to its own size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.frontends.torch.names import Name
from tmconvert.ir.types import AnyCallable

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder


# The bodies that the functions get: ``_recorded`` is found among the names of torchvision's own module.
def _batched_nms(boxes: object, scores: object, idxs: object, iou_threshold: float) -> Any:
    return _recorded["batched_nms"](boxes, scores, idxs, iou_threshold)  # type: ignore[name-defined]  # noqa: F821


def _paste_masks(masks: object, boxes: object, img_shape: object, padding: int = 1) -> Any:
    return _recorded["paste_masks_in_image"](masks, boxes, img_shape, padding)  # type: ignore[name-defined]  # noqa: F821


def _keypoints(maps: object, rois: object) -> Any:
    return _recorded["heatmaps_to_keypoints"](maps, rois)  # type: ignore[name-defined]  # noqa: F821


# by module and name: the new body, and what computes it while nothing is recorded, if not the old body
BOXES, HEADS = "torchvision.ops.boxes", "torchvision.models.detection.roi_heads"
FUNCTIONS: dict[tuple[str, str], tuple[Callable[..., Any], str]] = {
    (BOXES, "batched_nms"): (_batched_nms, "_batched_nms_vanilla"),  # whose result is that, without ties
    (HEADS, "paste_masks_in_image"): (_paste_masks, ""),
    (HEADS, "heatmaps_to_keypoints"): (_keypoints, ""),
}


@contextmanager
def box_functions(recorder: Recorder) -> Iterator[None]:
    """Records these functions as single calls inside the context, for any number of boxes."""
    with ExitStack() as stack:
        for (home, name), (body, other) in FUNCTIONS.items():
            module: Any = sys.modules.get(home)
            if module is not None:
                stack.enter_context(_recorded_as(recorder, module, name, body, other))
        yield


@contextmanager
def _recorded_as(recorder: Recorder, module: Any, name: str, body: AnyCallable, other: str) -> Iterator[None]:
    """Replaces the code of a function, as users may hold a reference; its globals stay."""
    function, called = getattr(module, name), Name(f"{module.__name__}.{name}", False)
    code, names = function.__code__, vars(module)
    compute = names[other] if other else FunctionType(code, names, name, function.__defaults__)

    def recorded(*args: object) -> Any:
        if recorder.is_busy:
            return compute(*args)
        with torch._C.DisableTorchFunction():
            return recorder.record(called, compute, args, {})

    names.setdefault("_recorded", {})[name] = recorded
    function.__code__ = body.__code__
    try:
        yield
    finally:
        function.__code__ = code
        names["_recorded"].pop(name)
        if not names["_recorded"]:
            del names["_recorded"]
