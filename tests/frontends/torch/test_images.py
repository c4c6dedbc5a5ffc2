"""Images resized, sampled, cut into windows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from .harness import check

LINE, IMAGE, VOLUME = torch.randn(2, 4, 9), torch.randn(2, 4, 9, 8), torch.randn(2, 4, 5, 6, 7)
SIZES: list[dict[str, Any]] = [
    {"scale_factor": 1.7},
    {"scale_factor": 1.7, "recompute_scale_factor": True},
    {"scale_factor": 0.6},
    {"size": 13},
]
MODES = {
    "linear": LINE,
    "bilinear": IMAGE,
    "bicubic": IMAGE,
    "trilinear": VOLUME,
    **{
        f"{name} of {len(shape)}": x
        for name in ("nearest", "nearest-exact", "area")
        for x in (LINE, IMAGE, VOLUME)
        for shape in [x.shape[2:]]
    },
}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_interpolation(mode: str, size: dict[str, Any]) -> None:
    name = mode.partition(" ")[0]
    check(lambda x: F.interpolate(x, mode=name, **size), MODES[mode])
    if name.endswith(("linear", "cubic")):
        check(lambda x: F.interpolate(x, mode=name, align_corners=True, **size), MODES[mode])
    if name in ("bilinear", "bicubic"):
        check(lambda x: F.interpolate(x, mode=name, antialias=True, **size), IMAGE, opsets=(17, 20))


def test_sizes_of_each_axis() -> None:
    check(nn.Upsample((5, 7), mode="nearest"), IMAGE)
    check(nn.Upsample(scale_factor=(1.7, 2), mode="bilinear"), IMAGE)
    check(lambda x: F.interpolate(x, size=(x.shape[2] * 2, 5)), IMAGE)
    check(lambda x: F.interpolate(x, scale_factor=2), torch.randint(0, 255, (1, 3, 4, 4)).to(torch.uint8))


def test_atens_forms() -> None:
    check(
        lambda x: (
            torch.ops.aten.upsample_bilinear2d.default(x, [5, 7], False, 1.3, None),
            torch.ops.aten.upsample_nearest2d.vec(x, None, [1.7, 2.0]),
            torch.ops.aten.upsample_bicubic2d.vec(x, [4, 5], True, None),
            torch._C._nn.upsample_nearest2d(x, [4, 9]),
        ),
        IMAGE,
    )


GRID = torch.rand(2, 5, 6, 2) * 2.4 - 1.2


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grids(mode: str, border: str, corners: bool) -> None:
    check(lambda x, g: F.grid_sample(x, g, mode, border, corners), IMAGE, GRID, opsets=(17, 20))


@pytest.mark.filterwarnings("ignore:Default grid_sample")
def test_grids_by_other_names() -> None:
    check(lambda x, g: F.grid_sample(x, g), VOLUME, torch.rand(2, 3, 4, 5, 3) * 2.4 - 1.2)
    check(lambda x, g: torch.grid_sampler(x, g, 0, 1, False), IMAGE, GRID)
    check(
        lambda t: (F.affine_grid(t, (2, 3, 4, 5), align_corners=True), F.affine_grid(t, [2, 3, 1, 5])),
        torch.randn(2, 2, 3),
    )
    check(lambda t: F.affine_grid(t, torch.Size((2, 3, 4, 5, 6))), torch.randn(2, 3, 4))


def test_pixels_and_windows() -> None:
    check(nn.PixelShuffle(2), IMAGE)
    check(nn.PixelShuffle(2), IMAGE[0])
    check(nn.PixelUnshuffle(2), IMAGE[:, :, :8])
    check(nn.ChannelShuffle(2), LINE)
    check(nn.Unfold((3, 2), 2, 1, 2), IMAGE)
    check(nn.Unfold(3), IMAGE[0])
    check(nn.Fold((4, 5), (2, 3)), torch.randn(2, 18, 9))
    check(nn.Fold((4, 5), 2, stride=2, padding=1), torch.randn(4, 9))
    check(lambda x: torch.ops.aten.im2col.default(x, [2, 2], [1, 1], [0, 0], [1, 1]), IMAGE)
