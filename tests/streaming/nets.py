"""Offline models over time, of the kinds that people stream."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Chomp(nn.Module):
    """A causal convolution that pads both sides and cuts off the end, as TCNs do."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=2 * dilation, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.conv(x)[:, :, : -self.conv.padding[0]]) + x


class WaveNet(nn.Module):
    """Gated dilated convolutions with skip connections; those without padding shorten the stream."""

    def __init__(self, pads: bool) -> None:
        super().__init__()
        self.pads = pads
        self.layers = nn.ModuleList(nn.Conv1d(4, 8, 2, dilation=2**i) for i in range(4))
        self.mix = nn.ModuleList(nn.Conv1d(4, 4, 1) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        skips: Any = 0
        for i, (layer, mix) in enumerate(zip(self.layers, self.mix, strict=True)):
            a, g = layer(F.pad(x, (2**i, 0)) if self.pads else x).chunk(2, 1)
            y = mix(torch.tanh(a) * torch.sigmoid(g))
            x = y + (x if self.pads else x[:, :, 2**i :])
            skips = skips + y if self.pads else y
        return torch.relu(skips)


class ConformerConv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(4), nn.BatchNorm1d(4)
        self.up, self.depth, self.down = (
            nn.Conv1d(4, 8, 1),
            nn.Conv1d(4, 4, 7, padding=3, groups=4),
            nn.Conv1d(4, 4, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = F.glu(self.up(self.norm(x).transpose(1, 2)), 1)
        return x + self.down(F.silu(self.inner(self.depth(y)))).transpose(1, 2)


class BandAttention(nn.Module):
    """Self-attention of two heads, over ``past`` frames and ``later`` ones."""

    def __init__(self, past: int, later: int, frames: int, adds: bool) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)
        distance = torch.arange(frames)[:, None] - torch.arange(frames)
        mask = (distance <= past) & (distance >= -later)
        self.register_buffer(
            "mask", torch.zeros(frames, frames).masked_fill(~mask, float("-inf")) if adds else mask
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (each.unflatten(-1, (2, 2)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)
        return x + self.out(y.transpose(1, 2).flatten(2))


class DeepSpeech(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, (5, 5), stride=(2, 2), padding=(2, 2))
        self.norm, self.gru = nn.BatchNorm2d(2), nn.GRU(8, 6, batch_first=True)
        self.out = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:  # [batch, 1, frequency, time]
        y = F.hardtanh(self.norm(self.conv(x)), 0, 20)
        y, _ = self.gru(y.permute(0, 3, 1, 2).flatten(2))
        return F.log_softmax(self.out(y), -1)


class Seanet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(1, 4, 7), nn.Conv1d(8, 3, 3)
        self.down = nn.ModuleList([nn.Conv1d(4, 4, 4, stride=2), nn.Conv1d(4, 8, 8, stride=4)])

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(F.pad(x, (6, 0)))
        for conv in self.down:
            x = conv(F.pad(F.elu(x), (conv.kernel_size[0] - conv.stride[0], 0)))
        return self.last(F.pad(F.elu(x), (2, 0)))


class Recurrent(nn.Module):
    """Two layers after a convolution that looks ahead; the start of the stream must not reach the states."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.conv, self.rnn = nn.Conv1d(3, 3, 5, padding=2), kind(3, 4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.full((2, 1, 4), 0.25)
        y, _ = self.rnn(self.conv(x).transpose(1, 2), (h, h) if isinstance(self.rnn, nn.LSTM) else h)
        return y


class KeywordSpotter(nn.Module):
    """Depthwise-separable convolutions over (frequency, time)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU6()),
            *(nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.ReLU(), nn.Conv2d(4, 6, 1), nn.ReLU()),
        )
        self.out = nn.Conv1d(6, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.avg_pool1d(self.net(x).mean(2), 4, 2)).softmax(1)


class Unet(nn.Module):
    """Strided convolutions, transposed ones and skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv1d(1, 4, 4, 2, 1), nn.Conv1d(4, 6, 4, 2, 1)])
        self.up = nn.ModuleList([nn.ConvTranspose1d(6, 4, 4, 2, 1), nn.ConvTranspose1d(8, 1, 4, 2, 1)])

    def forward(self, x: Tensor) -> Tensor:
        a = torch.relu(self.down[0](x))
        b = torch.relu(self.down[1](a))
        return torch.tanh(self.up[1](torch.cat([self.up[0](b), a], 1))) + x


class Crn(nn.Module):
    """Causal 2-d convolutions over (time, frequency), an LSTM, and transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(1, 3, (2, 3), (1, 2)), nn.Conv2d(3, 4, (2, 3), (1, 2))
        self.lstm = nn.LSTM(4 * 3, 4 * 3, batch_first=True)
        self.three, self.four = (
            nn.ConvTranspose2d(8, 3, (2, 3), (1, 2)),
            nn.ConvTranspose2d(6, 1, (2, 3), (1, 2)),
        )

    def forward(self, x: Tensor) -> Tensor:  # [batch, 1, time, frequency]
        a = F.elu(self.one(F.pad(x, (0, 0, 1, 0))))
        b = F.elu(self.two(F.pad(a, (0, 0, 1, 0))))
        y, _ = self.lstm(b.permute(0, 2, 1, 3).flatten(2))
        y = y.unflatten(2, (4, 3)).permute(0, 2, 1, 3)
        y = F.elu(self.three(torch.cat([y, b], 1))[:, :, :-1])
        return F.softplus(self.four(torch.cat([y, a], 1))[:, :, :-1])


class DualPath(nn.Module):
    """A GRU over the frequencies of each frame, in both directions, and one over the frames."""

    def __init__(self) -> None:
        super().__init__()
        self.across, self.along = (
            nn.GRU(2, 3, batch_first=True, bidirectional=True),
            nn.GRU(6, 2, batch_first=True),
        )

    def forward(self, x: Tensor) -> Tensor:  # [time, frequency, 2]
        y, _ = self.across(x)
        return x + self.along(y.transpose(0, 1))[0].transpose(0, 1)


class Pools(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = F.max_pool1d(torch.relu(x), 3, 2, 1) + F.avg_pool1d(x, 3, 2, 1)
        y = F.interpolate(y, scale_factor=2, mode="nearest") * torch.sigmoid(x)
        return torch.cat([y, x.mean(1, keepdim=True), x[:, 1:2] - 1], 1)


class Frames(nn.Module):
    """Frames of a wave by unfold and by stacking, running sums, and padding with something else after it."""

    def __init__(self) -> None:
        super().__init__()
        self.basis = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        power = self.basis(F.pad(x, (4, 0)).unfold(-1, 8, 4)).square()
        stacked = x.reshape(1, -1, 4) + 1
        early = F.pad(stacked.mean(-1), (3, 0)) + 1
        return torch.cat([power[:, : stacked.shape[1]], stacked.cumsum(1), early[:, :-3, None]], -1)


class TwoInputs(nn.Module):
    """Two streams of different rates, and a vector for all frames."""

    def forward(self, x: Tensor, slow: Tensor, speaker: Tensor) -> tuple[Tensor, Tensor]:
        up = slow.repeat_interleave(2, -1)
        return F.conv1d(x + up, torch.ones(1, 2, 3), padding=1), torch.tanh(x) * speaker[:, :, None]


def tcn() -> nn.Module:
    return nn.Sequential(nn.Conv1d(3, 4, 1), *(Chomp(4, 2**i) for i in range(3)), nn.Conv1d(4, 2, 1))


def noncausal() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 4, 5, padding=2),
        nn.Sigmoid(),
        nn.Conv1d(4, 4, 3, padding=2, dilation=2),
        nn.Conv1d(4, 2, 9, padding=4),
    )


def odd_transposed() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 2, 3, stride=3),
        nn.ConvTranspose1d(2, 2, 7, 3, 2, 2),
        nn.ConvTranspose1d(2, 1, 2, 3, 0, 1),
    )


class SpectrumDenoiser(nn.Module):
    """A mask from a GRU stack over the log spectrum of a wave, by a causal STFT."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.gru, self.mask = nn.GRU(9, 6, 2, batch_first=True), nn.Linear(6, 9)

    def forward(self, x: Tensor) -> Tensor:  # [batch, time]
        spectrum = torch.stft(F.pad(x, (12, 0)), 16, 4, window=self.window, center=False, return_complex=True)
        power = torch.view_as_real(spectrum).square().sum(-1).transpose(1, 2)
        return power * torch.sigmoid(self.mask(self.gru(torch.log1p(power))[0]))


class IstftDenoiser(nn.Module):
    """A mask over the spectrum of a wave, which an inverse STFT with overlap turns back into one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.gru, self.mask = nn.GRU(9, 6, batch_first=True), nn.Linear(6, 9)

    def forward(self, x: Tensor) -> Tensor:  # [batch, time]
        x = F.pad(x, (8, 8))
        spectrum = torch.stft(x, 16, 4, window=self.window, center=False, return_complex=True)
        power = torch.log1p(spectrum.abs().square()).transpose(1, 2)
        mask = torch.sigmoid(self.mask(self.gru(power)[0])).transpose(1, 2)
        return torch.istft(spectrum * mask, 16, 4, window=self.window, length=x.shape[-1] - 16)


class OverlapAdd(nn.Module):
    """Frames with a window, added where they overlap."""

    def forward(self, x: Tensor) -> Tensor:
        frames = (x.unfold(-1, 8, 4) * torch.hann_window(8)).transpose(1, 2)
        total = 8 + 4 * (frames.shape[2] - 1)
        return F.fold(frames, (1, total), (1, 8), stride=(1, 4))[:, 0, 0]


class Demucs(nn.Module):
    """Gated strided convolutions, an LSTM, and transposed convolutions with overlap and skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv1d(1, 4, 8, 4), nn.Conv1d(4, 6, 8, 4)])
        self.gates = nn.ModuleList([nn.Conv1d(4, 8, 1), nn.Conv1d(6, 12, 1)])
        self.lstm = nn.LSTM(6, 6, 2, batch_first=True)
        self.up = nn.ModuleList([nn.ConvTranspose1d(6, 4, 8, 4), nn.ConvTranspose1d(4, 1, 8, 4)])

    def forward(self, x: Tensor) -> Tensor:
        skips: list[Tensor] = []
        for conv, gate in zip(self.down, self.gates, strict=True):
            x = F.glu(gate(torch.relu(conv(F.pad(x, (4, 0))))), 1)
            skips.append(x)
        x = self.lstm(x.transpose(1, 2))[0].transpose(1, 2)
        for conv in self.up:
            x = torch.relu(conv(x + skips.pop()))[:, :, :-4]
        return x


class ConvTasNet(nn.Module):
    """An encoder of short frames, a mask by dilated depthwise convolutions, and a decoder with overlap."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, 6, 8, 4), nn.ConvTranspose1d(6, 1, 8, 4)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.PReLU(), nn.Conv1d(6, 6, 3, dilation=2**i, groups=6), nn.Conv1d(6, 6, 1))
            for i in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        frames = torch.relu(self.encoder(x))
        y = frames
        for number, block in enumerate(self.blocks):
            y = y + block(F.pad(y, (2 * 2**number, 0)))
        return self.decoder(frames * torch.sigmoid(y))


WAVE, SPECTRUM = (1, 1, 48), (1, 1, 8, 48)
# name: module, shapes of the inputs, --time, chunks from the fewest frames on, delay of the first output
NETS: dict[str, tuple[Any, list[tuple[int, ...]], list[str], list[int], int]] = {
    "tcn": (tcn, [(1, 3, 48)], [], [1, 3, 16], 0),
    "wavenet": (lambda: WaveNet(True), [(1, 4, 48)], [], [1, 5, 16], 0),
    "wavenet without padding": (lambda: WaveNet(False), [(1, 4, 48)], [], [2], 15),
    "conformer convolution": (ConformerConv, [(1, 48, 4)], ["input0:1"], [1, 4], 3),
    "attention": (lambda: BandAttention(5, 0, 48, False), [(1, 48, 4)], ["input0:1"], [1, 4], 0),
    "attention ahead": (lambda: BandAttention(6, 2, 48, True), [(1, 48, 4)], ["input0:1"], [3], 2),
    "conformer": (
        lambda: nn.Sequential(ConformerConv(), BandAttention(4, 1, 48, True), ConformerConv()),
        [(1, 48, 4)],
        ["input0:1"],
        [2],
        7,
    ),
    "deepspeech": (DeepSpeech, [SPECTRUM], ["input0:3"], [2, 16], 1),
    "seanet": (Seanet, [WAVE], [], [8, 16], 0),
    "gru": (lambda: Recurrent(nn.GRU), [(1, 3, 48)], [], [1, 7], 2),
    "lstm": (lambda: Recurrent(nn.LSTM), [(1, 3, 48)], [], [4], 2),
    "keyword spotter": (KeywordSpotter, [SPECTRUM], ["input0:3"], [2, 10], 2),
    "unet": (Unet, [WAVE], [], [4, 16], 7),
    "crn": (Crn, [(1, 1, 24, 15)], ["input0:2"], [1, 8], 0),
    "dual path": (DualPath, [(24, 5, 2)], ["input0:0"], [1, 6], 0),
    "pools": (Pools, [(1, 3, 48)], [], [2, 8], 0),
    "frames": (Frames, [(1, 48)], [], [4, 16], 0),
    "noncausal": (noncausal, [(1, 2, 48)], [], [1, 11], 8),
    "odd transposed": (odd_transposed, [(1, 2, 48)], [], [3], 6),
    "spectrum denoiser": (SpectrumDenoiser, [(1, 48)], [], [4, 16], 0),
    "istft denoiser": (IstftDenoiser, [(1, 48)], [], [4, 16], 12),
    "overlap add": (OverlapAdd, [(1, 48)], [], [4, 16], 4),
    "demucs": (Demucs, [WAVE], [], [16], 0),
    "conv tasnet": (ConvTasNet, [WAVE], [], [4, 16], 4),
    "two inputs": (TwoInputs, [(1, 2, 48), (1, 2, 24), (1, 2)], ["x:2", "slow:2"], [2], 1),
}
