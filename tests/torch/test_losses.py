"""Losses, which are traced through unless they look into their data."""

from __future__ import annotations

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
