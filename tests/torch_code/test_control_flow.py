"""Conditionals and loops of a model are statements of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tmconvert

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of prototypes


class Cond(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def positive(y: torch.Tensor) -> torch.Tensor:
            return torch.cond(y.sum() > 10, lambda z: z - 1, lambda z: self.linear(z), (y,))

        return torch.cond(x.sum() > 0, positive, lambda y: y * 3, (x,)) + 1


class While(nn.Module):
    def forward(self, x: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
        def step(total: torch.Tensor, count: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return total * 2 + x, count + 1

        def goes_on(total: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
            return total.sum() < limit

        total, count = while_loop(goes_on, step, (x, torch.zeros(())))
        return total * count


class Scan(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        from torch._higher_order_ops.scan import scan

        return scan(lambda carry, row: (carry * 0.5 + row, torch.relu(carry)), torch.ones(3), x, dim=0)


CASES: dict[str, tuple[nn.Module, list[tuple[torch.Tensor, ...]]]] = {
    "cond": (Cond(), [(torch.full((2, 3), value),) for value in (0.5, 5.0, -1.0)]),
    "while": (While(), [(torch.ones(2), torch.tensor(value)) for value in (20.0, 300.0, -5.0)]),
    "scan": (Scan(), [(torch.randn(4, 3),), (torch.randn(4, 3),)]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_statements(name: str) -> None:
    source, samples = CASES[name]
    model = tmconvert.trace(source.eval(), *samples[0])
    net = model.to_torch()
    for sample in samples:
        results, expected = net(*sample), model(*(each.numpy() for each in sample))
        for result, right in zip(_listed(results), _listed(expected), strict=True):
            np.testing.assert_allclose(result.detach().numpy(), right, rtol=1e-6)
    word = {"cond": "if ", "while": "while ", "scan": "for "}[name]
    assert f"\n        {word}" in model.code


def test_gradients_go_through() -> None:
    """``torch.cond`` itself has no gradients once a process has compiled much: the branch is taken here."""
    source = Cond()
    x = torch.full((2, 3), 0.5)
    net = tmconvert.trace(source.eval(), x).to_torch()
    for result in (source.linear(x) + 1, net(x)):
        result.square().sum().backward()
    (ours,) = [each.grad for each in net.parameters() if each.grad is not None and each.ndim == 2]
    assert torch.allclose(ours, source.linear.weight.grad)


@pytest.mark.parametrize("name", ["cond", "while"])
def test_scripts_trace_to_the_same_operations(name: str) -> None:
    """Python's statements depend on data, which tracing refuses; those of TorchScript are recorded."""
    source, samples = CASES[name]
    model = tmconvert.trace(source.eval(), *samples[0])
    again = tmconvert.trace(torch.jit.script(model.to_torch()), *samples[0])
    for sample in samples:
        arrays = [each.numpy() for each in sample]
        np.testing.assert_allclose(again(*arrays), model(*arrays), rtol=1e-6)
    op = {"cond": "tm::cond", "while": "tm::loop"}[name]
    assert op in tmconvert.normalize(again).graph.to_text()


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]
