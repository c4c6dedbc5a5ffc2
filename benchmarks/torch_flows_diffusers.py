"""Models of ``diffusers`` with few layers and random weights: name -> flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch_flow import Axes, Example, Flow
from torchvision_ops import declare

LATENT = {"hidden_states": {0: "batch", 2: "height", 3: "width"}}
LATENT_SIZES = {"height": (12, 24, 20), "width": (20, 8, 32)}
IMAGE_SIZES = {"height": (48, 96, 64), "width": (64, 80, 32)}
HEADS = {"num_attention_heads": 4, "attention_head_dim": 32, "num_layers": 2}


def model(name: str, **sizes: Any) -> Any:
    """Returns the module; outputs are tuples."""
    declare()
    import diffusers

    return getattr(diffusers, name)(**sizes).eval()


def flow(
    name: str,
    inputs: Callable[[], Mapping[str, Any]],
    axes: Axes | None = None,
    *,
    frozen: bool = False,
    dict_flag: bool = True,
    **sizes: Any,
) -> Flow:
    """A model of keyword arguments. Without ``axes`` each tensor has an open batch."""

    def make() -> Example:
        return model(name, **sizes), (), {**inputs(), **({"return_dict": False} if dict_flag else {})}

    if axes is None:
        batched = [key for key, value in inputs().items() if isinstance(value, torch.Tensor) and value.dim()]
        axes = {key: {0: "batch"} for key in batched}
    return Flow(make, axes, sizes=LATENT_SIZES, freeze=frozen)


class Part(torch.nn.Module):
    """A method of an autoencoder as a module: ``encode`` or ``decode``."""

    def __init__(self, whole: Any, method: str) -> None:
        super().__init__()
        self.whole, self.method = whole, method

    def forward(self, sample: torch.Tensor) -> torch.Tensor:
        found = getattr(self.whole, self.method)(sample, return_dict=False)[0]
        return found.mode() if hasattr(found, "mode") and not isinstance(found, torch.Tensor) else found


def part(name: str, method: str, shape: tuple[int, ...], *, opened: bool = True, **sizes: Any) -> Flow:
    """The encoder (its mode) or the decoder of an autoencoder, with open batch, height and width."""
    last = len(shape) - 1
    axes = {0: "batch", **({last - 1: "height", last: "width"} if opened else {})}
    scale = IMAGE_SIZES if method == "encode" else LATENT_SIZES
    return Flow(
        lambda: (Part(model(name, **sizes), method), (torch.randn(shape),), {}), {"sample": axes}, scale
    )


def tokens(length: int, width: int, **more: Any) -> dict[str, Any]:
    """Hidden states of an image in tokens, and those of a text."""
    return {"hidden_states": torch.randn(2, length, width), **more}


def times(batch: int = 2) -> torch.Tensor:
    return torch.linspace(3, 700, batch)


def flux_ids(tokens_of_text: int = 7, side: int = 4, axes: int = 3) -> dict[str, Any]:
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    places = torch.zeros(side * side, axes)
    places[:, 1], places[:, 2] = rows.reshape(-1), columns.reshape(-1)
    return {"img_ids": places, "txt_ids": torch.zeros(tokens_of_text, axes)}


def flux_like(name: str, *, pooled: bool = True, axes: int = 3, **sizes: Any) -> Flow:
    def make() -> Mapping[str, Any]:
        given = {
            "hidden_states": torch.randn(2, 16, 16),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "timestep": torch.tensor([0.5, 0.9]),
            **flux_ids(axes=axes),
        }
        return given | ({"pooled_projections": torch.randn(2, 32)} if pooled else {})

    opened = {
        "hidden_states": {0: "batch", 1: "tokens"},
        "encoder_hidden_states": {0: "batch", 1: "sequence"},
        "timestep": {0: "batch"},
        "img_ids": {0: "tokens"},
        "txt_ids": {0: "sequence"},
    }
    if pooled:
        opened["pooled_projections"] = {0: "batch"}
    made = flow(name, make, opened, in_channels=16, num_layers=1, joint_attention_dim=64, **sizes)
    return Flow(made.make, made.axes, sizes={"tokens": (9, 12, 20)})


def video(batch: int = 1, channels: int = 16, frames: int = 3, side: int = 8) -> torch.Tensor:
    return torch.randn(batch, channels, frames, side, side)


def unet_inputs(**more: Any) -> dict[str, Any]:
    return {
        "sample": torch.randn(2, 4, 16, 16),
        "timestep": torch.tensor(37),
        "encoder_hidden_states": torch.randn(2, 7, 32),
        **more,
    }


UNET_AXES = {
    "sample": {0: "batch", 2: "height", 3: "width"},
    "encoder_hidden_states": {0: "batch", 1: "sequence"},
}
UNET = {
    "block_out_channels": (32, 64),
    "layers_per_block": 1,
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
    "norm_num_groups": 8,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
}
UPS = {"up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}
SDXL = {
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 8,
    "projection_class_embeddings_input_dim": 32 + 6 * 8,
    "use_linear_projection": True,
    "transformer_layers_per_block": (1, 2),
}
VAE = {
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "block_out_channels": (32, 64),
    "norm_num_groups": 8,
}


def sdxl_conditions() -> dict[str, Any]:
    return {"added_cond_kwargs": {"text_embeds": torch.randn(2, 32), "time_ids": torch.rand(2, 6) * 512}}


class Latents(torch.nn.Module):
    """The encoder of VQModel: its result has a name."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, sample: torch.Tensor) -> torch.Tensor:
        return self.whole.encode(sample).latents


def cogview_sizes() -> dict[str, Any]:
    return {
        "original_size": torch.tensor([[128.0, 128.0]] * 2),
        "target_size": torch.tensor([[128.0, 128.0]] * 2),
        "crop_coords": torch.tensor([[0.0, 0.0]] * 2),
    }


def allegro_places() -> Any:
    from diffusers.models.embeddings import get_3d_rotary_pos_embed_allegro

    times, rows, columns, *grids = get_3d_rotary_pos_embed_allegro(24, ((0, 0), (4, 4)), (4, 4), 3)
    places = torch.cartesian_prod(*(grid.to(torch.int64) for grid in grids))
    return (times, rows, columns), places.T.reshape(3, 1, -1)


def image_of(channels: int = 4, side: int = 16) -> dict[str, Any]:
    return {"hidden_states": torch.randn(2, channels, side, side), "timestep": times()}


MODELS: dict[str, Flow] = {
    # denoisers: U-Nets
    "unet-2d": flow(
        "UNet2DModel",
        lambda: {"sample": torch.randn(2, 3, 32, 32), "timestep": torch.tensor(11)},
        {"sample": {0: "batch", 2: "height", 3: "width"}},
        block_out_channels=(32, 64),
        layers_per_block=1,
        norm_num_groups=8,
        attention_head_dim=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    ),
    "unet-sd15": flow("UNet2DConditionModel", unet_inputs, UNET_AXES, **UNET, **UPS),
    "unet-sdxl": flow(
        "UNet2DConditionModel",
        lambda: unet_inputs(**sdxl_conditions()),
        UNET_AXES
        | {"added_cond_kwargs.text_embeds": {0: "batch"}, "added_cond_kwargs.time_ids": {0: "batch"}},
        **UNET,
        **UPS,
        **SDXL,
    ),
    "unet-lcm": flow(
        "UNet2DConditionModel",
        lambda: unet_inputs(timestep_cond=torch.randn(2, 16)),
        UNET_AXES | {"timestep_cond": {0: "batch"}},
        **UNET,
        **UPS,
        time_cond_proj_dim=16,
    ),
    "unet-class": flow(
        "UNet2DConditionModel",
        lambda: unet_inputs(class_labels=torch.tensor([1, 2])),
        UNET_AXES | {"class_labels": {0: "batch"}},
        **UNET,
        **UPS,
        num_class_embeds=8,
    ),
    "unet-kandinsky3": flow(
        "Kandinsky3UNet",
        lambda: unet_inputs(
            encoder_hidden_states=torch.randn(2, 7, 64), encoder_attention_mask=torch.ones(2, 7)
        ),
        {},
        time_embedding_dim=32,
        groups=8,
        attention_head_dim=8,
        layers_per_block=1,
        block_out_channels=(32, 64),
        cross_attention_dim=64,
        encoder_hid_dim=64,
    ),
    "unet-stable-cascade": flow(
        "StableCascadeUNet",
        lambda: {
            "sample": torch.randn(2, 16, 8, 8),
            "timestep_ratio": torch.rand(2),
            "clip_text_pooled": torch.randn(2, 1, 32),
        },
        conditioning_dim=64,
        block_out_channels=(64, 64),
        num_attention_heads=(4, 4),
        down_num_layers_per_block=(1, 1),
        up_num_layers_per_block=(1, 1),
        clip_text_pooled_in_channels=32,
    ),
    "unet-video": flow(
        "UNet3DConditionModel",
        lambda: {
            "sample": torch.randn(1, 4, 3, 16, 16),
            "timestep": torch.tensor([5]),
            "encoder_hidden_states": torch.randn(1, 7, 32),
        },
        {},
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=32,
        attention_head_dim=8,
        norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
    ),
    "unet-svd": flow(
        "UNetSpatioTemporalConditionModel",
        lambda: {
            "sample": torch.randn(1, 3, 8, 16, 16),
            "timestep": torch.tensor([5.0]),
            "encoder_hidden_states": torch.randn(1, 1, 32),
            "added_time_ids": torch.rand(1, 3),
        },
        {},
        block_out_channels=(32, 64),
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=24,
        layers_per_block=1,
        cross_attention_dim=32,
        num_attention_heads=(2, 4),
        down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
        up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
    ),
    "unet-motion": flow(
        "UNetMotionModel",
        lambda: {
            "sample": torch.randn(1, 4, 3, 16, 16),
            "timestep": torch.tensor([5]),
            "encoder_hidden_states": torch.randn(1, 7, 32),
        },
        {},
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=32,
        num_attention_heads=2,
        norm_num_groups=8,
        motion_num_attention_heads=2,
        down_block_types=("CrossAttnDownBlockMotion", "DownBlockMotion"),
        up_block_types=("UpBlockMotion", "CrossAttnUpBlockMotion"),
    ),
    "uvit-amused": flow(
        "UVit2DModel",
        lambda: {
            "input_ids": torch.randint(0, 60, (2, 8, 8)),
            "encoder_hidden_states": torch.randn(2, 7, 32),
            "pooled_text_emb": torch.randn(2, 32),
            "micro_conds": torch.rand(2, 5) * 512,
        },
        dict_flag=False,
        hidden_size=64,
        cond_embed_dim=32,
        micro_cond_encode_dim=8,
        micro_cond_embed_dim=40,
        encoder_hidden_size=32,
        vocab_size=64,
        codebook_size=60,
        in_channels=32,
        block_out_channels=32,
        num_res_blocks=1,
        block_num_heads=2,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        sample_size=8,
    ),
    # denoisers: transformers
    "dit": flow(
        "DiTTransformer2DModel",
        lambda: {**image_of(), "class_labels": torch.tensor([1, 5])},
        {},
        **HEADS,
        sample_size=16,
        norm_num_groups=8,
    ),
    "pixart": flow(
        "PixArtTransformer2DModel",
        lambda: {
            **image_of(),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
        },
        LATENT | {"encoder_hidden_states": {0: "batch", 1: "sequence"}, "timestep": {0: "batch"}},
        **HEADS,
        sample_size=16,
        cross_attention_dim=128,
        caption_channels=64,
    ),
    "sd3": flow(
        "SD3Transformer2DModel",
        lambda: {
            **image_of(16),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "pooled_projections": torch.randn(2, 32),
        },
        LATENT
        | {
            "encoder_hidden_states": {0: "batch", 1: "sequence"},
            "timestep": {0: "batch"},
            "pooled_projections": {0: "batch"},
        },
        **HEADS,
        sample_size=32,
        joint_attention_dim=64,
        caption_projection_dim=128,
        pooled_projection_dim=32,
        pos_embed_max_size=24,
        qk_norm="rms_norm",
        dual_attention_layers=(0,),
    ),
    "flux": flux_like(
        "FluxTransformer2DModel",
        pooled_projection_dim=32,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        axes_dims_rope=(8, 12, 12),
    ),
    "flux2": flux_like(
        "Flux2Transformer2DModel",
        pooled=False,
        axes=4,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        axes_dims_rope=(8, 8, 8, 8),
        timestep_guidance_channels=32,
        guidance_embeds=False,
    ),
    "chroma": flux_like(
        "ChromaTransformer2DModel",
        pooled=False,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        axes_dims_rope=(8, 12, 12),
        approximator_num_channels=16,
        approximator_hidden_dim=32,
        approximator_layers=1,
    ),
    "ovis-image": flux_like(
        "OvisImageTransformer2DModel",
        pooled=False,
        out_channels=16,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        axes_dims_rope=(8, 12, 12),
    ),
    "longcat-image": flux_like(
        "LongCatImageTransformer2DModel",
        pooled=False,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        axes_dims_rope=(8, 12, 12),
        pooled_projection_dim=32,
    ),
    "bria": flux_like(
        "BriaTransformer2DModel",
        pooled=False,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        axes_dims_rope=(8, 12, 12),
    ),
    "auraflow": flow(
        "AuraFlowTransformer2DModel",
        lambda: {**image_of(), "encoder_hidden_states": torch.randn(2, 7, 64)},
        LATENT | {"encoder_hidden_states": {0: "batch", 1: "sequence"}, "timestep": {0: "batch"}},
        sample_size=16,
        num_mmdit_layers=1,
        num_single_dit_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        joint_attention_dim=64,
        caption_projection_dim=128,
        pos_embed_max_size=64,
    ),
    "sana": flow(
        "SanaTransformer2DModel",
        lambda: {**image_of(), "encoder_hidden_states": torch.randn(2, 7, 64)},
        LATENT | {"encoder_hidden_states": {0: "batch", 1: "sequence"}, "timestep": {0: "batch"}},
        **HEADS,
        in_channels=4,
        out_channels=4,
        num_cross_attention_heads=4,
        cross_attention_head_dim=32,
        cross_attention_dim=128,
        caption_channels=64,
        sample_size=16,
    ),
    "lumina2": flow(
        "Lumina2Transformer2DModel",
        lambda: {
            **image_of(),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "encoder_attention_mask": torch.ones(2, 7, dtype=torch.bool),
        },
        frozen=True,
        in_channels=4,
        hidden_size=96,
        num_layers=1,
        num_refiner_layers=1,
        num_attention_heads=4,
        num_kv_heads=2,
        axes_dim_rope=(8, 8, 8),
        axes_lens=(32, 32, 32),
        cap_feat_dim=64,
        sample_size=16,
    ),
    "cogview3plus": flow(
        "CogView3PlusTransformer2DModel",
        lambda: {**image_of(), "encoder_hidden_states": torch.randn(2, 7, 64), **cogview_sizes()},
        in_channels=4,
        out_channels=4,
        num_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        text_embed_dim=64,
        time_embed_dim=32,
        condition_dim=16,
        pos_embed_max_size=16,
        sample_size=16,
    ),
    "cogview4": flow(
        "CogView4Transformer2DModel",
        lambda: {**image_of(), "encoder_hidden_states": torch.randn(2, 7, 64), **cogview_sizes()},
        LATENT
        | {
            "encoder_hidden_states": {0: "batch", 1: "sequence"},
            "timestep": {0: "batch"},
            "original_size": {0: "batch"},
            "target_size": {0: "batch"},
            "crop_coords": {0: "batch"},
        },
        in_channels=4,
        out_channels=4,
        num_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        text_embed_dim=64,
        time_embed_dim=32,
        condition_dim=16,
        pos_embed_max_size=16,
        sample_size=16,
        rope_axes_dim=(16, 16),
    ),
    "qwen-image": flow(
        "QwenImageTransformer2DModel",
        lambda: {
            "hidden_states": torch.randn(2, 16, 16),
            "timestep": torch.rand(2),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "encoder_hidden_states_mask": torch.ones(2, 7, dtype=torch.int64),
            "img_shapes": [(1, 4, 4)] * 2,
        },
        in_channels=16,
        out_channels=4,
        num_layers=2,
        attention_head_dim=32,
        num_attention_heads=4,
        joint_attention_dim=64,
        axes_dims_rope=(8, 12, 12),
    ),
    "z-image": Flow(
        lambda: (
            model(
                "ZImageTransformer2DModel",
                in_channels=4,
                dim=64,
                n_layers=1,
                n_refiner_layers=1,
                n_heads=2,
                n_kv_heads=2,
                cap_feat_dim=32,
                axes_dims=[8, 12, 12],
                axes_lens=[64, 64, 64],
            ),
            ([torch.randn(4, 1, 8, 8)], torch.tensor([0.3]), [torch.randn(7, 32)]),
            {"return_dict": False},
        )
    ),
    "hunyuan-image": flow(
        "HunyuanImageTransformer2DModel",
        lambda: {
            **image_of(),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "encoder_attention_mask": torch.ones(2, 7),
        },
        in_channels=4,
        out_channels=4,
        num_attention_heads=4,
        attention_head_dim=32,
        num_layers=1,
        num_single_layers=1,
        num_refiner_layers=1,
        patch_size=(2, 2),
        text_embed_dim=64,
        rope_axes_dim=(16, 16),
    ),
    "hunyuan-dit": flow(
        "HunyuanDiT2DModel",
        lambda: {
            **image_of(),
            "encoder_hidden_states": torch.randn(2, 7, 32),
            "text_embedding_mask": torch.ones(2, 7, dtype=torch.bool),
            "encoder_hidden_states_t5": torch.randn(2, 9, 48),
            "text_embedding_mask_t5": torch.ones(2, 9, dtype=torch.bool),
            "image_meta_size": torch.rand(2, 6) * 512,
            "style": torch.zeros(2, dtype=torch.int64),
            "image_rotary_emb": (torch.randn(64, 32), torch.randn(64, 32)),
        },
        **HEADS,
        in_channels=4,
        patch_size=2,
        sample_size=16,
        hidden_size=128,
        cross_attention_dim=32,
        cross_attention_dim_t5=48,
        pooled_projection_dim=16,
        text_len=7,
        text_len_t5=9,
    ),
    "prx": flow(
        "PRXTransformer2DModel",
        lambda: {**image_of(), "timestep": torch.rand(2), "encoder_hidden_states": torch.randn(2, 7, 64)},
        in_channels=4,
        context_in_dim=64,
        hidden_size=64,
        num_heads=2,
        depth=1,
        axes_dim=[16, 16],
    ),
    "omnigen": flow(
        "OmniGenTransformer2DModel",
        lambda: {
            **image_of(),
            "timestep": torch.rand(2),
            "input_ids": torch.randint(0, 60, (2, 7)),
            "input_img_latents": [],
            "input_image_sizes": {},
            "attention_mask": torch.ones(2, 72, 72),
            "position_ids": torch.arange(72).repeat(2, 1),
        },
        {},
        frozen=True,
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=64,
        num_layers=1,
        pad_token_id=0,
        vocab_size=64,
        pos_embed_max_size=16,
        time_step_dim=32,
        rope_scaling={"long_factor": [1.0] * 8, "short_factor": [1.0] * 8},
    ),
    "prior": flow(
        "PriorTransformer",
        lambda: {
            "hidden_states": torch.randn(2, 32),
            "timestep": times(),
            "proj_embedding": torch.randn(2, 32),
            "encoder_hidden_states": torch.randn(2, 7, 32),
            "attention_mask": torch.ones(2, 7, dtype=torch.bool),
        },
        **HEADS,
        embedding_dim=32,
        num_embeddings=7,
    ),
    "stable-audio": flow(
        "StableAudioDiTModel",
        lambda: {
            "hidden_states": torch.randn(2, 8, 32),
            "timestep": times(),
            "encoder_hidden_states": torch.randn(2, 5, 32),
            "global_hidden_states": torch.randn(2, 1, 48),
            "rotary_embedding": (torch.randn(33, 16), torch.randn(33, 16)),
        },
        sample_size=32,
        in_channels=8,
        out_channels=8,
        num_layers=1,
        attention_head_dim=32,
        num_attention_heads=4,
        num_key_value_attention_heads=2,
        cross_attention_dim=32,
        time_proj_dim=16,
        global_states_input_dim=48,
        cross_attention_input_dim=32,
    ),
    "ace-step": flow(
        "AceStepTransformer1DModel",
        lambda: {
            "hidden_states": torch.randn(2, 16, 16),
            "timestep": torch.rand(2),
            "timestep_r": torch.rand(2),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "context_latents": torch.randn(2, 16, 32),
        },
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        in_channels=48,
        audio_acoustic_hidden_dim=16,
        sliding_window=4,
    ),
    # denoisers of video
    "wan": flow(
        "WanTransformer3DModel",
        lambda: {
            "hidden_states": video(2),
            "timestep": times(),
            "encoder_hidden_states": torch.randn(2, 7, 64),
        },
        {
            "hidden_states": {0: "batch", 2: "time", 3: "height", 4: "width"},
            "timestep": {0: "batch"},
            "encoder_hidden_states": {0: "batch", 1: "sequence"},
        },
        **HEADS,
        text_dim=64,
        freq_dim=32,
        ffn_dim=128,
        rope_max_seq_len=64,
    ),
    "hunyuan-video": flow(
        "HunyuanVideoTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "encoder_attention_mask": torch.ones(1, 7),
            "pooled_projections": torch.randn(1, 32),
            "guidance": torch.tensor([1.0]),
        },
        {},
        in_channels=4,
        out_channels=4,
        num_attention_heads=4,
        attention_head_dim=32,
        num_layers=1,
        num_single_layers=1,
        num_refiner_layers=1,
        text_embed_dim=64,
        pooled_projection_dim=32,
        rope_axes_dim=(8, 12, 12),
    ),
    "cogvideox": flow(
        "CogVideoXTransformer3DModel",
        lambda: {
            "hidden_states": torch.randn(1, 3, 4, 8, 8),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
        },
        {},
        **HEADS,
        in_channels=4,
        out_channels=4,
        time_embed_dim=32,
        text_embed_dim=64,
        sample_width=8,
        sample_height=8,
        sample_frames=9,
        max_text_seq_length=7,
    ),
    "ltx": flow(
        "LTXVideoTransformer3DModel",
        lambda: {
            "hidden_states": torch.randn(1, 48, 16),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 32),
            "encoder_attention_mask": torch.ones(1, 7),
            "num_frames": 3,
            "height": 4,
            "width": 4,
        },
        {},
        **HEADS,
        in_channels=16,
        out_channels=16,
        cross_attention_dim=128,
        caption_channels=32,
    ),
    "mochi": flow(
        "MochiTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "encoder_attention_mask": torch.ones(1, 7, dtype=torch.bool),
        },
        {},
        num_attention_heads=4,
        attention_head_dim=32,
        num_layers=2,
        pooled_projection_dim=32,
        in_channels=4,
        text_embed_dim=64,
        time_embed_dim=32,
        max_sequence_length=7,
    ),
    "allegro": flow(
        "AllegroTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "encoder_attention_mask": torch.ones(1, 7),
            "attention_mask": torch.ones(1, 3, 8, 8),
            "image_rotary_emb": allegro_places(),
        },
        {},
        num_attention_heads=4,
        attention_head_dim=24,
        num_layers=1,
        cross_attention_dim=96,
        caption_channels=64,
        sample_height=8,
        sample_width=8,
        sample_frames=3,
    ),
    "latte": flow(
        "LatteTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
        },
        {},
        **HEADS,
        in_channels=4,
        out_channels=8,
        sample_size=8,
        patch_size=2,
        cross_attention_dim=128,
        attention_bias=True,
        activation_fn="gelu-approximate",
        num_embeds_ada_norm=1000,
        norm_type="ada_norm_single",
        norm_elementwise_affine=False,
        caption_channels=64,
        video_length=3,
    ),
    "cosmos": flow(
        "CosmosTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "padding_mask": torch.zeros(1, 1, 8, 8),
        },
        {},
        in_channels=4,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=32,
        num_layers=1,
        text_embed_dim=64,
        adaln_lora_dim=8,
        max_size=(4, 16, 16),
        extra_pos_embed_type=None,
    ),
    "sana-video": flow(
        "SanaVideoTransformer3DModel",
        lambda: {
            "hidden_states": video(1, 4),
            "timestep": times(1),
            "encoder_hidden_states": torch.randn(1, 7, 64),
        },
        {},
        in_channels=4,
        out_channels=4,
        num_attention_heads=4,
        attention_head_dim=32,
        num_layers=1,
        num_cross_attention_heads=4,
        cross_attention_head_dim=32,
        cross_attention_dim=128,
        caption_channels=64,
        sample_size=8,
    ),
    "kandinsky5": flow(
        "Kandinsky5Transformer3DModel",
        lambda: {
            "hidden_states": torch.randn(1, 3, 8, 8, 4),
            "encoder_hidden_states": torch.randn(1, 7, 64),
            "timestep": times(1),
            "pooled_projections": torch.randn(1, 32),
            "visual_rope_pos": [torch.arange(3), torch.arange(4), torch.arange(4)],
            "text_rope_pos": torch.arange(7),
        },
        {},
        in_text_dim=64,
        in_text_dim2=32,
        time_dim=32,
        model_dim=64,
        ff_dim=64,
        num_text_blocks=1,
        num_visual_blocks=1,
        axes_dims=(8, 12, 12),
    ),
    # control
    "controlnet": flow(
        "ControlNetModel",
        lambda: unet_inputs(controlnet_cond=torch.randn(2, 3, 128, 128)),
        UNET_AXES | {"controlnet_cond": {0: "batch", 2: "8*height", 3: "8*width"}},
        **UNET,
        conditioning_embedding_out_channels=(16, 16, 16, 16),
    ),
    "controlnet-union": flow(
        "ControlNetUnionModel",
        lambda: unet_inputs(
            controlnet_cond=[torch.randn(2, 3, 128, 128)],
            control_type=torch.tensor([[0.0, 1, 0, 0, 0, 0]] * 2),
            control_type_idx=[1],
            conditioning_scale=[1.0],
            **sdxl_conditions(),
        ),
        {},
        **UNET,
        **SDXL,
        conditioning_embedding_out_channels=(16, 16, 16, 16),
        num_trans_channel=32,
        num_trans_head=2,
        num_proj_channel=32,
    ),
    "controlnet-sd3": flow(
        "SD3ControlNetModel",
        lambda: {
            **image_of(16),
            "controlnet_cond": torch.randn(2, 16, 16, 16),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "pooled_projections": torch.randn(2, 32),
        },
        **HEADS,
        sample_size=32,
        joint_attention_dim=64,
        caption_projection_dim=128,
        pooled_projection_dim=32,
        pos_embed_max_size=24,
    ),
    "controlnet-flux": flow(
        "FluxControlNetModel",
        lambda: {
            "hidden_states": torch.randn(2, 16, 16),
            "controlnet_cond": torch.randn(2, 16, 16),
            "encoder_hidden_states": torch.randn(2, 7, 64),
            "timestep": torch.tensor([0.5, 0.9]),
            "pooled_projections": torch.randn(2, 32),
            **flux_ids(),
        },
        {},
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        joint_attention_dim=64,
        pooled_projection_dim=32,
        attention_head_dim=32,
        num_attention_heads=4,
        axes_dims_rope=[8, 12, 12],
    ),
    "controlnet-xs": flow(
        "UNetControlNetXSModel",
        lambda: unet_inputs(controlnet_cond=torch.randn(2, 3, 128, 128)),
        {},
        sample_size=16,
        block_out_channels=(32, 64),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        norm_num_groups=8,
        cross_attention_dim=32,
        num_attention_heads=2,
        ctrl_block_out_channels=(8, 16),
        ctrl_max_norm_num_groups=4,
        ctrl_num_attention_heads=2,
        ctrl_conditioning_embedding_out_channels=(8, 8, 8, 8),
    ),
    "t2i-adapter": Flow(
        lambda: (
            model("T2IAdapter", channels=[32, 64], num_res_blocks=1, downscale_factor=4),
            (torch.randn(2, 3, 64, 64),),
            {},
        ),
        {"x": {0: "batch", 2: "height", 3: "width"}},
        IMAGE_SIZES,
    ),
    "t2i-adapter-light": Flow(
        lambda: (
            model(
                "T2IAdapter",
                channels=[32, 64],
                num_res_blocks=1,
                downscale_factor=4,
                adapter_type="light_adapter",
            ),
            (torch.randn(2, 3, 64, 64),),
            {},
        ),
        {"x": {0: "batch", 2: "height", 3: "width"}},
        IMAGE_SIZES,
    ),
    # autoencoders
    "vae-kl-encode": part("AutoencoderKL", "encode", (2, 3, 64, 48), **VAE),
    "vae-kl-decode": part("AutoencoderKL", "decode", (2, 4, 16, 12), **VAE),
    "vae-tiny-encode": part(
        "AutoencoderTiny",
        "encode",
        (2, 3, 64, 48),
        encoder_block_out_channels=(32, 32),
        decoder_block_out_channels=(32, 32),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    ),
    "vae-tiny-decode": part(
        "AutoencoderTiny",
        "decode",
        (2, 4, 16, 12),
        encoder_block_out_channels=(32, 32),
        decoder_block_out_channels=(32, 32),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    ),
    "vae-dc-encode": part(
        "AutoencoderDC",
        "encode",
        (2, 3, 64, 64),
        latent_channels=4,
        attention_head_dim=8,
        encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"),
        encoder_block_out_channels=(16, 32),
        decoder_block_out_channels=(16, 32),
        encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=(1, 1),
        encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)),
    ),
    "vae-dc-decode": part(
        "AutoencoderDC",
        "decode",
        (2, 4, 16, 12),
        latent_channels=4,
        attention_head_dim=8,
        encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"),
        encoder_block_out_channels=(16, 32),
        decoder_block_out_channels=(16, 32),
        encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=(1, 1),
        encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)),
    ),
    "vq-decode": part("VQModel", "decode", (2, 4, 16, 12), **VAE, latent_channels=4, num_vq_embeddings=16),
    "vq-encode": Flow(
        lambda: (
            Latents(model("VQModel", **VAE, latent_channels=4, num_vq_embeddings=16)),
            (torch.randn(2, 3, 64, 48),),
            {},
        ),
        {"sample": {0: "batch", 2: "height", 3: "width"}},
        IMAGE_SIZES,
    ),
    "vae-temporal-decode": Flow(
        lambda: (
            model(
                "AutoencoderKLTemporalDecoder",
                down_block_types=("DownEncoderBlock2D",) * 2,
                block_out_channels=(32, 64),
                layers_per_block=1,
            ),
            (torch.randn(3, 3, 32, 32),),
            {"num_frames": 3, "return_dict": False},
        )
    ),
    "vae-wan-decode": part(
        "AutoencoderKLWan",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        base_dim=16,
        z_dim=4,
        dim_mult=[1, 2, 2, 2],
        num_res_blocks=1,
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    "vae-wan-encode": part(
        "AutoencoderKLWan",
        "encode",
        (1, 3, 5, 32, 32),
        opened=False,
        base_dim=16,
        z_dim=4,
        dim_mult=[1, 2, 2, 2],
        num_res_blocks=1,
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    "vae-qwen-image-decode": part(
        "AutoencoderKLQwenImage",
        "decode",
        (1, 4, 1, 8, 8),
        opened=False,
        base_dim=16,
        z_dim=4,
        dim_mult=[1, 2, 2, 2],
        num_res_blocks=1,
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    "vae-hunyuan-video-decode": part(
        "AutoencoderKLHunyuanVideo",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        latent_channels=4,
        block_out_channels=(16, 16, 16, 16),
        layers_per_block=1,
        norm_num_groups=4,
    ),
    "vae-ltx-decode": part(
        "AutoencoderKLLTXVideo",
        "decode",
        (1, 8, 2, 4, 4),
        opened=False,
        latent_channels=8,
        block_out_channels=(16, 16, 16, 16),
        decoder_block_out_channels=(16, 16, 16, 16),
        layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
    ),
    "vae-cogvideox-decode": part(
        "AutoencoderKLCogVideoX",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        latent_channels=4,
        block_out_channels=(16, 16, 16, 16),
        layers_per_block=1,
        norm_num_groups=4,
    ),
    "vae-mochi-decode": part(
        "AutoencoderKLMochi",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        latent_channels=4,
        encoder_block_out_channels=(16, 16, 16, 16),
        decoder_block_out_channels=(16, 16, 16, 16),
        layers_per_block=(1, 1, 1, 1, 1),
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    "vae-cosmos-decode": part(
        "AutoencoderKLCosmos",
        "decode",
        (1, 4, 2, 8, 8),
        opened=False,
        latent_channels=4,
        encoder_block_out_channels=(16, 32, 32, 32),
        decode_block_out_channels=(32, 32, 32, 32),
        attention_resolutions=(8,),
        resolution=64,
        num_layers=1,
        latents_mean=None,
        latents_std=None,
    ),
    "vae-oobleck-decode": part(
        "AutoencoderOobleck",
        "decode",
        (2, 8, 16),
        opened=False,
        encoder_hidden_size=16,
        downsampling_ratios=[2, 4],
        channel_multiples=[1, 2],
        decoder_channels=16,
        decoder_input_channels=8,
        audio_channels=2,
    ),
    "vae-oobleck-encode": part(
        "AutoencoderOobleck",
        "encode",
        (2, 2, 256),
        opened=False,
        encoder_hidden_size=16,
        downsampling_ratios=[2, 4],
        channel_multiples=[1, 2],
        decoder_channels=16,
        decoder_input_channels=8,
        audio_channels=2,
    ),
}
