"""What detectors are made of: boxes that suppress each other, sizes that the data tells, parts of images."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import check

torchvision: Any = None
with_torchvision = pytest.mark.skipif(find_spec("torchvision") is None, reason="needs torchvision")


@pytest.fixture(autouse=True, scope="module")
def imported_torchvision() -> None:
    """Imports torchvision for the tests that run; collecting all others should not take seconds for it."""
    global torchvision
    if find_spec("torchvision") is None:
        return
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    try:
        from torchvision_ops import declare
    finally:
        del sys.path[0]
    declare()
    import torchvision


def boxes(count: int, seed: int = 0, size: float = 40) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand(count, 2, generator=generator) * 100
    return torch.cat([corners, corners + 1 + torch.rand(count, 2, generator=generator) * size], 1)


def scores(count: int, seed: int = 0, steps: int = 1000) -> torch.Tensor:
    """Random scores, with ties where ``steps`` is small."""
    generator = torch.Generator().manual_seed(seed + 1)
    return torch.randint(0, steps, (count,), generator=generator) / steps


def classes(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 3, (count,), generator=torch.Generator().manual_seed(seed + 2))


# ---- what Python makes of sizes that the data tells


def few(x: torch.Tensor) -> torch.Tensor:
    kept = x[x > 0.5]
    return kept.topk(min(4, kept.size(0)))[0]


def few_of_places(x: torch.Tensor) -> torch.Tensor:
    places = torch.where(x > 0.5)[0]
    return places.to(x.dtype).topk(min(len(places), 4))[0]


def padded(x: torch.Tensor) -> torch.Tensor:
    kept = x[x > 0.5]
    return torch.cat([kept, torch.zeros(len(x) - len(kept))])


def rows(x: torch.Tensor) -> torch.Tensor:
    kept = x[x > 0.5]
    return torch.zeros(len(kept), 3) + kept[:, None]


OFTEN, SELDOM = torch.linspace(0, 1, 12), torch.linspace(0, 0.6, 12)


@pytest.mark.parametrize("function", [few, few_of_places, padded, rows])
@pytest.mark.parametrize("order", [1, -1])
def test_sizes_of_the_data_in_builtins(function: Callable[..., Any], order: int) -> None:
    """The smaller of two is so in the file, whichever it was in the example."""
    examples = (OFTEN, SELDOM)[::order]
    check(function, examples[0], second=[examples[1]], opsets=(11, 12, 17))


def test_names_are_put_back() -> None:
    before = dict(globals())
    tmconvert.trace(few, OFTEN)
    with pytest.raises(UnsupportedError):
        tmconvert.trace(lambda x: few(x) * round(x.sum().item()), OFTEN)
    assert globals() == before
    assert min(3, 2) == 2


# ---- torchvision's operators


EXAMPLES = [(30, 1000), (30, 3), (1, 10)]  # number of boxes, steps of scores


@with_torchvision
@pytest.mark.parametrize(("count", "steps"), EXAMPLES)
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_nms(count: int, steps: int, threshold: float) -> None:
    check(
        lambda b, s: torch.ops.torchvision.nms(b, s, threshold),
        *(boxes(count), scores(count, steps=steps)),
        second=[boxes(count, 5), scores(count, 5, steps)],
    )


def named(b: Any, s: Any, i: Any) -> Any:
    return torchvision.ops.batched_nms(b, s, i, 0.3)


def of_kept(b: Any, s: Any, i: Any) -> Any:
    good = torch.where(s > 0.3)[0]
    b, s, i = b[good], s[good], i[good]
    big = torchvision.ops.remove_small_boxes(b, 8.0)
    b, s, i = b[big], s[big], i[big]
    kept = torchvision.ops.boxes.batched_nms(b, s, idxs=i, iou_threshold=0.3)[:6]
    return b[kept], s[kept], i[kept]


@with_torchvision
@pytest.mark.parametrize("function", [named, of_kept])
def test_batched_nms(function: Callable[..., Any]) -> None:
    first, second = ([boxes(40, n), scores(40, n), classes(40, n)] for n in (0, 7))
    check(function, *first, second=second)
    check(function, *first, second=[second[0], scores(40, 7, 2) * 0.8, second[2]])


@with_torchvision
def test_batched_nms_of_many_boxes() -> None:
    """Where torchvision goes through the classes one by one."""
    first, second = ([boxes(1100, n), scores(1100, n), classes(1100, n)] for n in (0, 7))
    check(of_kept, *first, second=second)


@with_torchvision
def test_no_boxes_are_left() -> None:
    first = [boxes(12), scores(12), classes(12)]
    check(of_kept, *first, second=[boxes(12), torch.zeros(12), classes(12)])


@with_torchvision
def test_the_function_is_put_back() -> None:
    before = torchvision.ops.batched_nms
    tmconvert.trace(named, boxes(5), scores(5), classes(5))
    assert torchvision.ops.batched_nms is torchvision.ops.boxes.batched_nms is before


@with_torchvision
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: torchvision.ops.box_iou(a, b),
        lambda a, b: torchvision.ops.generalized_box_iou(a, b),
        lambda a, b: torchvision.ops.box_area(a) + b[:, 0],
        lambda a, b: torchvision.ops.clip_boxes_to_image(a, (50, 60)) + b,
        lambda a, b: torchvision.ops.box_iou(a[a[:, 0] > 30], b[b[:, 1] > 200]),
        lambda a, b: torchvision.ops.box_convert(a[b[:, 0] > 50], "xyxy", "cxcywh"),
    ],
)
def test_boxes(function: Callable[..., Any]) -> None:
    check(function, boxes(9), boxes(9, 3), second=[boxes(9, 4), boxes(9, 5)])


@with_torchvision
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("samples", [-1, 2])
def test_roi_align_of_boxes_that_the_data_tells(aligned: bool, samples: int) -> None:
    def function(x: torch.Tensor, b: torch.Tensor) -> Any:
        return torchvision.ops.roi_align(x, [b[b[:, 0] > 30]], (2, 3), 0.05, samples, aligned)

    image = torch.rand(1, 2, 12, 14)
    check(function, image, boxes(8), second=[image.flip(2), boxes(8, 3)], opsets=(16, 17))


# ---- masks and keypoints of what is found


def some(x: torch.Tensor, good: torch.Tensor) -> torch.Tensor:
    return x[torch.where(good > 0.5)[0]]


def of_image(count: int, seed: int, whole: bool = False) -> torch.Tensor:
    """Boxes within 60 by 50 pixels, some at its edges, one without an area."""
    found = boxes(count, seed, 50).clamp(max=torch.tensor([60.0, 50.0, 60.0, 50.0]))
    found[0] = torch.tensor([7.25, 9.5, 7.25, 9.5])
    found[1] = torch.tensor([0.0, 0.0, 60.0, 50.0])
    return found.round() if whole else found


@pytest.mark.slow
@with_torchvision
@pytest.mark.parametrize("padding", [1, 0, 2])
def test_masks_in_an_image(padding: int) -> None:
    from torchvision.models.detection.roi_heads import paste_masks_in_image

    def function(masks: torch.Tensor, found: torch.Tensor, good: torch.Tensor) -> Any:
        return paste_masks_in_image(some(masks, good), some(found, good), (50, 60), padding)

    first, second = (
        [torch.rand(6, 1, 7, 9), of_image(6, seed), torch.tensor([1.0, 1, 0, seed, 1, 1])] for seed in (0, 1)
    )
    check(function, *first, second=second, opsets=(11, 17, 20), tflite=True)
    check(function, *first, second=[*second[:2], torch.zeros(6)])
    check(lambda masks, found: paste_masks_in_image(masks, found, (50, 60)), *first[:2], second=second[:2])


@pytest.mark.slow
@with_torchvision
def test_keypoints_in_boxes() -> None:
    from torchvision.models.detection.roi_heads import heatmaps_to_keypoints

    def function(maps: torch.Tensor, found: torch.Tensor, good: torch.Tensor) -> Any:
        return heatmaps_to_keypoints(some(maps, good), some(found, good))

    first, second = (
        [torch.randn(5, 3, 8, 6), of_image(5, seed), torch.tensor([1.0, 1, 0, seed, 1])] for seed in (0, 1)
    )
    check(function, *first, second=second, opsets=(11, 17, 20), tflite=True)
    check(function, *first, second=[*second[:2], torch.zeros(5)])
    check(heatmaps_to_keypoints, *first[:2], second=second[:2])


@with_torchvision
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [2, -1])
def test_regions_at_the_edge(ratio: int, aligned: bool) -> None:
    """Samples beyond the image count as zeros, those less than one element before it as its first."""
    x, y = torch.rand(2, 2, 3, 8, 9, generator=torch.Generator().manual_seed(0))
    rois = torch.tensor([[0, 0, 29.3, 20, 32], [1, -3, -6, 2, 4], [0, 30, 30, 44, 40], [1, 5, 5, 5, 5.5]])
    other = torch.tensor([[1.0, -9, 1, 50, 9], [0, 2, 3, 11, 31], [1, 35, 1, 36, 2], [0, 0, 0, 36, 32]])

    def function(x: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
        return torch.ops.torchvision.roi_align(x, rois, 0.25, 3, 2, ratio, aligned)

    check(function, x, rois, second=[y, other], opsets=(16, 20))
