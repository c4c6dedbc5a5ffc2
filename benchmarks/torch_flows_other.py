"""Graphs, adapters, tables, agents, points, series, TorchScript, solvers, wrappers: name -> flow."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch_flow import Example, Flow
from torchvision_ops import declare

BATCH = {0: "batch"}
NODES = {0: "nodes"}
GRAPH = {"x": NODES, "edge_index": {1: "edges"}}
POINTS = {0: "batch", 1: "points"}
SERIES = {0: "batch"}
TOKENS = {0: "batch", 1: "sequence"}
NODE_COUNT, EDGE_COUNT = 10, 30
SIZES = {
    "nodes": (12, 20, 33),
    "texts": (1, 5, 2),
    "length": (30, 64, 9),
}  # never fewer than the example's nodes


def found(module: str, name: str) -> Any:
    declare()
    return getattr(importlib.import_module(module), name)


def made(module: str, name: str, *args: Any, **settings: Any) -> Callable[[], nn.Module]:
    return lambda: found(module, name)(*args, **settings)


def edges() -> torch.Tensor:
    return torch.randint(0, NODE_COUNT, (2, EDGE_COUNT))


def graph(make: Callable[[], nn.Module], features: int = 16, **more: Callable[[], torch.Tensor]) -> Flow:
    """A network of torch_geometric on the features of nodes and an edge list."""

    def example() -> Example:
        given = {"x": torch.randn(NODE_COUNT, features), "edge_index": edges()}
        return make().eval(), (), given | {name: of() for name, of in more.items()}

    axes = {name: {0: "edges"} for name in more if name.startswith("edge")}
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
    """A graph classifier: nodes of several graphs, and the graph of each node; the number of graphs is fixed or not."""

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


def normal(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(shape)


def indices(high: int, *shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randint(0, high, shape)


class One(nn.Module):
    """A module of one tensor."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self.module, x)


def plain(module: nn.Module, x: torch.Tensor) -> Any:
    return module(x)


def one(
    make: Callable[[], nn.Module],
    x: Callable[[], torch.Tensor],
    axes: Mapping[int, str] = BATCH,
    call: Callable[..., Any] = plain,
) -> Flow:
    def example() -> Example:
        torch.manual_seed(0)
        return One(make().eval(), call).eval(), (), {"x": x()}

    return Flow(example, {"x": axes}, SIZES)


class Two(nn.Module):
    """A module of two tensors."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.call(self.module, x, y)


def two(
    make: Callable[[], nn.Module],
    x: Callable[[], torch.Tensor],
    y: Callable[[], torch.Tensor],
    axes: tuple[Mapping[int, str], Mapping[int, str]] = (BATCH, BATCH),
    call: Callable[..., Any] = lambda m, x, y: m(x, y),
) -> Flow:
    def example() -> Example:
        torch.manual_seed(0)
        return Two(make().eval(), call).eval(), (), {"x": x(), "y": y()}

    return Flow(example, {"x": axes[0], "y": axes[1]})


# adapters


class Attention(nn.Module):
    """A block of a small transformer, whose linear layers have the names that adapters look for."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.out_proj, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (4, -1)).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out_proj(mixed)
        return x + self.mlp(self.norm(x))


def adapter(kind: str, **settings: Any) -> Flow:
    """An adapter of peft on two blocks, its zeros drawn anew."""

    def make() -> nn.Module:
        config = found("peft", kind)(target_modules=["q_proj", "v_proj"], **settings)
        model = found("peft", "inject_adapter_in_model")(config, nn.Sequential(Attention(), Attention()))
        for parameter in model.parameters():
            if not parameter.any():
                nn.init.normal_(parameter, std=0.05)
        return model

    return one(make, normal(2, 9, 64), TOKENS)


# agents


def agent(algorithm: str, call: Callable[..., Any]) -> Flow:
    """The policy of an agent of stable-baselines3, on observations."""

    def make() -> nn.Module:
        spaces = importlib.import_module("gymnasium.spaces")
        actions = spaces.Discrete(3) if algorithm == "DQN" else spaces.Box(-1, 1, (3,))
        observations = spaces.Box(-1, 1, (8,))
        kind = {
            "PPO": ("stable_baselines3.ppo.policies", "MlpPolicy"),
            "SAC": ("stable_baselines3.sac.policies", "SACPolicy"),
            "TD3": ("stable_baselines3.td3.policies", "TD3Policy"),
            "DQN": ("stable_baselines3.dqn.policies", "DQNPolicy"),
        }[algorithm]
        return found(*kind)(observations, actions, lambda _: 1e-3)

    return one(make, normal(2, 8), BATCH, call)


def pixels() -> Flow:
    def make() -> nn.Module:
        spaces = importlib.import_module("gymnasium.spaces")
        observations = spaces.Box(0, 255, (4, 84, 84), dtype="uint8")
        policy = found("stable_baselines3.common.policies", "ActorCriticCnnPolicy")
        return policy(observations, spaces.Discrete(6), lambda _: 1e-3)

    return one(
        make,
        lambda: torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8),
        BATCH,
        lambda m, x: m(x, deterministic=True),
    )


# recommendation and tables


class DeepFm(nn.Module):
    """Categories and numbers: pairwise products of embeddings beside a deep network."""

    def __init__(self, fields: int = 6, rows: int = 50, width: int = 8) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.arange(fields) * rows)
        self.table, self.linear = nn.Embedding(fields * rows, width), nn.Embedding(fields * rows, 1)
        self.deep = nn.Sequential(
            nn.Linear(fields * width + 4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ids = x + self.offsets
        e = self.table(ids)
        crossed = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        return (self.linear(ids).sum(1) + crossed + self.deep(torch.cat([e.flatten(1), y], 1))).sigmoid()


class Dlrm(nn.Module):
    """Bags of categories and dense features, with all dot products between them."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(40, 16, mode="sum") for _ in range(3)])
        self.bottom, self.top = nn.Linear(5, 16), nn.Linear(16 + 6, 1)
        self.register_buffer("upper", torch.triu_indices(4, 4, 1))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        dense = self.bottom(y).relu()
        rows = torch.stack([dense, *(bag(x[:, i]) for i, bag in enumerate(self.bags))], 1)
        products = torch.bmm(rows, rows.transpose(1, 2))[:, self.upper[0], self.upper[1]]
        return self.top(torch.cat([dense, products], 1)).sigmoid()


class TwoTower(nn.Module):
    """A user's history and items: the ten best of a catalogue."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(200, 32, padding_idx=0)
        self.gru = nn.GRU(32, 32, batch_first=True)

    def forward(self, x: torch.Tensor) -> Any:
        hidden = self.gru(self.items(x))[0]
        last = hidden[torch.arange(x.shape[0]), (x != 0).sum(1) - 1]
        scores = functional.normalize(last, dim=1) @ functional.normalize(self.items.weight, dim=1).T
        return torch.topk(scores, 10)


# points


class PointNet(nn.Module):
    """Points with a learned transform, pooled by their maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU())
        self.matrix = nn.Linear(32, 9)
        self.net = nn.Sequential(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(), nn.Conv1d(64, 128, 1))
        self.head = nn.Linear(128, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        matrix = self.matrix(self.transform(x).max(2)[0]).view(-1, 3, 3) + torch.eye(3)
        x = torch.bmm(x.transpose(2, 1), matrix).transpose(2, 1)
        return self.head(self.net(x).max(2)[0]).log_softmax(1)


class Sampling(nn.Module):
    """Farthest points and the groups of their neighbours, as PointNet++ has them."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, count, _ = x.shape
        chosen = torch.zeros(batch, 8, dtype=torch.long)
        distance, farthest = torch.full((batch, count), 1e10), torch.zeros(batch, dtype=torch.long)
        rows = torch.arange(batch)
        for i in range(8):
            chosen[:, i] = farthest
            center = x[rows, farthest].unsqueeze(1)
            distance = torch.minimum(distance, ((x - center) ** 2).sum(-1))
            farthest = distance.max(-1)[1]
        centers = x[rows[:, None], chosen]
        near = torch.cdist(centers, x).topk(6, largest=False)[1]
        groups = x[rows[:, None, None], near] - centers[:, :, None]
        return self.net(groups).amax(2)


class Dgcnn(nn.Module):
    """Edges to the nearest neighbours in feature space."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(6, 32, 1), nn.Conv2d(64, 64, 1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        for layer in self.layers:
            inner = -2 * torch.matmul(x.transpose(2, 1), x)
            square = (x**2).sum(1, keepdim=True)
            near = (-square - inner - square.transpose(2, 1)).topk(8, dim=-1)[1]
            batch, channels, count = x.shape
            flat = (near + torch.arange(batch).view(-1, 1, 1) * count).view(-1)
            gathered = (
                x.transpose(2, 1).reshape(batch * count, channels)[flat].view(batch, count, 8, channels)
            )
            own = x.transpose(2, 1).unsqueeze(2).expand(-1, -1, 8, -1)
            x = layer(torch.cat([gathered - own, own], 3).permute(0, 3, 1, 2)).relu().max(-1)[0]
        return x.max(2)[0]


# series


class DLinear(nn.Module):
    """A trend by a moving mean, and the rest; a linear layer for each."""

    def __init__(self) -> None:
        super().__init__()
        self.trend, self.rest = nn.Linear(96, 24), nn.Linear(96, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = torch.cat([x[:, :1].repeat(1, 12, 1), x, x[:, -1:].repeat(1, 12, 1)], 1)
        trend = functional.avg_pool1d(padded.transpose(1, 2), 25, 1)
        return (self.trend(trend) + self.rest(x.transpose(1, 2) - trend)).transpose(1, 2)


class PatchTst(nn.Module):
    """Patches of each channel through a transformer, with reversible normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(16, 64)
        self.position = nn.Parameter(torch.randn(11, 64) * 0.02)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
        self.head = nn.Linear(11 * 64, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, std = x.mean(1, keepdim=True), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        z = ((x - mean) / std).transpose(1, 2).unfold(-1, 16, 8)
        batch, channels = z.shape[:2]
        z = self.encoder((self.embed(z) + self.position).flatten(0, 1))
        return self.head(z.reshape(batch, channels, -1)).transpose(1, 2) * std + mean


class NBeats(nn.Module):
    """Blocks that take what they explain from the series, on a basis of sines."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 10)) for _ in range(3)]
        )
        grid = torch.arange(60) / 48
        self.register_buffer("basis", torch.stack([torch.cos(grid * math.pi * k) for k in range(10)]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        forecast = torch.zeros(x.shape[0], 12)
        for block in self.blocks:
            both = block(x) @ self.basis
            x, forecast = x - both[:, :48], forecast + both[:, 48:]
        return forecast


class Fourier(nn.Module):
    """The strongest frequencies of a series, and the series without the others."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x, dim=1)
        size = spectrum.abs().mean(2)
        kept = size >= size.topk(5, 1)[0][:, -1:]
        return self.layer(torch.fft.irfft(spectrum * kept.unsqueeze(2), n=x.shape[1], dim=1))


class Tcn(nn.Module):
    """Causal convolutions with growing dilation and weight norm."""

    def __init__(self) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.layers = nn.ModuleList([norm(nn.Conv1d(16, 16, 3, dilation=2**i)) for i in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            x = x + layer(functional.pad(x, (2 * 2**i, 0))).relu()
        return x[:, :, -1]


class MultiScale(nn.Module):
    """Means over growing windows of a series, as time mixers have them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(96 // 2**i, 24) for i in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, parts = x.transpose(1, 2), []
        for i, layer in enumerate(self.layers):
            parts.append(layer(functional.avg_pool1d(x, 2**i)))
        return torch.stack(parts, -1).mean(-1)


# TorchScript


@torch.jit.script
def scripted_gate(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(gate) + x.tanh() * (1.0 - torch.sigmoid(gate))


class ScriptedLoop(nn.Module):
    """A loop over layers in TorchScript."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])
        self.depth: int = 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
            kept.append(x)
        if x.dim() == 2 and self.depth > 2:
            x = x * 0.5
        return torch.cat(kept, 1) + x.repeat(1, 3)


def jit(make: Callable[[], nn.Module], *shape: int, traced: bool = False, frozen: bool = False) -> Flow:
    def compiled() -> nn.Module:
        torch.manual_seed(0)
        module = make().eval()
        done = torch.jit.trace(module, torch.randn(shape)) if traced else torch.jit.script(module)
        return torch.jit.freeze(done) if frozen else done

    return one(compiled, normal(*shape))


# solvers


class RungeKutta(nn.Module):
    """A neural differential equation, by eight steps of the fourth order."""

    def __init__(self) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 8))

    def rate(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.field(torch.cat([y, t.expand(y.shape[0], 1)], 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        times = torch.linspace(0, 1, 9)
        path = [x]
        for t, after in zip(times[:-1], times[1:], strict=True):
            h, y = after - t, path[-1]
            a = self.rate(t, y)
            b = self.rate(t + h / 2, y + h / 2 * a)
            c = self.rate(t + h / 2, y + h / 2 * b)
            d = self.rate(t + h, y + h * c)
            path.append(y + h / 6 * (a + 2 * b + 2 * c + d))
        return torch.stack(path, 1)


class FlowMatching(nn.Module):
    """Four steps of a sampler with guidance."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8 + 16 + 4, 64), nn.SiLU(), nn.Linear(64, 8))
        self.register_buffer("frequencies", torch.exp(-math.log(1000) * torch.arange(8) / 8))

    def velocity(self, x: torch.Tensor, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        angles = t[:, None] * self.frequencies
        return self.net(torch.cat([x, angles.sin(), angles.cos(), y], 1))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for step in range(4):
            t = torch.full((x.shape[0],), step / 4)
            given, free = self.velocity(x, t, y), self.velocity(x, t, torch.zeros_like(y))
            x = x + (free + 3.0 * (given - free)) / 4
        return x


class Jumps(nn.Module):
    """A normalizing flow: coupling layers with permutations, and the logarithm of their determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            [nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(3)]
        )
        self.register_buffer("order", torch.randperm(8))

    def forward(self, x: torch.Tensor) -> Any:
        total = torch.zeros(x.shape[0])
        for net in self.nets:
            kept, moved = x[:, self.order].chunk(2, 1)
            scale, shift = net(kept).chunk(2, 1)
            x = torch.cat([kept, moved * scale.tanh().exp() + shift], 1)
            total = total + scale.tanh().sum(1)
        density = torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(1)
        return x, density + total


class Mixture(nn.Module):
    """A mixture density network: means and the probability of a target."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 3 * 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        logits, mean, raw = self.net(x).chunk(3, 1)
        parts = torch.distributions.Normal(mean, functional.softplus(raw) + 1e-3)
        mixture = torch.distributions.MixtureSameFamily(torch.distributions.Categorical(logits=logits), parts)
        return mixture.mean, mixture.log_prob(y[:, 0])


class Kalman(nn.Module):
    """A filter over steps, with a gain from a solved system."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("step", torch.eye(4) + torch.diag(torch.full((3,), 0.1), 1))
        self.register_buffer("seen", torch.eye(4)[:2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, cov = torch.zeros(x.shape[0], 4, 1), torch.eye(4).expand(x.shape[0], 4, 4)
        for i in range(5):
            state, cov = self.step @ state, self.step @ cov @ self.step.T + 0.01 * torch.eye(4)
            s = self.seen @ cov @ self.seen.T + 0.1 * torch.eye(2)
            gain = torch.linalg.solve(s, self.seen @ cov).transpose(1, 2)
            state = state + gain @ (x[:, i, :, None] - self.seen @ state)
            cov = (torch.eye(4) - gain @ self.seen) @ cov
        return state.squeeze(-1)


def x_transformer(**settings: Any) -> nn.Module:
    wrapper, decoder = found("x_transformers", "TransformerWrapper"), found("x_transformers", "Decoder")
    return wrapper(num_tokens=256, max_seq_len=64, attn_layers=decoder(dim=128, depth=2, heads=4, **settings))


def x_encoder(**settings: Any) -> nn.Module:
    wrapper, encoder = found("x_transformers", "TransformerWrapper"), found("x_transformers", "Encoder")
    return wrapper(num_tokens=256, max_seq_len=64, attn_layers=encoder(dim=128, depth=2, heads=4, **settings))


def x_tokens(**settings: Any) -> Flow:
    return one(lambda: x_transformer(**settings), indices(256, 2, 16), TOKENS)


def vit(module: str, name: str, size: int = 64, **settings: Any) -> Flow:
    given = {"image_size": size, "num_classes": 10, **settings}
    return one(made(f"vit_pytorch.{module}", name, **given), normal(2, 3, size, size))


VIT = {"patch_size": 16, "dim": 64, "depth": 2, "heads": 4, "mlp_dim": 128}


def tabnet() -> nn.Module:
    return found("pytorch_tabnet.tab_network", "TabNet")(10, 3, group_attention_matrix=torch.eye(10))


def molecule(kind: str, **settings: Any) -> Flow:
    """A potential on atoms: their kinds, positions and the molecule of each."""

    def example() -> Example:
        torch.manual_seed(0)
        model = found("torch_geometric.nn.models", kind)(**settings).eval()
        given = {"x": torch.randint(1, 9, (NODE_COUNT,)), "y": torch.randn(NODE_COUNT, 3)}
        return Two(model, lambda m, z, pos: m(z, pos, torch.zeros_like(z))).eval(), (), given

    return Flow(example)


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
        ),  # noqa: E501
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
    "pyg-schnet": molecule("SchNet", hidden_channels=32, num_filters=32, num_interactions=2),
    # adapters
    "peft-lora": adapter("LoraConfig", r=4),
    "peft-dora": adapter("LoraConfig", r=4, use_dora=True),
    "peft-ia3": adapter("IA3Config", feedforward_modules=[]),
    "peft-loha": adapter("LoHaConfig", r=4),
    "peft-lokr": adapter("LoKrConfig", r=4),
    "peft-adalora": adapter("AdaLoraConfig", total_step=10),
    "peft-oft": adapter("OFTConfig", oft_block_size=16),
    "peft-vera": adapter("VeraConfig", r=4),
    "peft-boft": adapter("BOFTConfig", boft_block_size=4),
    "peft-fourierft": adapter("FourierFTConfig", n_frequency=50),
    # agents
    "sb3-ppo-actor": agent("PPO", lambda m, x: m(x, deterministic=True)),
    "sb3-ppo-predict": agent("PPO", lambda m, x: m._predict(x, deterministic=True)),
    "sb3-ppo-evaluate": agent("PPO", lambda m, x: m.evaluate_actions(x, x[:, :3])),
    "sb3-sac-actor": agent("SAC", lambda m, x: m.actor(x, deterministic=True)),
    "sb3-sac-critic": agent("SAC", lambda m, x: m.critic(x, x[:, :3])),
    "sb3-td3-actor": agent("TD3", lambda m, x: m.actor(x)),
    "sb3-dqn-greedy": agent("DQN", lambda m, x: (m.q_net(x), m.q_net._predict(x))),
    "sb3-cnn-policy": pixels(),
    # recommendation, tables
    "deepfm": two(DeepFm, indices(50, 3, 6), normal(3, 4)),
    "dlrm-bags": two(Dlrm, indices(40, 3, 3, 4), normal(3, 5)),
    "two-tower-top10": one(TwoTower, lambda: torch.randint(1, 200, (3, 7)), TOKENS),
    "tabnet": one(tabnet, normal(4, 10), BATCH, lambda m, x: m(x)),
    "tabnet-encoder": one(
        lambda: tabnet().tabnet.encoder, normal(4, 10), BATCH, lambda m, x: m.forward_masks(x)
    ),
    # x-transformers, vit_pytorch
    "x-decoder": x_tokens(),
    "x-decoder-rotary": x_tokens(rotary_pos_emb=True),
    "x-decoder-alibi": x_tokens(alibi_pos_bias=True, alibi_num_heads=2),
    "x-decoder-t5-bias": x_tokens(rel_pos_bias=True),
    "x-decoder-gqa-swiglu": x_tokens(attn_kv_heads=2, ff_swish=True, ff_glu=True, use_rmsnorm=True),
    "x-decoder-qknorm-xpos": x_tokens(rotary_xpos=True, attn_qk_norm=True),
    "x-decoder-flash": x_tokens(attn_flash=True),
    "x-decoder-talking-heads": x_tokens(attn_pre_talking_heads=True, ff_relu_squared=True),
    "x-encoder-dynamic-bias": one(
        lambda: x_encoder(dynamic_pos_bias=True), indices(256, 2, 16), TOKENS, lambda m, x: m(x, mask=x > 20)
    ),
    "x-encoder-sinks": one(
        lambda: x_encoder(attn_num_mem_kv=4, sandwich_norm=True), indices(256, 2, 16), TOKENS
    ),
    "vitp-simple": vit("simple_vit", "SimpleViT", **VIT),
    "vitp-cait": vit("cait", "CaiT", **{**VIT, "cls_depth": 1}),
    "vitp-cvt": one(
        made("vit_pytorch.cvt", "CvT", num_classes=10, s1_depth=1, s2_depth=1, s3_depth=1),
        normal(2, 3, 64, 64),
    ),
    "vitp-levit": vit("levit", "LeViT", dim=(64, 96, 128), depth=1, heads=(2, 3, 4), mlp_mult=2),
    "vitp-maxvit": one(
        made(
            "vit_pytorch.max_vit", "MaxViT", num_classes=10, dim=32, depth=(1, 1), dim_head=16, window_size=4
        ),
        normal(2, 3, 64, 64),
    ),
    "vitp-crossvit": vit(
        "cross_vit", "CrossViT", sm_dim=32, lg_dim=64, sm_patch_size=16, lg_patch_size=32, depth=1
    ),
    "vitp-vivit": one(
        made(
            "vit_pytorch.vivit",
            "ViT",
            image_size=32,
            image_patch_size=16,
            frames=4,
            frame_patch_size=2,
            num_classes=10,
            dim=64,
            spatial_depth=1,
            temporal_depth=1,
            heads=4,
            mlp_dim=128,
        ),  # noqa: E501
        normal(2, 3, 4, 32, 32),
    ),
    "vitp-twins": one(
        made(
            "vit_pytorch.twins_svt",
            "TwinsSVT",
            num_classes=10,
            s1_emb_dim=16,
            s2_emb_dim=32,
            s3_emb_dim=32,
            s4_emb_dim=64,
            s1_local_patch_size=4,
            s2_local_patch_size=4,
            s3_local_patch_size=2,
            s1_depth=1,
            s2_depth=1,
            s3_depth=1,
            s4_depth=1,
        ),  # noqa: E501
        normal(2, 3, 128, 128),
    ),
    "vitp-xcit": vit("xcit", "XCiT", **{**VIT, "cls_depth": 1}),
    "fno-2d": one(
        made(
            "neuralop.models",
            "FNO",
            n_modes=(8, 8),
            in_channels=2,
            out_channels=1,
            hidden_channels=16,
            n_layers=2,
        ),
        normal(2, 2, 32, 32),
    ),
    "uno-2d": one(
        made(
            "neuralop.models",
            "TFNO",
            n_modes=(6, 6),
            in_channels=2,
            out_channels=1,
            hidden_channels=16,
            n_layers=1,
        ),
        normal(2, 2, 24, 24),
    ),
    "vq-quantizer": one(
        made("vector_quantize_pytorch", "ResidualVQ", dim=32, codebook_size=64, num_quantizers=3),
        normal(2, 20, 32),
        TOKENS,
    ),
    "fsq-quantizer": one(made("vector_quantize_pytorch", "FSQ", [8, 5, 5, 5]), normal(2, 20, 4), TOKENS),
    "lfq-quantizer": one(
        made("vector_quantize_pytorch", "LFQ", dim=8, codebook_size=256), normal(2, 20, 8), TOKENS
    ),
    # points
    "pointnet": one(PointNet, normal(2, 64, 3), POINTS),
    "pointnet2-sampling": one(Sampling, normal(2, 64, 3), POINTS),
    "dgcnn": one(Dgcnn, normal(2, 64, 3), POINTS),
    # series
    "dlinear": one(DLinear, normal(2, 96, 7), {0: "batch"}),
    "patchtst": one(PatchTst, normal(2, 96, 7), {0: "batch"}),
    "nbeats": one(NBeats, normal(2, 48)),
    "fourier-topk": one(Fourier, normal(2, 48, 3), {0: "batch"}),
    "tcn-weight-norm": one(Tcn, normal(2, 16, 40), {0: "batch", 2: "length"}),
    "multi-scale": one(MultiScale, normal(2, 96, 7)),
    # TorchScript
    "jit-script-loop": jit(ScriptedLoop, 2, 16),
    "jit-script-frozen": jit(ScriptedLoop, 2, 16, frozen=True),
    "jit-trace-attention": jit(Attention, 2, 9, 64, traced=True),
    "jit-script-function": one(
        lambda: nn.Linear(16, 32), normal(2, 16), BATCH, lambda m, x: scripted_gate(*m(x).chunk(2, 1))
    ),
    "jit-trace-tcn-frozen": jit(Tcn, 2, 16, 40, traced=True, frozen=True),
    # solvers, flows, densities
    "ode-rk4": one(RungeKutta, normal(2, 8)),
    "flow-matching": two(FlowMatching, normal(2, 8), normal(2, 4)),
    "coupling-flow": one(Jumps, normal(2, 8)),
    "mixture-density": two(Mixture, normal(3, 8), normal(3, 1)),
    "kalman-filter": one(Kalman, normal(2, 5, 2)),
}
