"""Complex numbers that come and go inside a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import check, run_onnx

PAIRS = torch.tensor([[[1.5, -2.0], [0.25, 3.0]], [[-1.0, 0.5], [2.0, -0.75]], [[0.0, 1.0], [-3.0, 0.5]]])


def of_complex(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function between torch.view_as_complex and torch.view_as_real."""

    def real(*pairs: torch.Tensor) -> Any:
        results = function(*map(torch.view_as_complex, pairs))
        results = results if isinstance(results, (tuple, list)) else (results,)
        return [torch.view_as_real(y.resolve_conj()) if y.is_complex() else y for y in results]

    return real


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x + y, x - y, x * y, x / y, x.conj() * y, -x),
        lambda x, y: (x + 1, 2 - x, x * 2, x / 2, 1 / x, x * 1j, x + (1 - 2j), 3 * x, x.sub(y, alpha=2)),
        lambda x, y: (x * y.real, x + y.imag, y.real - x, x / y.abs(), y.real / x, y.real * 1j),
        lambda x, y: (x.abs(), x.angle(), x.real, x.imag, abs(x), torch.real(x), x.conj(), x.sgn()),
        lambda x, y: (x.exp(), x.log(), x.sqrt(), x**2, x**3, x.square(), x.reciprocal(), x.pow(-1)),
        lambda x, y: (torch.sin(x), torch.cos(x), 2**x, x ** (0.5)),
        lambda x, y: (x == x, x != y, x.isnan(), torch.isfinite(x), x.isinf()),
        lambda x, y: (x.sum(), x.sum(0), x.mean(1, keepdim=True), x.sum(dtype=torch.complex128)),
        lambda x, y: (x @ y.T, torch.mm(x, y.transpose(0, 1)), torch.matmul(x.unsqueeze(0), y.mT)),
        lambda x, y: (x.reshape(-1), x.t(), x.unsqueeze(1), torch.cat([x, y], 1), torch.stack([x, y.real])),
        lambda x, y: (
            x[1],
            x[:, 0],
            x[..., None],
            x.flatten(),
            x.permute(1, 0),
            x.expand(2, 3, 2),
            x.clone(),
        ),
        lambda x, y: (torch.where(x.real > 0, x, y), torch.where(x.real > 0, x, 0.0), x.chunk(2, 1)[0]),
        lambda x, y: (x.to(torch.complex128), x.real.to(torch.complex64), x.to("cpu"), x.real.type_as(x)),
        lambda x, y: (torch.polar(x.abs(), y.angle()), torch.complex(x.real, y.imag), x.real.cfloat()),
        lambda x, y: (
            *(F.pad(x, (1, 2), value=2.0), torch.constant_pad_nd(x, (0, 1), 1 - 2j)),
            *(pad_sequence([x, y[:1]], batch_first=True), pad_sequence([x, y[:1]], padding_value=3.0)),
            *(x.index_fill(0, torch.tensor([1]), 2.0), x.scatter(1, torch.tensor([[1], [0], [1]]), y)),
            *(x.scatter(1, torch.tensor([[1], [0], [1]]), 0.5), x.new_full((2,), 3.0) * x[0, 0]),
            *(x.masked_scatter(x.real > 0, y), x.put(torch.tensor([1]), y[0, :1]), x.take(torch.tensor([3]))),
            *(torch.block_diag(x, y), torch.diagflat(x[0]), *torch.meshgrid(x[0], y[0], indexing="ij")),
        ),
        lambda x, y: (
            *(F.linear(x, y, y[:, 0]), F.linear(x, y.real.cfloat(), y[:, 0]), torch.vdot(x[0], y[0])),
            *(F.conv1d(x[None], y.mT[:, :, None], y[0]), torch.linalg.multi_dot([x, y.mT, x])),
            *(x.var(1), x.std(0), x.any(1), (x * 0).any()),
        ),
        lambda x, y: (
            *(torch.addmm(x[:2], x[:2], y[:2], beta=2, alpha=1j), x[:2].addmm(y[1:], y[:2])),
            torch.addmv(y[0], x[:2], y[1], alpha=2),
            *(torch.addr(x[:2], x[:2, 0], y[0]), torch.baddbmm(x[None], x[None], y[None, :2], beta=1j)),
            *(torch.addbmm(x, x.expand(2, 3, 2), y[:2].expand(2, 2, 2)), torch.lerp(x, y, 0.25)),
            *(torch.lerp(x, y, x.real.cfloat()), torch.addcmul(x, y, y, value=2), x.addcdiv(y, y + 1)),
        ),
        lambda x, y: (x.tanh(), x.tan(), x.sinh(), x.cosh(), x.sigmoid(), F.silu(x), (x * 60).tanh()),
        lambda x, y: (x.log2(), x.log10(), x.log1p(), x.exp2(), x.rsqrt(), y.sigmoid()),
        lambda x, y: (x.cumprod(0), y.cumprod(-1), x.prod(), y.prod(1, keepdim=True)),
        lambda x, y: (x.logcumsumexp(0).exp(), (y * 9).logcumsumexp(1).exp()),
    ],
)
def test_functions(function: Callable[..., Any]) -> None:
    x = torch.cat([PAIRS + 0.25])
    check(of_complex(function), x, x.flip(0) + 0.5)


def test_writes() -> None:
    def written(x: torch.Tensor) -> Any:
        y = torch.view_as_complex(x).clone()
        y.mul_(2)
        y[0] = y[1] * 1j
        y.real.add_(1)
        y.imag[1:] = 5
        torch.view_as_real(y)[2] += 1
        return torch.view_as_real(y), x

    check(written, PAIRS)


def frequencies(length: int, half: int) -> torch.Tensor:
    turns = torch.outer(torch.arange(length).float(), 1.0 / 10 ** (torch.arange(half).float() / half))
    return torch.polar(torch.ones_like(turns), turns)


class Rotary(torch.nn.Module):
    """Rotary embeddings as Llama's first code has them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("freqs_cis", frequencies(8, 4), persistent=False)
        self.unregistered = frequencies(8, 4)

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> Any:
        pairs = [torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) for x in (q, k)]
        table = self.freqs_cis[: q.shape[1]]
        table = table.view(1, q.shape[1], 1, 4)
        other = self.unregistered[: q.shape[1]].unsqueeze(0).unsqueeze(2)
        turned = [
            torch.view_as_real(pairs[0] * table).flatten(3),
            torch.view_as_real(pairs[1] * other).flatten(3),
        ]
        return [x.type_as(q) for x in turned]


def test_rotary_embeddings() -> None:
    check(Rotary(), torch.randn(2, 5, 3, 8), torch.randn(2, 5, 3, 8))


@pytest.mark.slow
def test_rotary_embeddings_of_any_length(tmp_path: Path) -> None:
    module, x = Rotary(), torch.randn(2, 5, 3, 8)
    sizes = {0: "batch", 1: "length"}
    tmconvert.trace(module, x, x + 1, dynamic_shapes={"q": sizes, "k": sizes}).save(tmp_path / "model.tm")
    tmconvert.to_onnx(tmconvert.load(tmp_path / "model.tm"), tmp_path / "model.onnx", opset=17)
    other = torch.randn(3, 7, 3, 8)
    results = run_onnx(tmp_path / "model.onnx", [other.numpy(), -other.numpy()])
    for result, expected in zip(results, module(other, -other), strict=True):
        np.testing.assert_allclose(result, expected.numpy(), atol=1e-5)


def test_memory_of_real_numbers_is_not_addressed_as_complex_numbers() -> None:
    with pytest.raises(UnsupportedError, match=r"TM2012.*float32 as complex64"):
        check(of_complex(lambda x: x.as_strided((2, 2), (1, 2))), PAIRS)


def test_complex_inputs_and_outputs_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"TM2020.*takes a complex tensor"):
        check(lambda x: x.abs(), torch.view_as_complex(PAIRS))
    with pytest.raises(UnsupportedError, match="returns a complex tensor"):
        check(torch.view_as_complex, PAIRS)


def test_what_is_not_known_of_complex_numbers_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"Tensor\.asin of complex tensors"):
        check(of_complex(lambda x: x.asin()), PAIRS)
