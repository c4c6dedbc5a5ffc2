"""Convolutions, products, pooling and norms."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tmconvert.errors import UnsupportedError

from .harness import check

LINE, IMAGE, VOLUME = torch.randn(2, 4, 9), torch.randn(2, 4, 9, 8), torch.randn(2, 4, 5, 6, 7)
BY_AXES = {1: LINE, 2: IMAGE, 3: VOLUME}
ONES = {axes: torch.randn(6, 4, *[3] * axes) for axes in BY_AXES}


class To(nn.Module):
    """A transposed convolution that is told the size of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 6, 3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(x, output_size=(18, 16))


CONVOLUTIONS = {
    "same, odd": lambda x: F.conv2d(x, ONES[2], padding="same", dilation=2),
    "grouped": lambda x: F.conv2d(x, ONES[2][:, :2], None, (2, 1), (1, 0), groups=2),
    "valid": nn.Conv2d(4, 6, (3, 2), padding="valid"),
    "transposed": nn.ConvTranspose2d(4, 6, (3, 2), 2, 1, 1, groups=2, dilation=2),
    "transposed to a size": To(),
    "generic": lambda x: torch.convolution(x, ONES[2], None, [1], [1], [1], False, [0], 1),
    "private": lambda x: torch._convolution(
        x, ONES[2], None, [1], [1], [1], False, [0], 1, False, False, True, True
    ),
    "ATen": lambda x: torch.ops.aten.convolution.default(
        x, ONES[2].transpose(0, 1), None, [2, 2], [1, 1], [1, 1], True, [1, 1], 1
    ),
    "by keyword": lambda x: F.conv2d(input=x, weight=ONES[2], stride=[2]),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    check(CONVOLUTIONS[name], IMAGE)


@pytest.mark.filterwarnings("ignore:Using padding=.same.")
def test_same_padding_with_one_more_behind() -> None:
    weight = torch.randn(6, 4, 4)
    check(lambda x: F.conv1d(x, weight, padding="same"), LINE)
    cube = weight[:, :, :2, None, None]
    check(lambda x: F.conv3d(x, cube, padding="same"), VOLUME)


@pytest.mark.parametrize("axes", BY_AXES)
def test_convolutions_of_each_rank_unbatched(axes: int) -> None:
    conv, back = (getattr(nn, f"{name}{axes}d")(4, 6, 3, 2) for name in ("Conv", "ConvTranspose"))
    check(lambda x: (conv(x), back(x)), BY_AXES[axes])
    check(lambda x: (conv(x), back(x)), BY_AXES[axes][0])


def test_products() -> None:
    row, matrix = torch.randn(8), torch.randn(3, 8)
    check(nn.Linear(8, 3), IMAGE)
    check(nn.Linear(8, 3, bias=False), torch.randn(8))
    check(lambda x: F.linear(x, row), IMAGE)
    check(lambda x: F.linear(input=x, weight=matrix, bias=torch.tensor(1.0)), IMAGE)
    check(nn.Bilinear(4, 5, 6), torch.randn(2, 3, 4), torch.randn(2, 3, 5))
    weight, bias = torch.randn(3, 9, 5), torch.randn(5)
    check(lambda x: torch.conv_tbc(x, weight, bias, 1), torch.randn(7, 2, 9))


POOLS = {
    "MaxPool": [
        ((3, 2, 1), {"ceil_mode": True}),
        ((2, 1), {"dilation": 2}),
        ((3, 2, 1), {"return_indices": True}),
    ],
    "AvgPool": [((3, 2, 1), {"ceil_mode": True, "count_include_pad": False}), ((3,), {})],
    "AdaptiveAvgPool": [((3,), {}), ((1,), {})],
    "AdaptiveMaxPool": [((2,), {}), ((3,), {"return_indices": True})],
    "LPPool": [((2, 2), {}), ((1, 3, 2), {})],
}


@pytest.mark.parametrize("axes", BY_AXES)
@pytest.mark.parametrize("kind", POOLS)
def test_pools(kind: str, axes: int) -> None:
    for args, kwargs in POOLS[kind]:
        check(getattr(nn, f"{kind}{axes}d")(*args, **kwargs), BY_AXES[axes])
    args, kwargs = POOLS[kind][0]
    check(getattr(nn, f"{kind}{axes}d")(*args, **kwargs), BY_AXES[axes][0])


@pytest.mark.parametrize("axes", BY_AXES)
def test_pools_by_other_names(axes: int) -> None:
    x = BY_AXES[axes]
    check(
        lambda x: (
            getattr(F, f"max_pool{axes}d")(x, kernel_size=2, stride=None),
            getattr(torch, f"max_pool{axes}d")(x, [2] * axes, []),
            getattr(F, f"adaptive_max_pool{axes}d_with_indices")(x, 2)[1],
        ),
        x,
    )


@pytest.mark.parametrize("axes", BY_AXES)
def test_unpooling(axes: int) -> None:
    pool = getattr(nn, f"MaxPool{axes}d")(2, return_indices=True)
    back = getattr(nn, f"MaxUnpool{axes}d")(2)
    x = torch.randn(2, 3, *[6] * axes)
    check(lambda x: back(*pool(x)), x)
    check(lambda x: back(*pool(x)), x[0])
    check(lambda x: back(*pool(x), output_size=x.shape), BY_AXES[axes])


def test_pools_with_modes_of_their_own() -> None:
    check(nn.AvgPool2d(3, divisor_override=5), IMAGE)
    check(nn.AdaptiveAvgPool2d((None, 3)), IMAGE)
    check(lambda x: F.max_pool2d(x, 2), torch.arange(72).reshape(1, 1, 9, 8))
    check(lambda x: torch.ops.aten.max_pool2d_with_indices.default(x, [2, 2]), IMAGE)
    check(lambda x: torch.adaptive_max_pool1d(x, 3), LINE)


def _trained(norm: nn.Module) -> nn.Module:
    for tensor in (*norm.parameters(), *norm.buffers()):
        if tensor.is_floating_point():
            tensor.data.uniform_(0.5, 2)
    return norm.eval()


NORMS = {
    "batch": (_trained(nn.BatchNorm2d(4)), IMAGE),
    "batch, training": (nn.BatchNorm2d(4, momentum=None), IMAGE),
    "batch of vectors": (_trained(nn.BatchNorm1d(4)), torch.randn(6, 4)),
    "batch without statistics": (nn.BatchNorm2d(4, track_running_stats=False).eval(), IMAGE),
    "batch without parameters": (_trained(nn.BatchNorm3d(4, affine=False)), VOLUME),
    "native batch": (
        lambda x: torch.native_batch_norm(x, None, None, LINE[0, :, 0], LINE[0, :, 1] ** 2, False, 0.1, 1e-5)[
            0
        ],
        IMAGE,
    ),
    "batch, none given": (
        lambda x: torch.ops.aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5)[0],
        IMAGE,
    ),
    "group": (_trained(nn.GroupNorm(2, 4)), IMAGE),
    "group of vectors": (nn.GroupNorm(2, 4), torch.randn(3, 4)),
    "group without parameters": (nn.GroupNorm(4, 4, affine=False), VOLUME),
    "native group": (lambda x: torch.native_group_norm(x, None, None, 2, 4, 72, 2, 1e-5), IMAGE),
    "layer": (_trained(nn.LayerNorm(8)), IMAGE),
    "layer of two axes": (nn.LayerNorm((9, 8), bias=False), IMAGE),
    "layer of all": (nn.LayerNorm(8, elementwise_affine=False), torch.randn(8)),
    "native layer": (lambda x: torch.native_layer_norm(x, [9, 8], None, None, 1e-5), IMAGE),
    "root mean square": (_trained(nn.RMSNorm(8)), IMAGE),
    "root mean square of two axes": (nn.RMSNorm((9, 8), eps=1e-3), IMAGE),
    "local response, odd": (nn.LocalResponseNorm(3, 0.1), IMAGE),
    "local response, even": (nn.LocalResponseNorm(2, 0.1), LINE),
    "local response of volumes": (nn.LocalResponseNorm(4, 0.1, k=2.0), VOLUME),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name: str) -> None:
    check(*NORMS[name])


@pytest.mark.parametrize("axes", BY_AXES)
def test_instance_norms(axes: int) -> None:
    make = getattr(nn, f"InstanceNorm{axes}d")
    check(make(4), BY_AXES[axes])
    check(_trained(make(4, affine=True, track_running_stats=True)), BY_AXES[axes])


def test_training_leaves_the_statistics_alone() -> None:
    norm = nn.BatchNorm2d(4)
    check(norm, IMAGE)
    assert norm.num_batches_tracked == 2  # the harness has run it twice, to compare


def test_fractional_pooling_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="random windows"):
        check(nn.FractionalMaxPool2d(2, output_size=3), IMAGE)
