"""What the rows of ``torch_flows/other.models`` use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch_flow import Flow
from torch_flow_makers import BATCH, found, indices, made, normal, one

POINTS = {0: "batch", 1: "points"}

TOKENS = {0: "batch", 1: "sequence"}


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


def jit(make: Callable[[], nn.Module], *shape: int, traced: bool = False, frozen: bool = False) -> Flow:
    def compiled() -> nn.Module:
        torch.manual_seed(0)
        module = make().eval()
        done = torch.jit.trace(module, torch.randn(shape)) if traced else torch.jit.script(module)
        return torch.jit.freeze(done) if frozen else done

    return one(compiled, normal(*shape))


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
