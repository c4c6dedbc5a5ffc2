"""A small vision transformer that reads handwritten digits: the PyTorch sample.

tmconvert onnx digits_torch:make digits_torch.onnx      # in this folder
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

WEIGHTS = Path(__file__).with_suffix(".pt")
IMAGE, PATCH, WIDTH, HEADS, DEPTH, CLASSES = 8, 2, 32, 4, 2, 10


class Attention(nn.Module):
    """Each patch looks at all of them, in several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.looks = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, count, width = x.shape
        query, key, value = self.looks(x).view(batch, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.out(seen.transpose(1, 2).reshape(batch, count, width))


class Block(nn.Module):
    """Attention and two linear layers, each added to what comes in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.second_norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.first_norm(x)))
        return x + self.dropout(self.narrow(nn.functional.gelu(self.wide(self.second_norm(x)))))


class DigitsTransformer(nn.Module):
    """Logits [N, 10] of images [N, 1, 8, 8] scaled to 0..1, which are cut into 16 patches of 2x2."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, PATCH, stride=PATCH)
        self.places = nn.Parameter(torch.zeros((IMAGE // PATCH) ** 2, WIDTH))
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.classifier = nn.Linear(WIDTH, CLASSES)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.norm(x).mean(dim=1))


def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The trained module and an example input, for tmconvert."""
    net = DigitsTransformer()
    net.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return net.eval(), (torch.rand(1, 1, IMAGE, IMAGE),)
