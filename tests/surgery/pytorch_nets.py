"""Small models of PyTorch with all that an edit may meet: name -> (module, inputs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.surgery.models import Block

Example = tuple[nn.Module, tuple[Any, ...]]


class SharedBlock(nn.Module):
    """A module that is called twice, and values that two calls take."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block(3)
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first = self.block(x) + y
        second = self.block(first.relu()) * self.norm(y)
        return torch.cat([first, second], dim=1).mean(dim=(2, 3))


class Tower(nn.Module):
    """Modules in modules in modules, the innermost of which is shared by all."""

    def __init__(self, depth: int = 3, shared: nn.Module | None = None) -> None:
        super().__init__()
        self.shared = shared or nn.Linear(6, 6)
        self.inner = Tower(depth - 1, self.shared) if depth else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.shared(x))
        return x if self.inner is None else self.inner(x) + x


class DictOfResults(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        features = F.gelu(self.body(x))
        return {"features": features, "heads": [self.head(features), features.sum(1, keepdim=True)]}


class TreeOfInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, pair: tuple[torch.Tensor, torch.Tensor], named: dict[str, torch.Tensor]) -> Any:
        first, second = pair
        total = self.linear(first) - second * named["scale"]
        return total, F.softmax(total, -1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        found, weights = self.attention(x, y, y)
        return self.norm(x + found), weights


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(5, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.cell(x)[0]))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.layers = nn.ModuleList([layer, layer])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x.mean(1)


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.linear = nn.Linear(6, 6)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.linear(self.embedding(ids)) * mask.unsqueeze(-1)
        return x.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


class Split(nn.Module):
    """Calls with several results, views and indices."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b, c = self.conv(x).chunk(3, dim=1)
        values, _ = torch.topk(c, 2, dim=-1)
        return a.permute(0, 2, 1).reshape(2, -1), torch.stack([b, a], 1)[:, 0, ..., 1:4], values


class Gate(nn.Module):
    """A buffer, a parameter of its own and a squeeze-and-excitation block."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.down, self.up = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.scale = nn.Parameter(torch.full((1, 8, 1, 1), 0.7))
        self.shift: torch.Tensor
        self.register_buffer("shift", torch.full((8, 1, 1), -0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.hardswish(self.norm(self.conv(x)))
        gate = torch.sigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))
        return F.max_pool2d(x * gate * self.scale + self.shift, 2)


class Decoder(nn.Module):
    """A U-shaped net: transposed convolutions, resizing, concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 8, 3, 2, 1)
        self.up, self.out = nn.ConvTranspose2d(8, 6, 2, 2), nn.Conv2d(12, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = F.leaky_relu(self.down1(x), 0.1)
        second = self.up(F.relu6(self.down2(first)))
        return F.interpolate(self.out(torch.cat([first, second], 1)), scale_factor=2.0, mode="bilinear")


def sequential() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(nn.Sequential(*layers), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 5))


def image(size: int = 8) -> torch.Tensor:
    return torch.rand(1, 3, size, size)


NETS: dict[str, Callable[[], Example]] = {
    "shared": lambda: (SharedBlock(), (image(), image())),
    "tower": lambda: (Tower(), (torch.randn(2, 6),)),
    "dict": lambda: (DictOfResults(), (torch.randn(3, 5),)),
    "tree": lambda: (
        TreeOfInputs(),
        ((torch.randn(2, 4), torch.randn(2, 4)), {"scale": torch.rand(1, 4)}),
    ),
    "attention": lambda: (Attention(), (torch.randn(2, 3, 8), torch.randn(2, 5, 8))),
    "lstm": lambda: (Recurrent("LSTM"), (torch.randn(2, 4, 5),)),
    "gru": lambda: (Recurrent("GRU"), (torch.randn(2, 4, 5),)),
    "encoder": lambda: (Encoder(), (torch.randn(2, 4, 8),)),
    "embedded": lambda: (Embedded(), (torch.randint(0, 20, (2, 5)), torch.ones(2, 5))),
    "split": lambda: (Split(), (torch.randn(2, 4, 6),)),
    "gate": lambda: (Gate(), (image(16),)),
    "decoder": lambda: (Decoder(), (image(16),)),
    "sequential": lambda: (sequential(), (image(),)),
}


def net(name: str) -> Example:
    """Returns a model with its inputs, made with a fixed seed; statistics of batch norms are not trivial."""
    torch.manual_seed(0)
    module, inputs = NETS[name]()
    for each in module.modules():
        if isinstance(each, nn.BatchNorm2d):
            assert each.running_mean is not None and each.running_var is not None
            each.running_mean.uniform_(-0.3, 0.3)
            each.running_var.uniform_(0.5, 1.5)
    return module.eval(), inputs
