"""What PyTorch's tests of passes for torch.fx do, done to a traced graph.

``fx_suite.py`` has the test of PyTorch for each of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tests.frontends.torch.fx_cases import X, check, traced  # noqa: E402

Y = X.flip(0) + 2


class Convolution(torch.nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=2)
        self.bn = torch.nn.BatchNorm2d(4, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.bn(self.conv(x)))


def image() -> torch.Tensor:
    return torch.linspace(-1, 1, 3 * 81).reshape(1, 3, 9, 9)


def count(tm: Any, op: str) -> int:
    return int(tm.graph.get_function_by_type(op).as_count())


def test_batch_norms_go_into_convolutions() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(Convolution()).eval()
    net[0].bn.running_mean.uniform_(-1, 1)
    tm, _ = traced(net, image())
    fused = tmconvert.optimize(tm, ["FuseConvBn"])
    assert (count(fused, "aten::conv2d"), count(fused, "aten::batch_norm")) == (1, 0)
    check(fused, net(image()), image(), rtol=1e-4)


def test_batch_norms_without_statistics_stay() -> None:
    torch.manual_seed(0)
    net = Convolution(track_running_stats=False).eval()
    tm, _ = traced(net, image())
    check(tmconvert.optimize(tm, ["FuseConvBn"]), net(image()), image(), rtol=1e-4)


class Linear(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.param = torch.nn.Parameter(X.clone())
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
        w = self.linear(y).clamp(min=0.0, max=1.0)
        return z + w


@pytest.fixture
def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return Linear().eval()


def split(net: Any, by: Callable[[Any], Any], *inputs: torch.Tensor) -> Any:
    """Splits a traced model, and compares with PyTorch."""
    tm, _ = traced(net, *inputs)
    parts = tmconvert.split_module(tm, by)
    with torch.no_grad():
        check(parts, net(*inputs), *inputs, rtol=1e-5)
    return parts


def test_parts_by_callback(net: torch.nn.Module) -> None:
    tm, graph = traced(net, X, Y)
    for node in graph.nodes:
        node.meta["note"] = True
    parts = tmconvert.split_module(tm, lambda node: "first" if node.name == "add_out" else "last")
    check(parts, net(X, Y), X, Y, rtol=1e-5)
    children = dict(parts.named_children())
    assert set(children) == {"submod_first", "submod_last"}
    for child in children.values():
        assert child.graph is not None
        top = [node for node in child.graph.nodes if node.op == "call_method"]
        assert top and all(node.meta["note"] for node in top)


def test_parts_by_name() -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        first = a + b
        second = first * 2
        return torch.relu(second) + first

    parts = split(function, lambda node: 0 if node.target == "add" and "1" not in node.name else 1, X, Y)
    assert {path for path, _ in parts.named_children()} == {"submod_0", "submod_1"}


def test_arguments_by_keyword_in_parts() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
            return torch.relu(x + kwargs["foo"])

    tm = tmconvert.trace(Net(), X, foo=Y)
    parts = tmconvert.split_module(tm, lambda node: node.op)
    check(parts, torch.relu(X + Y), X, Y)


def test_one_part(net: torch.nn.Module) -> None:
    assert len(list(split(net, lambda node: 0, X, Y).named_children())) == 1


def test_parts_share_parameters() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.eye(4) * 2)
            self.lin = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(torch.mm(x, self.weight))
            return self.lin(torch.mm(self.lin(x), self.weight))

    number = 0

    def by(node: Any) -> int:
        nonlocal number
        number += node.target == "torch.nn.functional.linear"
        return number

    torch.manual_seed(0)
    parts = split(Twice(), by, X)
    children = dict(parts.named_children())
    assert list(children) == ["submod_0", "submod_1", "submod_2"]
    assert "lin.weight" in dict(children["submod_1"].named_parameters())
    assert "lin.weight" in dict(children["submod_2"].named_parameters())


OPERATORS = [torch.add, torch.mul, torch.sub, torch.div, torch.floor_divide, torch.remainder]
COMPARISONS = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]


@pytest.mark.parametrize("operator", [*OPERATORS, *COMPARISONS], ids=lambda each: each.__name__)
def test_operators_are_normalized(operator: Any) -> None:
    for function, inputs in ((lambda x, y: operator(x, y), (X, Y)), (lambda x: operator(x, 2), (X,))):
        tm, _ = traced(function, *inputs)
        normalized = tmconvert.normalize(tm)
        assert not normalized.graph.find_nodes(op="call_function", target=operator)
        check(normalized, function(*inputs), *inputs)


def test_arguments_are_normalized(net: torch.nn.Module) -> None:
    tm, _ = traced(net, X, Y)
    graph = tmconvert.normalize(tm).graph
    assert graph is not None
    calls = [expr for expr in graph if expr.op == "call_function"]
    assert calls and all(expr.target.startswith("aten::") for expr in calls)
    assert all(isinstance(expr.kwargs, dict) for expr in calls)
    (clamp, _) = [expr for expr in calls if expr.target == "aten::clamp"]
    assert (clamp.kwargs["min"], clamp.kwargs["max"]) == (0.0, 1.0)
