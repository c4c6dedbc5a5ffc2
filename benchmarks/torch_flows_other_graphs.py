"""What the rows of ``torch_flows/other_graphs.models`` use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torch_flow_makers import SIZES, found

NODES = {0: "nodes"}

GRAPH = {"x": NODES, "edge_index": {1: "edges"}}

NODE_COUNT, EDGE_COUNT = 10, 30


def edges() -> torch.Tensor:
    return torch.randint(0, NODE_COUNT, (2, EDGE_COUNT))


def graph(make: Callable[[], nn.Module], features: int = 16, **more: Callable[[], torch.Tensor]) -> Flow:
    """A network of torch_geometric on the features of nodes and an edge list."""

    def example() -> Example:
        given = {"x": torch.randn(NODE_COUNT, features), "edge_index": edges()}
        return make().eval(), (), given | {name: of() for name, of in more.items()}

    axes = {name: {0: "edges"} if name.startswith("edge") else NODES for name in more}
    return Flow(example, {**GRAPH, **axes}, SIZES)


class Convolutions(nn.Module):
    """Two convolutions, with what else each takes."""

    def __init__(self, kind: str, *args: Any, out: int = 16, **settings: Any) -> None:
        super().__init__()
        conv = found("torch_geometric.nn", kind)
        self.first, self.second = conv(16, 16, *args, **settings), conv(out, 8, *args, **settings)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x, edge_index, **more).relu(), edge_index, **more)


def conv(kind: str, *args: Any, out: int = 16, **settings: Any) -> Flow:
    return graph(lambda: Convolutions(kind, *args, out=out, **settings))


class Pooled(nn.Module):
    """A classifier of graphs: nodes of several graphs, and the graph of each node."""

    def __init__(self, pool: str, graphs: int | None) -> None:
        super().__init__()
        self.gnn = found("torch_geometric.nn", "GIN")(16, 32, 2)
        self.pool, self.graphs = found("torch_geometric.nn", pool), graphs
        self.head = nn.Linear(32, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.gnn(x, edge_index), batch, self.graphs)).log_softmax(1)


def pooled(pool: str, graphs: int | None) -> Flow:
    def batch() -> torch.Tensor:
        return torch.tensor([0] * 4 + [1] * 3 + [2] * 3)

    flow = graph(lambda: Pooled(pool, graphs), batch=batch)
    return Flow(flow.make, {**GRAPH, "batch": NODES}, SIZES)
