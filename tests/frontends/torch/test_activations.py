"""Activations, softmax, dropout; embeddings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import check

IMAGE, WHOLE = torch.randn(2, 4, 5, 4) * 3, torch.arange(-3, 9)
IN_PLACE = [
    "relu",
    "relu6",
    "elu",
    "selu",
    "celu",
    "leaky_relu",
    "silu",
    "mish",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
]
OTHERS = [
    "gelu",
    "softplus",
    "softsign",
    "tanhshrink",
    "hardshrink",
    "softshrink",
    "logsigmoid",
    "sigmoid",
    "tanh",
    "glu",
]


@pytest.mark.parametrize("name", [*IN_PLACE, *OTHERS])
def test_activations(name: str) -> None:
    check(getattr(F, name), IMAGE)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name: str) -> None:
    def written(x: torch.Tensor) -> Any:
        y, z = x + 1, x - 1
        function = getattr(F, f"{name}_", None)
        return getattr(F, name)(y, inplace=True), y, function(z) if function else None, z

    check(written, IMAGE)


MODULES = [
    nn.GELU("tanh"),
    nn.ELU(0.5),
    nn.CELU(0.5),
    nn.Softplus(2, 3),
    nn.Threshold(0.1, 20),
    nn.Hardtanh(-2, 3),
    nn.PReLU(),
    nn.PReLU(4),
    nn.RReLU().eval(),
    nn.Softmax2d(),
    nn.Dropout(0.0),
    nn.Dropout2d().eval(),
    nn.AlphaDropout().eval(),
]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_modules(module: nn.Module) -> None:
    check(module, IMAGE)


def test_slopes_for_vectors_and_numbers() -> None:
    check(nn.PReLU(), torch.randn(5))
    check(nn.PReLU(), torch.tensor(-1.0))
    check(nn.PReLU(9), torch.randn(3, 9))


def test_integers() -> None:
    check(lambda x: (F.relu(x), F.relu6(x), F.hardtanh(x, -2, 2), F.threshold(x, 1, -7)), WHOLE)


SOFTMAX: list[Callable[[Any], Any]] = [
    lambda x: (F.softmax(x, 1), x.softmax(-1), torch.softmax(x, dim=0)),
    lambda x: (F.softmax(x, -1, dtype=torch.float64), x.softmax(0, torch.float16)),
    lambda x: (F.log_softmax(x, 1), x.log_softmax(-1), torch.log_softmax(x, dim=0), F.softmin(x, 1)),
    lambda x: (torch._softmax(x, 1, False), torch.special.softmax(x, 0), torch.special.log_softmax(x, 0)),
    lambda x: torch.ops.aten._safe_softmax.default(torch.cat([x, x - float("inf")]), -1),
    lambda x: (torch.dropout(x, 0.5, False), torch.native_dropout(x, 0.5, False)),
]


@pytest.mark.slow
@pytest.mark.parametrize("function", SOFTMAX)
def test_softmax(function: Callable[[Any], Any]) -> None:
    check(function, IMAGE[0, 0], tolerance=1e-3)


def test_softmax_of_numbers_and_integers() -> None:
    check(lambda x: (x.softmax(0), x.log_softmax(-1)), torch.tensor(2.0))
    check(lambda x: F.softmax(x, 0, dtype=torch.float32), WHOLE)


RANDOM: dict[str, Callable[[Any], Any]] = {
    "dropout": nn.Dropout(),
    "dropout3d": nn.Dropout3d(),
    "rrelu": nn.RReLU(),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, dim=-1),
}


@pytest.mark.parametrize("name", RANDOM)
def test_what_is_random_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=name):
        tmconvert.to_onnx(RANDOM[name], tmp_path / "m.onnx", example_inputs=(IMAGE,), training=True)


# ---- embeddings

TABLE, INDICES = torch.randn(6, 4), torch.tensor([[1, 2, 0], [5, 5, 5]])
FLAT, OFFSETS = torch.tensor([1, 2, 0, 5, 5, 3]), torch.tensor([0, 2, 2, 5])
OTHER = [FLAT.flip(0), torch.tensor([0, 1, 3, 6])]


def test_embeddings() -> None:
    check(nn.Embedding(6, 4, padding_idx=0), INDICES)
    check(nn.Embedding(6, 4, max_norm=1.0), INDICES)
    check(nn.Embedding(6, 4, max_norm=1.0, norm_type=1.0), INDICES.int())
    check(lambda i: torch.embedding(TABLE, i, 1), INDICES)
    check(lambda i: F.one_hot(i, 7), INDICES)
    check(lambda x: F.one_hot(INDICES) * x, torch.tensor(2))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str) -> None:
    check(nn.EmbeddingBag(6, 4, mode=mode), INDICES)
    check(nn.EmbeddingBag(6, 4, mode=mode, padding_idx=5), INDICES)
    check(nn.EmbeddingBag(6, 4, mode=mode), FLAT, OFFSETS, second=OTHER)
    bag = nn.EmbeddingBag(6, 4, mode=mode, padding_idx=-1, include_last_offset=True)
    check(bag, FLAT, torch.tensor([0, 2, 2, 6]), second=OTHER)


def test_bags_with_weights() -> None:
    check(
        lambda i, w: F.embedding_bag(i, TABLE, mode="sum", per_sample_weights=w), INDICES, torch.randn(2, 3)
    )
    check(lambda i, o: torch.embedding_bag(TABLE, i, o)[0], FLAT, OFFSETS, second=OTHER)
