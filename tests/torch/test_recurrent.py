"""Recurrent layers and cells; modules that are traced through: checkpoints, parametrizations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import fusion, parametrizations, parametrize
from torch.utils import checkpoint

from tmconvert.errors import UnsupportedError

from .harness import check

SEQUENCES = torch.randn(5, 2, 4)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"num_layers": 2, "bidirectional": True, "dropout": 0.5},
    {"batch_first": True, "bias": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_layers(kind: Any, options: dict[str, Any]) -> None:
    module = kind(4, 3, **options).eval()
    check(module, SEQUENCES)
    check(module, SEQUENCES[0])


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_first_states_and_other_forms() -> None:
    lstm, gru, states = nn.LSTM(4, 3), nn.GRU(4, 3), torch.randn(1, 2, 3)
    check(lambda x, h: (lstm(x, (h, h * 2)), gru(x, h)), SEQUENCES, states)
    check(nn.RNN(4, 3, nonlinearity="relu"), SEQUENCES)
    check(nn.LSTM(4, 5, 2, proj_size=3, bidirectional=True), SEQUENCES)
    check(nn.LSTM(4, 5, proj_size=3, batch_first=True), SEQUENCES)


def test_dropout_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="at random"):
        check(nn.LSTM(4, 3, 2, dropout=0.5), SEQUENCES)
    check(nn.LSTM(4, 3, 2), SEQUENCES)  # nothing to drop


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(kind: Any) -> None:
    cell, x, h = kind(4, 3), SEQUENCES[0], torch.randn(2, 3)
    check(cell, x)
    check(cell, x[0])
    check(kind(4, 3, bias=False), x)
    check(lambda x, h: cell(x, (h, h) if kind is nn.LSTMCell else h), x, h)


class Symmetric(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.triu() + weight.triu(1).transpose(-1, -2)


def test_parametrizations() -> None:
    symmetric = nn.Linear(4, 4)
    parametrize.register_parametrization(symmetric, "weight", Symmetric())
    check(symmetric, SEQUENCES)
    check(parametrizations.weight_norm(nn.Conv1d(2, 3, 2)), SEQUENCES)
    check(parametrizations.spectral_norm(nn.Linear(4, 3)).eval(), SEQUENCES)
    check(parametrizations.orthogonal(nn.Linear(4, 4)).eval(), SEQUENCES)
    check(nn.utils.spectral_norm(nn.Linear(4, 3)).eval(), SEQUENCES)
    fused = fusion.fuse_conv_bn_eval(nn.Conv1d(2, 6, 3).eval(), nn.BatchNorm1d(6).eval())
    check(fused, SEQUENCES)


@pytest.mark.filterwarnings("ignore")
def test_checkpoints() -> None:
    part = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    check(lambda x: checkpoint.checkpoint(part, x, use_reentrant=False), SEQUENCES)
    check(lambda x: checkpoint.checkpoint(part, x, use_reentrant=True), SEQUENCES)
    check(lambda x: checkpoint.checkpoint_sequential(part, 2, x, use_reentrant=False), SEQUENCES)
