"""Loops over frames, calls that treat each frame alone, ends of streams and numbers of frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tmconvert
from tmconvert.errors import TmconvertError


class Net(nn.Module):
    """A function of the stream, with layers that it may use."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function, self.cell, self.ahead = function, nn.GRUCell(6, 6), nn.Conv1d(6, 6, 3, padding=1)
        self.mix, self.code = nn.Bilinear(6, 6, 3), nn.Parameter(torch.randn(9, 6))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def loop(m: Net, x: Tensor) -> Tensor:
    h, out = x.new_zeros(x.shape[0], 6), []
    for t in range(x.shape[1]):
        h = m.cell(x[:, t], h)
        out.append(h)
    return torch.stack(out, 1)


def later_loop(m: Net, x: Tensor) -> Tensor:
    """The loop starts with ones, and two frames late."""
    y = m.ahead(m.ahead(x.transpose(1, 2))).transpose(1, 2)
    h, out = y.new_ones(1, 6), []
    for t in range(y.shape[1]):
        h = 0.9 * h + 0.1 * y[:, t]
        out.append(h * (t + 1))
    return torch.stack(out, 1)


def smoothed(m: Net, x: Tensor) -> Tensor:
    """The loop starts with the first frame."""
    y = m.ahead(x.transpose(1, 2)).transpose(1, 2)
    h, out = y[:, 0], []
    for t in range(y.shape[1]):
        h = 0.9 * h + 0.1 * y[:, t]
        out.append(h)
    return x / (torch.stack(out, 1).abs() + 0.1)


def codes(m: Net, x: Tensor) -> tuple[Tensor, Tensor]:
    number = torch.cdist(x, m.code[None]).argmin(-1)
    return number, x - m.code[number]


def shifted(m: Net, x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[:, 1:, :2] = x[:, :-1, :2]
    y[:, :-1, 2:4] = x[:, 1:, 2:4]
    y[:, :, 4:] = x[:, :, 4:]
    return y


def replaced(m: Net, x: Tensor) -> Tensor:
    y = torch.tanh(x)
    y[:, 2:-3] = m.ahead(x.transpose(1, 2)).transpose(1, 2)[:, 2:-3]
    return y


def mean_so_far(m: Net, x: Tensor) -> Tensor:
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


def padded(left: int, right: int, mode: str) -> Any:
    return lambda m, x: m.ahead(F.pad(torch.tanh(x.transpose(1, 2)), (left, right), mode))


def spectrum(m: Net, x: Tensor) -> Tensor:
    window = torch.hann_window(8)
    return torch.stft(x[..., 0], 8, 4, window=window, return_complex=True).abs()


def every_other(m: Net, x: Tensor) -> Tensor:
    y = torch.stack([x, m.ahead(x.transpose(1, 2)).transpose(1, 2)], 2).flatten(1, 2).tanh()
    return y[:, ::2] + y[:, 1::2]


def windows_over_channels(m: Net, x: Tensor) -> Tensor:
    y = F.unfold(x[:, None], (1, 3), padding=(0, 1)).reshape(1, 3, x.shape[1], 6)
    return y.sum(1) * y[:, 0]


def attention(opens: Any, fills: float, bias: bool = False) -> Any:
    """Attention in products, whose mask is written over the scores."""

    def computed(m: Net, x: Tensor) -> Tensor:
        number = torch.arange(x.shape[1])
        distance = number[:, None] - number[None]
        scores = x @ m.code[:6] @ x.transpose(1, 2) / 6**0.5
        scores = scores + m.code.flatten()[distance.clamp(0, 5)] if bias else scores
        return scores.masked_fill(~opens(number[:, None], number[None]), fills).softmax(-1) @ x

    return computed


def near(row: Tensor, column: Tensor) -> Tensor:
    return (row - column >= 0) & (row - column < 5)


def blocks(row: Tensor, column: Tensor) -> Tensor:
    """A block of four frames sees itself and the one before it."""
    return (row // 4 >= column // 4) & (row // 4 - column // 4 < 2)


# name: the function, and the delay of its first output
NETS: dict[str, tuple[Any, int]] = {
    "a loop": (loop, 0),
    "a later loop": (later_loop, 2),
    "a loop from the first frame": (smoothed, 1),
    "codes": (codes, 0),
    "einsum": (lambda m, x: torch.einsum("btc,dc->dbt", x, m.code).sin(), 0),
    "two operands": (lambda m, x: m.mix(x, x.flip(-1)), 0),
    "gather": (lambda m, x: x.gather(-1, x.argsort(-1)), 0),
    "shifted channels": (shifted, 1),
    "replaced frames": (replaced, 1),
    "mean so far": (mean_so_far, 0),
    "product so far": (lambda m, x: m.ahead(x.sigmoid().transpose(1, 2)).cumprod(2), 1),
    "sum of powers": (lambda m, x: m.ahead(x.transpose(1, 2)).logcumsumexp(2), 1),
    "mirrored start": (padded(4, 0, "reflect"), 5),
    "mirrored ends": (padded(3, 5, "reflect"), 4),
    "repeated ends": (padded(2, 3, "replicate"), 1),
    "centred spectrum": (spectrum, 2),
    "every other frame": (every_other, 1),
    "windows over channels": (windows_over_channels, 0),
    "near frames": (attention(near, -1e9), 0),
    "near frames with a bias": (attention(near, float("-inf"), bias=True), 0),
    "blocks of frames": (attention(blocks, -1e9), 3),
}


@pytest.mark.parametrize(("suffix", "chunk"), [("onnx", 4), ("onnx", "open"), ("tflite", 8), ("tm", "open")])
@pytest.mark.parametrize("name", NETS)
def test_joined_steps_are_the_offline_model(name: str, suffix: str, chunk: Any, tmp_path: Path) -> None:
    function, delay = NETS[name]
    torch.manual_seed(0)
    module, x = Net(function).eval(), torch.randn(1, 24, 6)
    report = tmconvert.stream(
        module, tmp_path / f"step.{suffix}", example_inputs=(x,), time={"x": 1}, chunk=chunk
    )
    assert report.max_error < 1e-5 and next(iter(report.outputs.values()))[2] == delay


def other_frames(m: Net, x: Tensor) -> Tensor:
    h, out = x.new_zeros(1, 6), []
    for t in range(1, x.shape[1]):
        h = 0.5 * h + x[:, t - 1] * x[:, t]
        out.append(h)
    return torch.stack(out, 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (other_frames, "along the axis of time"),
        (lambda m, x: x + x[:, :1], "uses some frames of the stream for others"),
        (lambda m, x: x + x[:, 0][:, None], "uses the first frame of the stream for others"),
        (lambda m, x: F.pad(x.transpose(1, 2), (2, 2), "circular"), "depend on other frames"),
        (lambda m, x: torch.einsum("btc,bsc->bts", x, x), "depend on other frames"),
    ],
)
def test_what_needs_other_frames_is_refused(function: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TmconvertError, match=message) as caught:
        tmconvert.stream(
            Net(function), tmp_path / "step.onnx", example_inputs=(torch.randn(1, 12, 6),), time={"x": 1}
        )
    assert caught.value.code == "TM2025" and "test_frames.py:" in str(caught.value)
