"""The names of torch.fx for reading a traced graph."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tmconvert.ir import InternalGraph, TracedModule  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x)).flatten(1)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.weight = torch.nn.Parameter(torch.ones(72))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = self.block(x).split(72, dim=1)
        return torch.nn.functional.gelu(first * self.weight), second + y


@pytest.fixture(scope="module")
def net() -> TracedModule:
    return tmconvert.trace(Net().eval(), torch.randn(1, 3, 8, 8), torch.ones(1))


@pytest.fixture(scope="module")
def graph(net: TracedModule) -> InternalGraph:
    assert net.graph is not None
    return net.graph


def test_kinds_and_targets(graph: InternalGraph) -> None:
    assert [(node.op, node.target) for node in graph.nodes] == [
        ("placeholder", "x"),
        ("placeholder", "y"),
        ("call_module", "block"),
        ("call_method", "split"),
        ("call_method", "split"),
        ("get_attr", "weight"),
        ("call_method", "mul"),
        ("call_function", "torch.nn.functional.gelu"),
        ("call_method", "add"),
        ("output", "output"),
    ]
    assert len(graph.nodes) == 10


def test_arguments(graph: InternalGraph) -> None:
    x, y, block, first, second, weight, product, gelu, total, output = graph.nodes
    assert block.args == (x,)
    assert first.args == (block, 72)
    assert first.kwargs == {"dim": 1}
    assert weight.args == ()
    assert product.all_input_nodes == [first, weight]
    assert total.args == (second, y)
    assert output.args == ((gelu, total),)
    assert output.all_input_nodes == [gelu, total]
    assert [expr.op for expr in block.users] == ["call_method"]


def test_functions_are_found_by_the_function(graph: InternalGraph) -> None:
    (gelu,) = graph.find_nodes(op="call_function", target=torch.nn.functional.gelu)
    assert gelu.target == torch.nn.functional.gelu
    assert gelu.target != torch.relu
    assert gelu.target in (torch.relu, torch.nn.functional.gelu)
    assert gelu.target.__name__ == "gelu"
    assert graph.get_function_by_type(torch.relu).as_count() == 1
    assert graph.get_function_by_type("aten::relu").as_unique().target == torch.relu
    assert graph.get_method_by_type(torch.Tensor.flatten).as_count() == 1
    assert str(graph.get_module_by_type(torch.nn.Conv2d).as_list()) == "[conv]"
    assert graph.exprs().call_module(Block).as_unique().target == "block"


def test_neighbours(graph: InternalGraph) -> None:
    nodes = list(graph.nodes)
    assert [node.next for node in nodes] == [*nodes[1:], None]
    assert [node.prev for node in nodes] == [None, *nodes[:-1]]
    assert list(reversed(graph.nodes)) == nodes[::-1]
    assert nodes[3] in graph.nodes
    assert graph.output_node() is nodes[-1]


def test_notes_of_a_node_stay(graph: InternalGraph) -> None:
    node = next(iter(graph.nodes))
    node.meta["seen"] = True
    assert next(iter(graph.nodes)).meta == {"seen": True}


def test_a_flat_graph_keeps_the_names_of_the_modules(net: TracedModule) -> None:
    flat = net.flatten().graph
    assert flat is not None
    names = {node.qualname for node in flat.nodes()}
    assert {"Net.block.conv.weight", "Net.block.conv.[func_conv2d]", "Net.block.[func_relu]"} <= names
    assert flat.exprs().as_list() == list(flat)
