"""The network of these tests, which are read where PyTorch is not installed, too."""

from __future__ import annotations

import torch


class Net(torch.nn.Module):
    """A small network with sizes that differ."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.deep = torch.nn.Conv2d(8, 8, (3, 5), padding=(1, 2), groups=8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        value = torch.relu(self.first(image))
        value = torch.relu(self.deep(value)) + value
        return self.head(value.mean((2, 3)))
