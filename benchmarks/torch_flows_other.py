"""Adapters, agents, tables, points, series, TorchScript, solvers: name -> flow."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch_flow import Flow, sizes_of
from torch_flow_makers import BATCH, found, indices, made, normal, one, two
from torch_flow_networks import (
    DeepFm,
    Dgcnn,
    DLinear,
    Dlrm,
    FlowMatching,
    Fourier,
    Jumps,
    Kalman,
    Mixture,
    MultiScale,
    NBeats,
    PatchTst,
    PointNet,
    RungeKutta,
    Sampling,
    ScriptedLoop,
    Tcn,
    TwoTower,
    scripted_gate,
)

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


SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    # adapters
    "peft-lora": adapter("LoraConfig", r=4),
    "peft-dora": adapter("LoraConfig", r=4, use_dora=True),
    "peft-ia3": adapter("IA3Config", feedforward_modules=[]),
    "peft-loha": adapter("LoHaConfig", r=4),
    "peft-lokr": adapter("LoKrConfig", r=4),
    "peft-adalora": adapter("AdaLoraConfig", total_step=10),
    "peft-oft": adapter("OFTConfig", oft_block_size=16),
    "peft-hra": adapter("HRAConfig", r=8),
    "peft-boft": adapter("BOFTConfig", boft_block_size=4),
    "peft-fourierft": adapter("FourierFTConfig", n_frequency=50),
    # agents
    "sb3-ppo-actor": agent("PPO", lambda m, x: m(x, deterministic=True)[:2]),
    "sb3-ppo-predict": agent("PPO", lambda m, x: m._predict(x, deterministic=True)),
    "sb3-ppo-evaluate": agent("PPO", lambda m, x: m.evaluate_actions(x, x[:, :3])[:2]),
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
    "vitp-crossvit": vit("cross_vit", "CrossViT", **SIZES["vitp-crossvit"]),
    "vitp-vivit": one(
        made(
            "vit_pytorch.vivit",
            "ViViT",
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
        ),
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
        ),
        normal(2, 3, 224, 224),
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
    "tfno-2d": one(
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
        lambda m, x: m(x)[:2],
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
