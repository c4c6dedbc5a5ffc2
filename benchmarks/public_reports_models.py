"""The models of ``public_reports.py``: small ones after public reports, named ``repository#number``.

A graph of ONNX is in the text format of the package onnx.
"""
# ruff: noqa: E501 (graphs are one line each)

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
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

report(
    "pytorch/pytorch#61034",
    lambda index, a, b: a.index_put((index,), b, accumulate=True),
    i(5),
    f(5, 3),
    f(5, 3),
)
report(
    "pytorch/pytorch#125835",
    lambda x, at, y: torch.scatter_add(x, 0, at, y),
    f(10, 4),
    i(10, 4, below=4),
    f(10, 4),
)
report(
    "microsoft/onnxruntime#12119",
    lambda x, rows, columns, values: torch.zeros(x.shape[0], 4, x.shape[2]).scatter_add(
        1, rows[None, :, None].expand(x.shape[0], -1, x.shape[2]), x[:, columns] * values[:, None]
    ),
    f("b", 5, 3),
    i(7, below=4),
    i(7),
    f(7),
)
report(
    "pytorch/pytorch#91357",
    lambda x, at: torch.zeros(6, x.shape[1]).index_add(0, at, x),
    f("n", 4),
    i("n", below=6),
)


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


report("pytorch/pytorch#39067", lambda x: x.repeat_interleave(2, -1), f("b", "n", 4))
report(
    "pytorch/pytorch#128505",
    lambda x, p: torch.repeat_interleave(p[..., None] * x, 2, dim=-1).cos(),
    f(8),
    f(1, "n"),
)


@on("pytorch/pytorch#62936", f("t", "b", 8))
def table_repeated_for_a_batch(x):
    place = torch.arange(x.shape[0])[:, None]
    angle = place * 10000 ** -(torch.arange(0, 8, 2) / 8)
    table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
    return x + table.unsqueeze(1).repeat_interleave(x.size(1), 1)


report(
    "JunnYu/RoFormer_pytorch#8", lambda x: torch.stack([x, x], -1).reshape(*x.shape[:-1], -1), f("b", "t", 4)
)
report("pytorch/pytorch#102948", lambda x: torch.cumprod(x, dim=-1), f(1, 1, "n", 6))
report("pytorch/pytorch nonzero", lambda x: torch.nonzero(x > 0).shape[0] * torch.ones(2), f("n"))
report("pytorch/pytorch argwhere", lambda x: torch.argwhere(x), flags("n", 3))
report("pytorch/pytorch masked_select", lambda x, m: x.masked_select(m) * 2, f("n", 3), flags("n", 3))
report("pytorch/pytorch bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5])), f("n", 3))
report(
    "pytorch/pytorch searchsorted",
    lambda s, x: torch.searchsorted(s.sort().values, x, right=True),
    f(2, 7),
    f(2, "n"),
)
report("pytorch/pytorch tril", lambda x: torch.tril(x, -1) + torch.triu(x, 2), f("b", "n", "n"))
report("pytorch/pytorch topk", lambda x: x.topk(3, largest=False).values, f("b", "t"))
report("pytorch/pytorch unique", lambda x: torch.unique(x).sum(), i("n"))

# ---- shapes and slices

report("pytorch/pytorch#69605", lambda at, x: at + x.shape[0], i("n"), i("b", below=3))
report("pytorch/pytorch#35295", lambda x: x.flip(0) - x, f("n", 3))
report("pytorch/pytorch#42798", lambda x: torch.flip(x, [0, 2]), f(3, "h", "w"))
report("pytorch/pytorch#33272", lambda x: x.flatten(start_dim=-2, end_dim=-1), f("b", 4, 5))
report("pytorch/pytorch#9822", lambda x: x[:, :, :, 1:-1], f(1, 3, "h", "w"))
report("microsoft/onnxruntime#4202", lambda x: x[:, ::2, ::2, :], f(1, "h", "w", 3))
report("pytorch/pytorch#68974", lambda x: x.roll((1, -2), (2, 3)), f(1, 2, "h", "w"))
report(
    "pytorch/pytorch#56355",
    lambda x: x.view(x.shape[0], 2, 4, 2, 4, 3).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 3),
    f("b", 8, 8, 3),
)
report(
    "Unity-Technologies/barracuda-release#282", lambda x: [x.roll(k, -1) for k in range(3)], f(1, 3, "h", "w")
)
report("pytorch/pytorch#69889", lambda x: x.unfold(2, 3, 2), f("b", 2, 9))
report("pytorch/pytorch#69889 frames", lambda x: x.unfold(-1, 4, 2) * torch.hann_window(4), f("b", "t"))
report("pytorch/pytorch slice then slice", lambda x: x[..., :-1, :-1][..., 1:, 1:], f(1, 2, "h", "w"))
report("pytorch/pytorch slices of three axes", lambda x: x[:, :, 1:, 1:][:, :, :-1], f(1, 2, "h", "w"))
report("pytorch/pytorch diff", lambda x: torch.diff(x, dim=-1, prepend=x[..., :1]), f("b", "t"))
report(
    "pytorch/pytorch#45807",
    lambda x, a: x.view(x.shape[0], a.shape[0], x.shape[1] // a.shape[0], -1),
    f("b", 6, 4),
    f(3, 2),
)
report(
    "microsoft/onnxruntime#20951",
    lambda x, s: (torch.cat([s, x + x.shape[1]], 1), s * 2),
    f(2, "n"),
    f(2, "t"),
)
report(
    "pytorch/pytorch windows", lambda x: F.pad(x, (0, -x.shape[3] % 8, 0, -x.shape[2] % 8)), f(1, 2, "h", "w")
)
report(
    "pytorch/pytorch int(n * 0.29)",
    lambda x: x[: int(x.shape[0] * 0.29)],
    f("t", 3),
    refused={"tflite": "TM2030"},
)
report(
    "pytorch/pytorch ceil(n * 1.1)",
    lambda x: x.new_zeros(math.ceil(x.shape[0] * 1.1)),
    f("t", 3),
    refused={"tflite": "TM2030"},
)
report(
    "pytorch/pytorch if n % 2",
    lambda x: F.max_pool1d(F.pad(x, (1, 1)) if x.shape[-1] % 2 else x, 2),
    f(1, 2, "w"),
    refused={"all": "TM2030"},
)
report(
    "pytorch/pytorch loop over n",
    lambda x: sum((x[k] for k in range(x.shape[0])), torch.zeros(3)),
    f("n", 3),
    refused={"all": "TM2031"},
)
report(
    "pytorch/pytorch mask.any()",
    lambda x, m: x * 2 if m.any() else x,
    f("n"),
    flags("n"),
    refused={"all": "TM2011"},
)
report("pytorch/pytorch sizes as output", lambda x: (x * 2, x.shape[0]), f("n", 3), refused={"all": "TM2010"})
report(
    "pytorch/pytorch einsum",
    lambda x, y: torch.einsum("...ij,...jk->...ik", x, y),
    f("b", 2, 3, 4),
    f(2, 4, 5),
)

# ---- arithmetic

report("pytorch/pytorch#44692", lambda x, y: torch.floor_divide(x, y), f("n"), f("n"))
report("pytorch/pytorch#78442", lambda x: (x - 3) // 2, i("n", below=7))
report("pytorch/pytorch#64230", lambda x: torch.remainder(x - 3, 4) + torch.fmod(x - 3, 2), i("n", below=7))
report("pytorch/pytorch#191014", lambda x: (x - 9) >> 1, i("n", below=20, dtype=torch.int32))
report("microsoft/onnxscript#989", lambda x: torch.div(x, 0.3, rounding_mode="floor"), f("n", 4))
report("pytorch/pytorch#49005", lambda x: x.var(1) + x.std((1, 2), unbiased=False)[:, None], f("b", 3, 4))
report("pytorch/pytorch#51024", lambda x: F.threshold(x, 0.1, 20), f("b", 4))
report("pytorch/pytorch#58463", lambda x: F.log_softmax(x.double(), 1).float(), f("b", 4))
report("pytorch/pytorch x + 0.0", lambda x: 1 / (x.relu() * -1 + 0.0), f("n"))
report("pytorch/pytorch atan2", lambda x: torch.atan2(x[0], x[1]), f(2, "n"))
report("pytorch/pytorch where nan", lambda x: torch.nan_to_num(torch.log(x), nan=0.5, neginf=-3.0), f("n"))
report("pytorch/pytorch round", lambda x: torch.round(x * 4) / 2, f("n", 3))
report("pytorch/pytorch half to even", lambda x: (x.round() * 0.5).round(), f("n", 3))
report("pytorch/pytorch logaddexp", lambda x, y: torch.logaddexp(x, y), f("n"), f("n"))
report("pytorch/pytorch clamp of tensors", lambda x, y: x.clamp(min=y), f("n", 3), f(3))
report("pytorch/pytorch bool sums", lambda m: m.sum(1) - m.cumsum(1).amax(1), flags("b", "n"))
report("google-ai-edge/litert-torch#305", lambda x: x.abs() ** 2.5 + x**3, f("n", 3))
report("pytorch/pytorch cdist", lambda x, y: torch.cdist(x, y), f("b", "n", 3), f("b", 5, 3))
report(
    "pytorch/pytorch matrix_exp",
    lambda x: torch.linalg.inv(x @ x.mT + 3 * torch.eye(3)),
    f("b", 3, 3),
    tolerance=1e-3,
)
report(
    "pytorch/pytorch random times zero", lambda x: x + torch.rand_like(x), f("n"), refused={"all": "TM2003"}
)
report(
    "pytorch/pytorch numpy's random numbers",
    lambda x: x + float(np.random.randn()),
    f("n"),
    refused={"all": "TM2022"},
)

# ---- images

report("pytorch/pytorch#31055", lambda x: F.interpolate(x, size=(8, 8), mode="bilinear"), f(1, 3, 4, 4))
report("pytorch/pytorch#183523", lambda x: F.interpolate(x, size=(1, 1), mode="bilinear"), f(1, 3, 5, 4))
report(
    "pytorch/pytorch#27176", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), f(1, 3, "h", "w")
)
report("Tencent/ncnn#6836", lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"), f(1, 3, 7, 7))
report(
    "pytorch/pytorch#22906",
    lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
    f(1, 2, 5, 6),
)
report(
    "pytorch/pytorch#27376",
    lambda x: F.interpolate(x, scale_factor=1.6, recompute_scale_factor=True),
    f(1, 3, 7, 9),
)
report("pytorch/pytorch scale 2.3", lambda x: F.interpolate(x, scale_factor=2.3), f(1, 2, 10, 10))
report(
    "pytorch/pytorch to another's size",
    lambda x, y: F.interpolate(x, y.shape[2:]),
    f(1, 2, 5, 4),
    f(1, 2, "h", "w"),
)
report(
    "pytorch/pytorch antialias",
    lambda x: F.interpolate(x, (5, 4), mode="bilinear", antialias=True),
    f(1, 2, 9, 8),
)
report(
    "NVIDIA/TensorRT#4646",
    lambda x, g: F.grid_sample(x, g, align_corners=False),
    f("b", 1, 1, 16),
    f("b", 1, 9, 2),
    opset=20,
)
report(
    "NVIDIA/TensorRT#4646 of borders",
    lambda x, g: F.grid_sample(x, g, mode="bicubic", padding_mode="border", align_corners=True),
    f(2, 2, 6, 5),
    f(2, 4, 3, 2),
    opset=16,
    tolerance=1e-3,
)
report(
    "pytorch/pytorch ceil mode",
    lambda x: F.avg_pool2d(x, 3, 3, 1, ceil_mode=True, count_include_pad=False),
    f(1, 2, 7, 8),
)
report("pytorch/pytorch adaptive pool", lambda x: F.adaptive_avg_pool2d(x, (3, 5)), f(1, 2, 7, 8))
report(
    "pytorch/pytorch adaptive pool of open sizes", lambda x: F.adaptive_max_pool2d(x, 1), f(1, 2, "h", "w")
)
report("pytorch/pytorch reflection", lambda x: F.pad(x, (2, 1, 3, 0), mode="reflect"), f(1, 2, "h", "w"))
report("pytorch/pytorch circular", lambda x: F.pad(x, (2, 1), mode="circular"), f(1, 2, "t"))
report("pytorch/pytorch pixel shuffle", lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 4), f(1, 16, 4, 6))
report(
    "pytorch/pytorch fold", lambda x: F.fold(F.unfold(x, 3, stride=2), (9, 7), 3, stride=2), f("b", 2, 9, 7)
)


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


report(
    "pytorch/pytorch#113504",
    lambda x: torch.view_as_real(
        x.stft(64, 16, 40, torch.hann_window(40), pad_mode="constant", return_complex=True)
    ),
    f("b", 160),
)
report(
    "pytorch/pytorch#113067",
    lambda x: torch.fft.irfft(torch.fft.rfft(x, 16), 16, norm="backward"),
    f("b", 16),
)
report("pytorch/pytorch#107677", lambda x: torch.fft.fft(torch.view_as_complex(x)).abs(), f("b", 16, 2))
report("pytorch/pytorch#81075", lambda x: torch.fft.rfft2(x, norm="ortho").abs(), f("b", 8, 6))
report(
    "fabio-sim/LightGlue-ONNX#75",
    lambda q, k: F.scaled_dot_product_attention(q, k, k),
    f("b", 2, "t", 4),
    f("b", 2, "n", 4),
)
report(
    "google-ai-edge/litert-torch#827",
    lambda q, m: F.scaled_dot_product_attention(q, q, q, m),
    f(2, 2, "t", 4),
    f(2, 1, "t", "t"),
)
report(
    "microsoft/onnxruntime#1708",
    lambda ids, at: F.embedding(ids, torch.arange(40.0).reshape(10, 4)).gather(
        1, at[..., None].expand(-1, -1, 4)
    ),
    i("b", "t", below=10),
    i("b", 2),
)
report("google-ai-edge/litert-torch#678", lambda x: x + torch.randn(3), f("n", 3), refused={"all": "TM2003"})
report(
    "google-ai-edge/litert-torch#358",
    lambda x: F.silu(x) + F.gelu(x) + F.gelu(x, approximate="tanh"),
    f("n", 3),
)

# ---- ONNX files: a graph in the text format of the package onnx

report(
    "inisis/OnnxSlim#277",
    "(float[1,8,6] x) => (float[1,?,6] y) { a = Constant<value_ints=[2]>() b = Constant<value_ints=[9223372036854775807]>() c = Constant<value_ints=[1]>() d = Slice(x, a, b, c) e = Constant<value_ints=[0]>() y = Slice(d, e, a, c) }",
    f(1, 8, 6),
)
report(
    "inisis/OnnxSlim#46",
    "(float[2,3] x, float[3,4] w) => (float[2,4] y) { a = MatMul(x, w) b = Constant<value_floats=[1.0,2.0,3.0,4.0]>() y = Add(b, a) }",
    f(2, 3),
    f(3, 4),
)
report(
    "onnxsim/onnxsim#140",
    "(float[n,4,2] x) => (float[?,?] y) { s = Shape(x) k = Constant<value_int=0>() g = Gather(s, k) z = Constant<value_ints=[0]>() u = Unsqueeze(g, z) m = Constant<value_ints=[-1]>() t = Concat<axis=0>(u, m) y = Reshape(x, t) }",
    f("n", 4, 2),
)
report(
    "microsoft/onnxruntime#11870",
    "(float[1,50,1] x, float[1,5,1,1] z) => (float[1,5,50,1] y) { a = Constant<value_ints=[1]>() b = Unsqueeze(x, a) y = Add(b, z) }",
    f(1, 50, 1),
    f(1, 5, 1, 1),
)
report(
    "torch.onnx einsum with an ellipsis",
    '(float[2,3,4] x, float[5,4] w) => (float[2,3,5] y) { y = Einsum<equation="...d,hd->...h">(x, w) }',
    f(2, 3, 4),
    f(5, 4),
)
report(
    "torch.onnx pad of flags",
    "(bool[2,3] x) => (bool[?,?] y) { p = Constant<value_ints=[0,1,0,1]>() y = Pad(x, p) }",
    flags(2, 3),
)
report(
    "torch.onnx squeeze under a condition",
    "(float[2,1,3] x) => (float[?,3] y) { s = Shape<start=1,end=2>(x) o = Constant<value_ints=[1]>() e = Equal(s, o) c = Squeeze(e) y = If(c) <then_branch = t () => (float[2,3] p) { p = Squeeze(x, o) }, else_branch = f () => (float[2,1,3] q) { q = Identity(x) }> }",
    f(2, 1, 3),
)
report(
    "torch.onnx pooling with a window beyond the edge",
    "(float[1,2,5,5] x) => (float[1,2,3,3] y) { y = AveragePool<kernel_shape=[2,2],strides=[2,2],ceil_mode=1>(x) }",
    f(1, 2, 5, 5),
    opset=19,
)
report(
    "onnx/onnx resize by scales",
    '(float[1,2,h,w] x) => (float[1,2,?,?] y) { s = Constant<value_floats=[1.0,1.0,2.0,2.0]>() y = Resize<mode="linear",coordinate_transformation_mode="asymmetric">(x, , s) }',
    f(1, 2, "h", "w"),
    refused={"all": "TM2031"},
)
report(
    "onnx/onnx cumsum",
    "(float[b,4] x) => (float[b,4] y) { a = Constant<value_int=1>() y = CumSum<exclusive=1,reverse=1>(x, a) }",
    f("b", 4),
)
