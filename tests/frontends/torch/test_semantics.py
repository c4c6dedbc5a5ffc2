"""What exporters get wrong or refuse: each of these is right on two inputs, at two opsets.

Inputs are chosen such that the easy implementation shows: duplicates in indices, uneven windows, ties, masks
that hide, types that differ, strides that are not contiguous.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .harness import check

OPSETS = (17, 20)
GENERATOR = torch.Generator().manual_seed(0)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def whole(limit: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, limit, shape, generator=GENERATOR)


def same(function: Any, *inputs: torch.Tensor, **options: Any) -> None:
    check(function, *inputs, opsets=OPSETS, **options)


class KeywordOnly(nn.Module):
    def forward(self, *, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return x if mask is None else x.masked_fill(mask, -1.0)


def test_keyword_only_inputs() -> None:
    check(KeywordOnly(), opsets=OPSETS, x=normal(2, 3), mask=torch.tensor([[True, False, True]]))


def writes_through_views(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * 1
    column = y.t()[1:3].select(1, 0)
    row = y[0]
    column += 10
    row.mul_(2)
    y[:, ::2][1:] = row[::2]
    y.diagonal().zero_()
    for part in y.unbind(1)[:2]:
        part.sub_(1)
    return y, column + 1


def test_writes_through_views() -> None:
    same(writes_through_views, normal(3, 5))


@pytest.mark.parametrize("divisor", [1, 3, 7])
def test_average_pooling_by_another_divisor(divisor: int) -> None:
    same(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=divisor), normal(1, 2, 8, 6))


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
def test_lstm_with_projections() -> None:
    same(nn.LSTM(4, 6, 2, proj_size=3, bidirectional=True, batch_first=True), normal(2, 5, 4))


def test_lstm_of_packed_sequences() -> None:
    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 3, bidirectional=True, batch_first=True)

        def forward(self, x: torch.Tensor) -> Any:
            packed = pack_padded_sequence(x, torch.tensor([5, 2, 4]), batch_first=True, enforce_sorted=False)
            output, state = self.lstm(packed)
            return pad_packed_sequence(output, batch_first=True)[0], state

    same(Packed(), normal(3, 5, 4))


@pytest.mark.parametrize("size", [(3, 5), (1, 4), (7, 2), (None, 3)])
@pytest.mark.parametrize("pool", [F.adaptive_avg_pool2d, F.adaptive_max_pool2d])
def test_uneven_adaptive_pooling(pool: Any, size: Any) -> None:
    same(lambda x: pool(x, size), normal(2, 3, 7, 11))


def test_index_put_and_scatter_with_duplicates() -> None:
    index = torch.tensor([1, 3, 1, 1])

    def function(x: torch.Tensor, values: torch.Tensor) -> Any:
        put = x.clone().index_put_((index,), values, accumulate=True)
        place = index[:, None].expand(-1, 3)
        return (
            put,
            x.scatter_add(0, place, values),
            x.scatter_reduce(0, place, values, "prod"),
            x.scatter_reduce(0, place, values, "mean", include_self=False),
            x.scatter_reduce(0, place, values, "amax", include_self=False),
        )

    same(function, normal(5, 3), normal(4, 3))


def test_index_add() -> None:
    index = torch.tensor([0, 2, 0, 0])
    same(lambda x, y: x.index_add(1, index, y, alpha=-2), normal(2, 3), normal(2, 4))
    same(lambda x, y: x.index_add_(0, index, y), whole(9, 3, 2), whole(9, 4, 2))


def test_promotion_of_types() -> None:
    half, scalar = normal(3).half(), torch.tensor(2.5, dtype=torch.float64)
    same(lambda i, h, s: (i + h, h * s, i * s, i / 2, i // 2 + 0.5, i > 1.5), whole(5, 3), half, scalar)
    same(
        lambda b, i: (b + i, b & (i > 1), i * True, -i % 3, torch.cat([b, i])),
        whole(2, 4).bool(),
        whole(7, 4),
    )


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_grouped_queries(causal: bool) -> None:
    same(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=0.3, enable_gqa=True),
        normal(2, 6, 5, 4),
        normal(2, 2, 7, 4),
        normal(2, 2, 7, 4),
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_resizing(mode: str) -> None:
    same(lambda x: F.interpolate(x, size=(5, 3), mode=mode, antialias=True), normal(1, 2, 12, 9))


@pytest.mark.parametrize("shape", [(1, 2, 7), (1, 2, 7, 5), (1, 2, 4, 3, 5)])
def test_nearest_exact_resizing(shape: tuple[int, ...]) -> None:
    same(lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest-exact"), normal(*shape))


def test_rms_norm() -> None:
    norm = nn.RMSNorm((3, 4), elementwise_affine=True)
    nn.init.normal_(norm.weight)
    same(norm, normal(2, 3, 4))
    same(lambda x: F.rms_norm(x, (4,)) * 1e3, normal(2, 4) * 1e-4)


@pytest.mark.parametrize("keepdim", [False, True])
def test_order_statistics(keepdim: bool) -> None:
    x = torch.tensor([[3.0, 1, 2, 1], [0, 5, 5, 4], [2, 2, 2, 7]])
    same(lambda x: torch.kthvalue(x, 3, 1, keepdim).values, x)
    same(lambda x: (x.median(0, keepdim).values, x.median(), x.quantile(0.3, 1, keepdim)), x)


def test_cumulative_maxima_and_products() -> None:
    x = torch.tensor([[1.0, 3, 3, 2], [-1, -2, 0, 0]])
    same(lambda x: (*torch.cummax(x, 1), *torch.cummin(x, -2), x.cumprod(1)), x)
    same(lambda x: x.cumprod(0), whole(5, 4, 2))


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, float("inf")])
def test_distances(p: float) -> None:
    same(lambda x, y: torch.cdist(x, y, p), normal(2, 4, 3), normal(2, 5, 3))


def test_hypotenuse_and_rotation() -> None:
    same(lambda x, y: torch.hypot(x * 1e25, y * 1e25) / 1e25, normal(3, 1), normal(4))
    same(lambda x: (torch.rot90(x, 1, (0, 2)), torch.rot90(x, -3, (2, 1)), x.rot90(2)), normal(2, 3, 4))


def test_take_along_dim_and_count_nonzero() -> None:
    same(
        lambda x, i: torch.take_along_dim(x, i, 1),
        normal(3, 4),
        whole(4, 1, 6),
        second=(normal(3, 4), whole(4, 1, 6)),
    )
    same(lambda x, i: torch.take_along_dim(x, i), normal(3, 4), whole(12, 5))
    x = torch.tensor([[0.0, 1, float("nan")], [0, 0, -2]])
    same(lambda x: (x.count_nonzero(), x.count_nonzero(1), torch.count_nonzero(x > 0, (0, 1))), x)


def test_unfold_and_fold() -> None:
    options = {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (1, 2), "stride": (1, 2)}
    same(lambda x: F.fold(F.unfold(x, **options), (6, 7), **options), normal(2, 3, 6, 7))
    same(lambda x: x.unfold(1, 3, 2).unfold(0, 2, 1), normal(4, 8))


def test_rotary_embeddings_on_complex_numbers() -> None:
    angles = torch.outer(torch.arange(5.0), 1.0 / 100 ** (torch.arange(0, 8, 2) / 8))
    turns = torch.polar(torch.ones_like(angles), angles)

    def function(x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns[None, :, None]).flatten(3).type_as(x)

    same(function, normal(2, 5, 3, 8))


def test_short_time_fourier_transform() -> None:
    window = torch.hann_window(16)

    def function(x: torch.Tensor) -> Any:
        spectrum = torch.stft(x, 16, 5, 16, window, center=True, pad_mode="reflect", return_complex=True)
        return spectrum.abs() ** 2, torch.view_as_real(spectrum)

    same(function, normal(2, 60))


def test_routing_to_experts() -> None:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(6, 4)
            self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
            mask = F.one_hot(chosen, 4).permute(2, 1, 0)
            result = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                place, token = torch.where(mask[number])
                update = expert(x[token]) * weights[token, place, None]
                result.index_add_(0, token, update)
            return result

    same(Experts(), normal(7, 6))


def test_channels_last_inputs() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten()).to(memory_format=torch.channels_last)
    same(module, normal(2, 3, 6, 5).contiguous(memory_format=torch.channels_last))
    same(lambda x: x.contiguous(memory_format=torch.channels_last).reshape(2, -1), normal(2, 3, 4, 5))
