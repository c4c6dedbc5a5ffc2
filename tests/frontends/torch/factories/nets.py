"""What ``package.module:factory`` may name, and what goes wrong there."""

from __future__ import annotations

from typing import Any

import torch


class Net(torch.nn.Module):
    """A linear layer, and a number by which its result is multiplied."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor, scale: Any = None) -> torch.Tensor:
        x = torch.relu(self.fc(x))
        return x if scale is None else x * scale


class Branches(Net):
    def forward(self, x: torch.Tensor, scale: Any = None) -> torch.Tensor:
        return x * round(x.sum().item())


class Tokens(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.embedding(ids) * 2


def make() -> Net:
    print("this goes to stderr")
    return Net().eval()


def with_inputs() -> Any:
    return Net(), (torch.randn(2, 8),)


def with_keywords() -> Any:
    return Net(), {"x": torch.randn(2, 8), "scale": torch.randn(5)}


def raises() -> Net:
    raise ValueError("my own fault")


def exits() -> Net:
    raise SystemExit(2)


def needs(width: int) -> Net:
    return Net()


def weights() -> dict[str, torch.Tensor]:
    return Net().state_dict()


net = Net()


def other_torchvision() -> Net:
    """Fails as `import torchvision` does beside a torch of another index."""
    raise RuntimeError("operator torchvision::nms does not exist")
