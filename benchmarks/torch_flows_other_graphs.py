"""Networks of torch_geometric: name -> flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torch_flow_makers import SIZES, found, made, one

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


MODELS: dict[str, Flow] = {
    # torch_geometric
    "pyg-gcn": graph(made("torch_geometric.nn", "GCN", 16, 32, 2, 5)),
    "pyg-gcn-weighted": graph(
        made("torch_geometric.nn", "GCN", 16, 32, 2, 5), edge_weight=lambda: torch.rand(EDGE_COUNT)
    ),
    "pyg-sage": graph(made("torch_geometric.nn", "GraphSAGE", 16, 32, 2, 5)),
    "pyg-sage-max": graph(made("torch_geometric.nn", "GraphSAGE", 16, 32, 2, 5, aggr="max")),
    "pyg-gat": graph(made("torch_geometric.nn", "GAT", 16, 32, 2, 5, heads=4)),
    "pyg-gatv2": graph(made("torch_geometric.nn", "GAT", 16, 32, 2, 5, v2=True, heads=2)),
    "pyg-gin": graph(made("torch_geometric.nn", "GIN", 16, 32, 2, 5)),
    "pyg-edgecnn": graph(made("torch_geometric.nn", "EdgeCNN", 16, 32, 2, 5)),
    "pyg-pna": graph(
        made(
            "torch_geometric.nn",
            "PNA",
            16,
            32,
            2,
            5,
            aggregators=["mean", "max", "std"],
            scalers=["identity", "amplification"],
            deg=torch.tensor([0, 2, 4, 4]),
        ),
    ),
    "pyg-transformer": conv("TransformerConv"),
    "pyg-cheb": conv("ChebConv", 3),
    "pyg-arma": conv("ARMAConv"),
    "pyg-gen": conv("GENConv"),
    "pyg-tag": conv("TAGConv"),
    "pyg-res-gated": conv("ResGatedGraphConv"),
    "pyg-film": conv("FiLMConv"),
    "pyg-supergat": conv("SuperGATConv"),
    "pyg-leconv": conv("LEConv"),
    "pyg-clustergcn": conv("ClusterGCNConv"),
    "pyg-rgcn": graph(
        lambda: Convolutions("RGCNConv", 3), edge_type=lambda: torch.randint(0, 3, (EDGE_COUNT,))
    ),
    "pyg-gated": graph(made("torch_geometric.nn", "GatedGraphConv", 16, 2)),
    "pyg-hypergraph": graph(lambda: Convolutions("HypergraphConv")),
    "pyg-pool-sum": pooled("global_add_pool", 3),
    "pyg-pool-mean-nosize": pooled("global_mean_pool", None),
    "pyg-pool-max": pooled("global_max_pool", 3),
    "pyg-attentive-fp": graph(
        made("torch_geometric.nn", "AttentiveFP", 16, 32, 4, 5, 2, 2),
        edge_attr=lambda: torch.randn(EDGE_COUNT, 5),
        batch=lambda: torch.tensor([0] * 4 + [1] * 6),
    ),
    "pyg-lightgcn": one(
        made("torch_geometric.nn", "LightGCN", NODE_COUNT, 16, 2),
        edges,
        {1: "edges"},
        lambda m, x: m(x),
    ),
}
