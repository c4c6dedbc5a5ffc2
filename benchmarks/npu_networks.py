"""MobileNetV3-large and EfficientNet-B0 in plain PyTorch, with random weights, for benchmarks/npu.py."""

from __future__ import annotations

import torch
from torch import nn


def conv(
    inputs: int, outputs: int, size: int, stride: int, act: type[nn.Module] | None, groups: int = 1
) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([act()] if act else []))


class Gate(nn.Module):
    """Squeeze and excitation: a factor for each channel."""

    def __init__(self, channels: int, inner: int, act: nn.Module, scale: nn.Module) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.reduce, self.expand = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)
        self.act, self.scale = act, scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale(self.expand(self.act(self.reduce(self.pool(x)))))


class Block(nn.Module):
    """An inverted residual: wider, a filter for each channel, a gate, narrower."""

    def __init__(
        self,
        inputs: int,
        inner: int,
        outputs: int,
        size: int,
        stride: int,
        act: type[nn.Module],
        gate: nn.Module | None,
    ) -> None:
        super().__init__()
        wider = [conv(inputs, inner, 1, 1, act)] if inner != inputs else []
        gates = [] if gate is None else [gate]
        each = conv(inner, inner, size, stride, act, inner)
        self.layers = nn.Sequential(*wider, each, *gates, conv(inner, outputs, 1, 1, None))
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.is_residual else self.layers(x)


def _rounded(channels: float) -> int:
    """To a multiple of 8, by a tenth at most."""
    made = max(8, int(channels + 4) // 8 * 8)
    return made + 8 if made < 0.9 * channels else made


# kernel, inner channels, outputs, gate, hard swish, stride
_LARGE = [
    *((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2)),
    *((5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1)),
    *((3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1)),
    *((5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)),
]


def mobilenet_v3_large() -> nn.Module:
    layers: list[nn.Module] = [conv(3, 16, 3, 2, nn.Hardswish)]
    inputs = 16
    for size, inner, outputs, gated, hard, stride in _LARGE:
        gate = Gate(inner, _rounded(inner / 4), nn.ReLU(), nn.Hardsigmoid()) if gated else None
        layers.append(Block(inputs, inner, outputs, size, stride, nn.Hardswish if hard else nn.ReLU, gate))
        inputs = outputs
    layers += [conv(160, 960, 1, 1, nn.Hardswish), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, 1000))


# ratio, kernel, stride, outputs, blocks
_B0 = [
    *((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3)),
    *((6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)),
]


def efficientnet_b0() -> nn.Module:
    layers: list[nn.Module] = [conv(3, 32, 3, 2, nn.SiLU)]
    inputs = 32
    for ratio, size, stride, outputs, blocks in _B0:
        for number in range(blocks):
            gate = Gate(inputs * ratio, inputs // 4, nn.SiLU(), nn.Sigmoid())
            layers.append(
                Block(inputs, inputs * ratio, outputs, size, 1 if number else stride, nn.SiLU, gate)
            )
            inputs = outputs
    layers += [conv(320, 1280, 1, 1, nn.SiLU), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1280, 1000))
