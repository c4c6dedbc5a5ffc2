"""Convolution and pooling of integers, and paddings that no window meets."""

import pytest
import torch
import torch.nn.functional as F

from .harness import check


def numbers(*shape: int) -> torch.Tensor:
    return torch.randint(-9, 9, shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_and_means(axes: int) -> None:
    x, weight, bias = numbers(2, 4, *[6, 5, 7][:axes]), numbers(6, 2, *[3, 2, 1][:axes]), numbers(6)
    conv, back, pool = (getattr(F, f"{name}{axes}d") for name in ("conv", "conv_transpose", "avg_pool"))
    check(lambda x: conv(x, weight, bias, stride=2, padding=1, dilation=2, groups=2), x, opsets=(9, 17))
    kernels, few = weight[:4], bias[:2]
    check(lambda x: back(x, kernels, None, 3, 1, 1, groups=2), x)
    check(lambda x: back(x[0], kernels, few, 2, 0, 1, dilation=2), x)
    check(lambda x: (pool(x, 3, 2, 1, True), pool(x, 2, count_include_pad=False, padding=1)), x)


def test_output_padding_beyond_the_last_window() -> None:
    weight, bias = torch.randn(4, 2, 2, 3), torch.randn(2)
    check(
        lambda x: F.conv_transpose2d(x, weight, bias, (1, 3), (0, 1), (2, 3), 1, 4), torch.randn(1, 4, 3, 5)
    )


def test_attributes_wrap_around() -> None:
    """Numbers that the element type does not have become some that it has, without their rests."""
    x, places = torch.tensor([1, 200, 3], dtype=torch.uint8), torch.tensor([0, 0])
    check(lambda x: (F.threshold(x, 1, -1), F.threshold(x, -1, 7), F.threshold(x, 2.5, 7.5)), x)
    check(lambda x: (F.hardtanh(x, 0.5, 2.5), F.hardtanh(x, -0.5, 9)), x)
    check(lambda x: (x.index_add(0, places, x[1:], alpha=-3), x.index_add(0, places, x[1:], alpha=1.5)), x)
    check(lambda x: (x.index_fill(0, places, -1), x.masked_fill(x > 1, -1)), x)
    flags = x > 2
    for alpha in (False, 0, 0.5, 256):
        check(lambda flags, alpha=alpha: flags.index_add(0, places, flags[1:], alpha=alpha), flags)
