"""The models of ``public_reports.py``: small ones after public reports, named ``repository#number``.

Those of one expression are rows of ``public_reports.models``: the arguments of ``report``. A graph of ONNX is
in the text format of the package onnx.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rows import sections
from torch import nn

# open sizes: of the example, and of the second input
SIZES = {"b": (2, 3), "n": (6, 9), "t": (8, 13), "h": (12, 17), "w": (10, 15), "o": (1, 4)}
Size = int | str


@dataclass(frozen=True)
class Arg:
    """An input: floats from a normal distribution, integers below ``below``, or bools."""

    shape: tuple[Size, ...]
    dtype: torch.dtype = torch.float32
    below: int = 0

    def draw(self, which: int, generator: torch.Generator) -> torch.Tensor:
        shape = [SIZES[size][which] if isinstance(size, str) else size for size in self.shape]
        if self.dtype == torch.bool:
            return torch.rand(shape, generator=generator) > 0.4
        if self.below:
            return torch.randint(self.below, shape, generator=generator, dtype=self.dtype)
        return torch.randn(shape, generator=generator).to(self.dtype)

    @property
    def open(self) -> dict[int, str]:
        return {axis: size for axis, size in enumerate(self.shape) if isinstance(size, str)}


def f(*shape: Size) -> Arg:
    return Arg(shape)


def i(*shape: Size, below: int = 5, dtype: torch.dtype = torch.int64) -> Arg:
    return Arg(shape, dtype, below)


def flags(*shape: Size) -> Arg:
    return Arg(shape, torch.bool)


@dataclass(frozen=True)
class Report:
    """A model; ``refused`` has the codes with which targets, or the tracer ("all"), refuse it."""

    name: str
    model: Callable[..., Any] | str
    args: tuple[Arg, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    opset: int = 17
    tolerance: float = 1e-4
    options: Mapping[str, Any] = field(default_factory=dict)


REPORTS: list[Report] = []
ROWS = Path(__file__).with_name("public_reports.models")


def report(name: str, model: Callable[..., Any] | str, *args: Arg, **options: Any) -> None:
    REPORTS.append(Report(name, model, args, **options))


def on(name: str, *args: Arg, **options: Any) -> Callable[[Any], Any]:
    """Adds the decorated function, or an instance of the decorated class, as the model of a report."""

    def add(model: Any) -> Any:
        torch.manual_seed(len(REPORTS))
        report(name, model().eval() if isinstance(model, type) else model, *args, **options)
        return model

    return add


# ---- indices and masks


@on("pytorch/pytorch#159295", f("n"))
def mask_and_index(x):
    result = torch.zeros(x.shape[0], 2)
    mask = x > 0
    result[mask, 0] = x[mask]
    return result


@on("pytorch/pytorch#92540", f(6, 4), flags(6), f(4))
def mask_of_fewer_axes(x, mask, value):
    x = x.clone()
    x[mask] = value
    return x


@on("pytorch/pytorch#126856", f(1, 3, 3))
def mask_of_ones(x):
    x = x.clone()
    x[torch.ones((1, 3, 3), dtype=torch.bool)] = 0
    return x


@on("pytorch/pytorch#29647", f(4, 5), f(5))
def rows_in_a_loop(x, row):
    out = torch.zeros_like(x)
    for k in range(x.shape[0]):
        out[k] = row * k + x[k]
    return out


@on("pangsu0613/CLOCs#57", f(1, 3, 1, 6), i(6, 2, below=4))
def columns_written(x, at):
    out = torch.full((3, 4, 4), -9.0)
    out[:, at[:, 0], at[:, 1]] = x[0, :, 0]
    return out.amax(1)


@on("pytorch/pytorch#74801", f("b", 6, 4, 5))
@torch.jit.script
def scripted_write(x: torch.Tensor):
    y = x.clone()
    y[:, 2:4] = torch.exp(y[:, 2:4]) * 8
    return y.reshape(y.shape[0], y.shape[1], -1)


@on("pytorch/pytorch#62936", f("t", "b", 8))
def table_repeated_for_a_batch(x):
    place = torch.arange(x.shape[0])[:, None]
    angle = place * 10000 ** -(torch.arange(0, 8, 2) / 8)
    table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
    return x + table.unsqueeze(1).repeat_interleave(x.size(1), 1)


# ---- shapes and slices


# ---- arithmetic


# ---- images


@on("PINTO0309/onnx2tf#317", f(1, 8, 8), f(1, 8, 8))
def equal_sizes(x, y):
    return (x @ y).transpose(1, 2) @ x


@on("PINTO0309/onnx2tf#382", f(1, 3, 8, 8))
class EqualSizes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8)

    def forward(self, x):
        x = self.second(self.first(x))
        return x.transpose(1, 3) + x.mean(2, keepdim=True)


@on("PINTO0309/onnx2tf#590", f(1, 3, 16, 16))
class Excited(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.narrow, self.wide = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)

    def forward(self, x):
        x = F.hardswish(self.layer(x))
        return x * F.hardsigmoid(self.wide(F.relu(self.narrow(F.adaptive_avg_pool2d(x, 1)))))


@on("microsoft/onnxruntime#11415", f(1, 4, 9, 9))
class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(4, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU6())

    def forward(self, x):
        return self.layers(x)


@on("pytorch/pytorch#166797", f("b", 3, 16, 16))
class Strided(Normed):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.MaxPool2d(3, 2, 1), nn.Flatten()
        )


# ---- sequences


@on("pytorch/pytorch#110557", i("b", "t", below=15))
class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(15, 24)
        layer = nn.TransformerEncoderLayer(24, 4, 24, dropout=0.2, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True)

    def forward(self, x):
        return self.layers(self.table(x))


@on("pytorch/pytorch#94675", f("b", "t", 8), flags("b", "t"))
class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, hidden):
        hidden = hidden & (torch.arange(x.shape[1]) > 0)
        return self.attention(x, x, x, key_padding_mask=hidden)[0]


@on("pytorch/pytorch#89615", f("b", "t", 5))
class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(5, 4, bidirectional=True, batch_first=True)
        self.linear = nn.Linear(8, 3)

    def forward(self, x):
        self.rnn.flatten_parameters()
        return self.linear(self.rnn(x)[0])


@on("pytorch/pytorch#191855", f("b", "t", 5))
class BothWays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.forth, self.back = nn.GRU(5, 4, batch_first=True), nn.GRU(5, 4, batch_first=True)

    def forward(self, x):
        return torch.cat([self.forth(x)[0], self.back(x.flip(1))[0].flip(1)], -1)


@on("pytorch/pytorch#41774", f(3, 6, 5), i(3, below=1))
class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(5, 4, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths + 4, batch_first=True, enforce_sorted=False)
        packed, last = self.rnn(packed)
        return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=6)[0], last


@on("pytorch/pytorch#13110", f("t", "b", 5), f(2, "b", 4))
class Stacked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(5, 4, num_layers=2, nonlinearity="relu")

    def forward(self, x, state):
        return self.rnn(x, state)


for _name, _, _arguments in (row.partition(" | ") for row in sections(ROWS)[""]):
    eval(f"report({_name!r}, {_arguments})")
