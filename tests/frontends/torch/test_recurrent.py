"""Recurrent layers and cells; modules that are traced through: checkpoints, parametrizations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import fusion, parametrizations, parametrize, rnn
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
    check(module, SEQUENCES, tflite=True)
    check(module, SEQUENCES[0])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_layers_of_many_steps_in_tflite(kind: Any, options: dict[str, Any]) -> None:
    """Beyond 64 steps a WHILE does them, several a turn; 75 and 78 are none of its multiples."""
    module = kind(4, 3, **options).eval()
    check(module, torch.randn(75, 78, 4), opsets=(), tflite=True)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_first_states_and_other_forms() -> None:
    lstm, gru, states = nn.LSTM(4, 3), nn.GRU(4, 3), torch.randn(1, 2, 3)
    check(lambda x, h: (lstm(x, (h, h * 2)), gru(x, h)), SEQUENCES, states, tflite=True)
    check(nn.RNN(4, 3, nonlinearity="relu"), SEQUENCES, tflite=True)
    check(nn.LSTM(4, 5, 2, proj_size=3, bidirectional=True), SEQUENCES, tflite=True)
    check(nn.LSTM(4, 5, proj_size=3, batch_first=True), SEQUENCES, tflite=True)


def test_dropout_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="applies dropout"):
        check(nn.LSTM(4, 3, 2, dropout=0.5), SEQUENCES)
    check(nn.LSTM(4, 3, 2), SEQUENCES)  # nothing to drop


# ---- packed sequences

BATCH, OTHER = torch.randn(3, 6, 4), torch.randn(3, 6, 4)
LENGTHS, OTHERS = torch.tensor([2, 5, 4]), torch.tensor([3, 1, 2])


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}], ids=str)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_lengths_are_inputs_or_known(kind: Any, options: dict[str, Any]) -> None:
    module = kind(4, 3, batch_first=True, **options)

    def run(x: torch.Tensor, lengths: Any, total: int | None = None, value: float = 0.0) -> Any:
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        packed, states = module(packed)
        return *rnn.pad_packed_sequence(packed, True, value, total), states

    check(run, BATCH, LENGTHS, second=[OTHER, OTHERS])
    check(lambda x, n: run(x, n, 8, -1.0), BATCH, LENGTHS, second=[OTHER, OTHERS])
    check(lambda x: (run(x, [6, 2, 4]), run(x, LENGTHS), run(x, OTHERS, 6)), BATCH, tflite=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_other_packed_sequences() -> None:
    lstm, projected, state = (
        nn.LSTM(4, 3),
        nn.LSTM(4, 5, proj_size=2, bidirectional=True),
        torch.randn(1, 3, 3),
    )
    steps, others = BATCH.transpose(0, 1), OTHER.transpose(0, 1)

    def packed(x: torch.Tensor, lengths: torch.Tensor) -> Any:
        return rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)

    def padded(sequence: Any) -> Any:
        return rnn.pad_packed_sequence(sequence)

    check(lambda x, n: lstm(packed(x, n))[1][0][-1], steps, LENGTHS, second=[others, OTHERS])
    check(lambda x, n: padded(projected(packed(x, n))[0]), steps, LENGTHS, second=[others, OTHERS])
    check(
        lambda x, n, h: padded(lstm(packed(x, n), (h, h))[0]),
        steps,
        LENGTHS,
        state,
        second=[others, OTHERS, state],
    )
    check(
        lambda x, n: padded(packed(x, n)._replace(data=packed(x, n).data * 2)),
        steps,
        LENGTHS,
        second=[others, OTHERS],
    )
    check(
        lambda a, b: padded(lstm(rnn.pack_sequence([a, b], enforce_sorted=False))[0]),
        torch.randn(3, 4),
        torch.randn(5, 4),
    )
    sorted_lengths = [torch.tensor([6, 3, 2]), torch.tensor([4, 4, 1])]
    check(
        lambda x, n: padded(lstm(rnn.pack_padded_sequence(x, n))[0]),
        steps,
        sorted_lengths[0],
        second=[others, sorted_lengths[1]],
    )


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
