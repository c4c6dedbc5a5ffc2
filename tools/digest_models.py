"""A dozen PyTorch models for tools/digests: small, and each with another part of the converter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Residual(nn.Module):
    """Convolutions with batch norms around a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 5)

    def forward(self, image: Tensor) -> Tensor:
        features = self.first(image)
        return self.head(F.relu(features + self.second(features)).mean((2, 3)))


class Inverted(nn.Module):
    """A depthwise block with squeeze and excitation, and hard functions."""

    def __init__(self) -> None:
        super().__init__()
        self.expand, self.depthwise = nn.Conv2d(4, 16, 1), nn.Conv2d(16, 16, 5, 2, 2, groups=16)
        self.squeeze, self.project = nn.Conv2d(16, 16, 1), nn.Conv2d(16, 4, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = F.hardswish(self.depthwise(F.hardswish(self.expand(image))))
        return self.project(x * F.hardsigmoid(self.squeeze(F.adaptive_avg_pool2d(x, 1))))


class Shuffle(nn.Module):
    """Grouped convolutions with a channel shuffle between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(8, 8, 1, groups=2), nn.Conv2d(8, 8, 3, padding=1, groups=4)

    def forward(self, image: Tensor) -> Tensor:
        x = self.first(image)
        n, c, h, w = x.shape
        return self.second(x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))


class Pyramid(nn.Module):
    """Resizing, concatenation, a transposed convolution and two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 6, 3, 2, 1), nn.ConvTranspose2d(6, 3, 4, 2, 1)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        small = F.leaky_relu(self.down(image), 0.1)
        large = F.interpolate(small, scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.cat([self.up(small), large], 1), F.max_pool2d(small, 3, 2, 1)


class Transformer(nn.Module):
    """An embedding, one layer of an encoder and a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, "gelu", batch_first=True)
        self.norm = nn.LayerNorm(16)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.norm(self.layer(self.embedding(tokens)))


class Attention(nn.Module):
    """Causal attention with a head on the last token."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.head = nn.Linear(12, 36), nn.Linear(12, 7)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (3, 4)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(mixed.transpose(1, 2).flatten(2)[:, -1])


class Recurrent(nn.Module):
    """An LSTM of two directions before a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(10, 4, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.gru(self.lstm(x)[0])


class Detection(nn.Module):
    """Box arithmetic, topk, a gather and comparisons."""

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        center, size = boxes[..., :2], boxes[..., 2:].exp()
        corners = torch.cat([center - size / 2, center + size / 2], -1).clamp(0, 32)
        best, index = torch.where(scores > 0, scores, -1.0).max(-1)[0].topk(3, -1)
        return corners.gather(1, index[..., None].expand(-1, -1, 4)), best


class Audio(nn.Module):
    """A spectrum by convolution, cumulative sums and group norm in one dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.filters, self.norm = nn.Conv1d(1, 8, 16, 8), nn.GroupNorm(2, 8)

    def forward(self, wave: Tensor) -> Tensor:
        power = self.filters(F.pad(wave, (4, 4), mode="reflect")).pow(2)
        return self.norm(torch.log1p(power)).cumsum(-1)


class Mixer(nn.Module):
    """Products of matrices, einsum and soft functions."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.channels = nn.Linear(6, 6), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = x + F.silu(self.tokens(x.mT)).mT
        return torch.einsum("bij,bkj->bik", self.channels(x), x).softmax(-1)


class Indexing(nn.Module):
    """Writes to views, masks and integer arithmetic."""

    def forward(self, x: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        y = x.clone()
        y[:, 1:3] += 2.0
        y[y < 0] = 0.0
        return y.index_select(1, index % 4), (index * 3) // 2


class Volume(nn.Module):
    """Convolution and pooling in three dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(2, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool3d(F.elu(self.conv(x)), 2)


def _normal(*shapes: tuple[int, ...]) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: tuple(torch.randn(shape) for shape in shapes)


def _tokens() -> tuple[Tensor]:
    return (torch.arange(10).view(2, 5),)


# the module's class, example inputs, and the sizes that stay open
MODELS: dict[str, tuple[type[nn.Module], Callable[[], tuple[Tensor, ...]], Any]] = {
    "torch-residual": (Residual, _normal((1, 3, 16, 16)), None),
    "torch-inverted": (Inverted, _normal((1, 4, 12, 12)), None),
    "torch-shuffle": (Shuffle, _normal((1, 8, 9, 9)), None),
    "torch-pyramid": (Pyramid, _normal((2, 3, 16, 12)), None),
    "torch-transformer": (
        Transformer,
        lambda: (torch.arange(10).view(2, 5),),
        {"tokens": {0: "batch", 1: "n"}},
    ),
    "torch-attention": (Attention, _normal((2, 6, 12)), {"x": {1: "n"}}),
    "torch-recurrent": (Recurrent, _normal((2, 5, 6)), None),
    "torch-detection": (Detection, _normal((1, 9, 4), (1, 9, 3)), None),
    "torch-audio": (Audio, _normal((1, 1, 64)), None),
    "torch-mixer": (Mixer, _normal((2, 6, 8)), {"x": {0: "batch"}}),
    "torch-indexing": (Indexing, lambda: (torch.randn(2, 4), torch.tensor([5, 2, 1])), None),
    "torch-volume": (Volume, _normal((1, 2, 4, 6, 6)), None),
}


def traced(name: str) -> tuple[Any, Any]:
    """The traced model, and data to calibrate it on; None for inputs that are not float32."""
    import tmconvert

    factory, example, dynamic = MODELS[name]
    torch.manual_seed(0)
    module, inputs = factory().eval(), example()
    model = tmconvert.trace(module, *inputs, dynamic_shapes=dynamic)
    if dynamic is not None or any(each.dtype != torch.float32 for each in inputs):
        return model, None
    random = np.random.default_rng(0)
    samples = [tuple(random.normal(size=each.shape).astype(np.float32) for each in inputs) for _ in range(3)]
    return model, samples
