"""Networks as applications write them: recommendation, points, series, solvers, densities."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class DeepFm(nn.Module):
    """Categories and numbers: pairwise products of embeddings beside a deep network."""

    def __init__(self, fields: int = 6, rows: int = 50, width: int = 8) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.arange(fields) * rows)
        self.table, self.linear = nn.Embedding(fields * rows, width), nn.Embedding(fields * rows, 1)
        self.deep = nn.Sequential(
            nn.Linear(fields * width + 4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ids = x + self.offsets
        e = self.table(ids)
        crossed = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        return (self.linear(ids).sum(1) + crossed + self.deep(torch.cat([e.flatten(1), y], 1))).sigmoid()


class Dlrm(nn.Module):
    """Bags of categories and dense features, with all dot products between them."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(40, 16, mode="sum") for _ in range(3)])
        self.bottom, self.top = nn.Linear(5, 16), nn.Linear(16 + 6, 1)
        self.register_buffer("upper", torch.triu_indices(4, 4, 1))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        dense = self.bottom(y).relu()
        rows = torch.stack([dense, *(bag(x[:, i]) for i, bag in enumerate(self.bags))], 1)
        products = torch.bmm(rows, rows.transpose(1, 2))[:, self.upper[0], self.upper[1]]
        return self.top(torch.cat([dense, products], 1)).sigmoid()


class TwoTower(nn.Module):
    """A user's history and items: the ten best of a catalogue."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(200, 32, padding_idx=0)
        self.gru = nn.GRU(32, 32, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        hidden = self.gru(self.items(x))[0]
        last = hidden[torch.arange(x.shape[0]), (x != 0).sum(1) - 1]
        scores = functional.normalize(last, dim=1) @ functional.normalize(self.items.weight, dim=1).T
        return torch.topk(scores, 10)


class PointNet(nn.Module):
    """Points with a learned transform, pooled by their maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU())
        self.matrix = nn.Linear(32, 9)
        self.net = nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(), nn.Conv1d(64, 128, 1))
        self.head = nn.Linear(128, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        matrix = self.matrix(self.transform(x).max(2)[0]).view(-1, 3, 3) + torch.eye(3)
        x = torch.bmm(x.transpose(2, 1), matrix).transpose(2, 1)
        return self.head(self.net(x).max(2)[0]).log_softmax(1)


class Sampling(nn.Module):
    """Farthest points and the groups of their neighbours, as PointNet++ has them."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, count, _ = x.shape
        chosen = torch.zeros(batch, 8, dtype=torch.long)
        distance, farthest = torch.full((batch, count), 1e10), torch.zeros(batch, dtype=torch.long)
        rows = torch.arange(batch)
        for i in range(8):
            chosen[:, i] = farthest
            center = x[rows, farthest].unsqueeze(1)
            distance = torch.minimum(distance, ((x - center) ** 2).sum(-1))
            farthest = distance.max(-1)[1]
        centers = x[rows[:, None], chosen]
        near = torch.cdist(centers, x).topk(6, largest=False)[1]
        groups = x[rows[:, None, None], near] - centers[:, :, None]
        return self.net(groups).amax(2)


class Dgcnn(nn.Module):
    """Edges to the nearest neighbours in feature space."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(6, 32, 1), nn.Conv2d(64, 64, 1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        for layer in self.layers:
            inner = -2 * torch.matmul(x.transpose(2, 1), x)
            square = (x**2).sum(1, keepdim=True)
            near = (-square - inner - square.transpose(2, 1)).topk(8, dim=-1)[1]
            batch, channels, count = x.shape
            flat = (near + torch.arange(batch).view(-1, 1, 1) * count).view(-1)
            gathered = (
                x.transpose(2, 1).reshape(batch * count, channels)[flat].view(batch, count, 8, channels)
            )
            own = x.transpose(2, 1).unsqueeze(2).expand(-1, -1, 8, -1)
            x = layer(torch.cat([gathered - own, own], 3).permute(0, 3, 1, 2)).relu().max(-1)[0]
        return x.max(2)[0]


class DLinear(nn.Module):
    """A trend by a moving mean, and the rest; a linear layer for each."""

    def __init__(self) -> None:
        super().__init__()
        self.trend, self.rest = nn.Linear(96, 24), nn.Linear(96, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = torch.cat([x[:, :1].repeat(1, 12, 1), x, x[:, -1:].repeat(1, 12, 1)], 1)
        trend = functional.avg_pool1d(padded.transpose(1, 2), 25, 1)
        return (self.trend(trend) + self.rest(x.transpose(1, 2) - trend)).transpose(1, 2)


class PatchTst(nn.Module):
    """Patches of each channel through a transformer, with reversible normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(16, 64)
        self.position = nn.Parameter(torch.randn(11, 64) * 0.02)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
        self.head = nn.Linear(11 * 64, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, std = x.mean(1, keepdim=True), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        z = ((x - mean) / std).transpose(1, 2).unfold(-1, 16, 8)
        batch, channels = z.shape[:2]
        z = self.encoder((self.embed(z) + self.position).flatten(0, 1))
        return self.head(z.reshape(batch, channels, -1)).transpose(1, 2) * std + mean


class NBeats(nn.Module):
    """Blocks that take what they explain from the series, on a basis of sines."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 10)) for _ in range(3)]
        )
        grid = torch.arange(60) / 48
        self.register_buffer("basis", torch.stack([torch.cos(grid * math.pi * k) for k in range(10)]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        forecast = torch.zeros(x.shape[0], 12)
        for block in self.blocks:
            both = block(x) @ self.basis
            x, forecast = x - both[:, :48], forecast + both[:, 48:]
        return forecast


class Fourier(nn.Module):
    """The strongest frequencies of a series, and the series without the others."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x, dim=1)
        size = spectrum.abs().mean(2)
        kept = size >= size.topk(5, 1)[0][:, -1:]
        return self.layer(torch.fft.irfft(spectrum * kept.unsqueeze(2), n=x.shape[1], dim=1))


class Tcn(nn.Module):
    """Causal convolutions with growing dilation and weight norm."""

    def __init__(self) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.layers = nn.ModuleList([norm(nn.Conv1d(16, 16, 3, dilation=2**i)) for i in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            x = x + layer(functional.pad(x, (2 * 2**i, 0))).relu()
        return x[:, :, -1]


class MultiScale(nn.Module):
    """Means over growing windows of a series, as time mixers have them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(96 // 2**i, 24) for i in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, parts = x.transpose(1, 2), []
        for i, layer in enumerate(self.layers):
            parts.append(layer(functional.avg_pool1d(x, 2**i)))
        return torch.stack(parts, -1).mean(-1)


@torch.jit.script
def scripted_gate(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(gate) + x.tanh() * (1.0 - torch.sigmoid(gate))


class ScriptedLoop(nn.Module):
    """A loop over layers in TorchScript."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])
        self.depth: int = 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
            kept.append(x)
        if x.dim() == 2 and self.depth > 2:
            x = x * 0.5
        return torch.cat(kept, 1) + x.repeat(1, 3)


class RungeKutta(nn.Module):
    """A neural differential equation, by eight steps of the fourth order."""

    def __init__(self) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 8))

    def rate(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.field(torch.cat([y, t.expand(y.shape[0], 1)], 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        times = torch.linspace(0, 1, 9)
        path = [x]
        for t, after in itertools.pairwise(times):
            h, y = after - t, path[-1]
            a = self.rate(t, y)
            b = self.rate(t + h / 2, y + h / 2 * a)
            c = self.rate(t + h / 2, y + h / 2 * b)
            d = self.rate(t + h, y + h * c)
            path.append(y + h / 6 * (a + 2 * b + 2 * c + d))
        return torch.stack(path, 1)


class FlowMatching(nn.Module):
    """Four steps of a sampler with guidance."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8 + 16 + 4, 64), nn.SiLU(), nn.Linear(64, 8))
        self.register_buffer("frequencies", torch.exp(-math.log(1000) * torch.arange(8) / 8))

    def velocity(self, x: torch.Tensor, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        angles = t[:, None] * self.frequencies
        return self.net(torch.cat([x, angles.sin(), angles.cos(), y], 1))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for step in range(4):
            t = torch.full((x.shape[0],), step / 4)
            given, free = self.velocity(x, t, y), self.velocity(x, t, torch.zeros_like(y))
            x = x + (free + 3.0 * (given - free)) / 4
        return x


class Jumps(nn.Module):
    """A normalizing flow: coupling layers with permutations, and the logarithm of their determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            [nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(3)]
        )
        self.register_buffer("order", torch.randperm(8))

    def forward(self, x: torch.Tensor) -> Any:
        total = torch.zeros(x.shape[0])
        for net in self.nets:
            kept, moved = x[:, self.order].chunk(2, 1)
            scale, shift = net(kept).chunk(2, 1)
            x = torch.cat([kept, moved * scale.tanh().exp() + shift], 1)
            total = total + scale.tanh().sum(1)
        density = torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(1)
        return x, density + total


class Mixture(nn.Module):
    """A mixture density network: means and the probability of a target."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 3 * 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        logits, mean, raw = self.net(x).chunk(3, 1)
        parts = torch.distributions.Normal(mean, functional.softplus(raw) + 1e-3)
        mixture = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(logits=logits), parts)
        return mixture.mean, mixture.log_prob(y[:, 0])


class Kalman(nn.Module):
    """A filter over steps, with a gain from a solved system."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("step", torch.eye(4) + torch.diag(torch.full((3,), 0.1), 1))
        self.register_buffer("seen", torch.eye(4)[:2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, cov = torch.zeros(x.shape[0], 4, 1), torch.eye(4).expand(x.shape[0], 4, 4)
        for i in range(5):
            state, cov = self.step @ state, self.step @ cov @ self.step.T + 0.01 * torch.eye(4)
            s = self.seen @ cov @ self.seen.T + 0.1 * torch.eye(2)
            gain = torch.linalg.solve(s, self.seen @ cov).transpose(1, 2)
            state = state + gain @ (x[:, i, :, None] - self.seen @ state)
            cov = (torch.eye(4) - gain @ self.seen) @ cov
        return state.squeeze(-1)
