"""Losses, which are traced through unless they look into their data."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from .harness import check

X, Y = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([1, 0, 3])


def test_of_two_tensors() -> None:
    target = torch.sigmoid(X.flip(0))
    check(
        lambda x, y: (F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.smooth_l1_loss(x, y)), X, target
    )
    check(lambda x, y: (F.huber_loss(x, y, delta=0.5), F.kl_div(x, y, reduction="batchmean")), X, target)
    check(lambda x, y: F.binary_cross_entropy(torch.sigmoid(x), y), X, target)
    check(lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"), X, target)
    check(
        lambda x, y: (F.cosine_embedding_loss(x, y, y[:, 0].sign()), F.soft_margin_loss(x, y.round())),
        X,
        target,
    )


def test_of_classes() -> None:
    weight = torch.tensor([0.1, 1.0, 2.0, 0.5])
    check(lambda x, y: (F.cross_entropy(x, y), F.cross_entropy(x, y, weight, label_smoothing=0.1)), X, Y)
    check(
        lambda x, y: (
            F.nll_loss(x.log_softmax(1), y, ignore_index=0),
            F.cross_entropy(x, y, reduction="none"),
        ),
        X,
        Y,
    )
    check(lambda x: F.cross_entropy(x, x.softmax(1)), X)


def test_of_a_normal_distribution() -> None:
    check(
        lambda x, v: (F.gaussian_nll_loss(x, x * 2, v), F.gaussian_nll_loss(x, x + 1, v[:, 0], full=True)),
        X,
        X.abs(),
    )
    check(lambda x: F.gaussian_nll_loss(x, x * 2, 0.5, reduction="none"), X)


@pytest.mark.filterwarnings("ignore:linear_cross_entropy")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_in_chunks(reduction: str) -> None:
    generator = torch.Generator().manual_seed(1)
    matrix, bias = torch.randn(6, 4, generator=generator), torch.randn(6, generator=generator)
    weight = torch.tensor([0.1, 1.0, 2.0, 0.5, 1.0, 3.0])
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)

    def loss(x: torch.Tensor, y: torch.Tensor) -> Any:
        more = {"reduction": reduction, "options": options}
        return (
            F.linear_cross_entropy(x, matrix, y, **more),
            F.linear_cross_entropy(x, matrix, y, linear_bias=bias, weight=weight, ignore_index=3, **more),
            F.linear_cross_entropy(x[0], matrix, y[0], **more),
        )

    check(loss, X, Y)
