"""What the rows of ``torch_flows/transformers_multimodal.models`` use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_flow import Axes, Example, Flow
from torch_flow_transformers import VOCABULARY, config, model, tokens

IMAGE_TOKEN = 7
TEXT = {"vocab_size": VOCABULARY, "num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 96}
TEXT |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
EYES = {"num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
EYES |= {"image_size": 32, "patch_size": 8}
QWEN_EYES = {
    "depth": 2,
    "embed_dim": 32,
    "hidden_size": 32,
    "num_heads": 2,
    "patch_size": 4,
    "spatial_merge_size": 2,
}
GRID = torch.tensor([[1, 4, 4], [1, 4, 8]])


def prompt(images: int, batch: int = 2, image_token: int = IMAGE_TOKEN) -> dict[str, torch.Tensor]:
    """Tokens with places for the features of an image, and their mask."""
    ids = tokens(batch, 6 + images).clamp(min=20)
    ids[:, 1 : 1 + images] = image_token
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def same_tokens(leaf: Any) -> Any:
    """Other pixels; tokens stay, since the places of images count."""
    return torch.randn_like(leaf) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf


def other_words(leaf: Any) -> Any:
    """Other pixels, and other words, between the numbers of special tokens."""
    if not isinstance(leaf, torch.Tensor) or leaf.is_floating_point():
        return same_tokens(leaf)
    return torch.where(((leaf >= 20) & (leaf < 99)) | ((leaf >= 200) & (leaf < 900)), leaf + 1, leaf)


def seeing(
    kind: str,
    settings: str,
    inputs: Callable[[], dict[str, Any]],
    axes: Axes | None = None,
    *,
    freeze: bool = False,
    **sizes: Any,
) -> Flow:
    def make() -> Example:
        return model(kind, config(settings, **sizes)), (), {**inputs(), "use_cache": False}

    return Flow(make, axes or {}, other=same_tokens, freeze=freeze)


def patches(grid: torch.Tensor = GRID, width: int = 3 * 2 * 4 * 4) -> dict[str, torch.Tensor]:
    return {"hidden_states": torch.randn(int(grid.prod(1).sum()), width), "grid_thw": grid}


def tower(kind: str, settings: str, **sizes: Any) -> Flow:
    """A vision tower with images of several sizes in one sequence."""
    return Flow(
        lambda: (model(kind, config(settings, **sizes)), (), patches()), other=same_tokens, freeze=True
    )


def points(kind: str, settings: Any, size: int = 128) -> Flow:
    def make() -> Example:
        import transformers

        given = {
            "pixel_values": torch.randn(1, 3, size, size),
            "input_points": torch.tensor([[[[40.0, 60.0]]]]),
        }
        return (
            getattr(transformers, kind)(settings()).eval(),
            (),
            {**given, "input_labels": torch.tensor([[[1]]])},
        )

    return Flow(make, other=same_tokens)


def sam() -> Any:
    import transformers as t

    eyes = t.SamVisionConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=128,
        global_attn_indexes=[1],
        output_channels=32,
        window_size=4,
        mlp_dim=64,
        num_pos_feats=16,
    )
    mask = t.SamMaskDecoderConfig(hidden_size=32, mlp_dim=64, num_attention_heads=2, iou_head_hidden_dim=32)
    return t.SamConfig(
        vision_config=eyes,
        prompt_encoder_config=t.SamPromptEncoderConfig(hidden_size=32, image_size=128, patch_size=16),
        mask_decoder_config=mask,
    )


def sam2() -> Any:
    import transformers as t

    hiera = t.Sam2HieraDetConfig(
        hidden_size=12,
        embed_dim_per_stage=[12, 24, 48, 96],
        num_attention_heads_per_stage=[1, 2, 4, 8],
        blocks_per_stage=[1, 1, 2, 1],
        image_size=[128, 128],
        global_attention_blocks=[3],
        window_positional_embedding_background_size=[7, 7],
        window_size_per_stage=[4, 4, 4, 2],
    )
    eyes = t.Sam2VisionConfig(
        backbone_config=hiera,
        backbone_channel_list=[96, 48, 24, 12],
        backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
        fpn_hidden_size=32,
    )
    prompt_encoder = t.Sam2PromptEncoderConfig(hidden_size=32, image_size=128, patch_size=16)
    mask = t.Sam2MaskDecoderConfig(hidden_size=32, mlp_dim=64, num_attention_heads=2, iou_head_hidden_dim=32)
    return t.Sam2Config(vision_config=eyes, prompt_encoder_config=prompt_encoder, mask_decoder_config=mask)


def llava_like(kind: str, settings: str, eyes: str = "clip_vision_model", **sizes: Any) -> Flow:
    return seeing(
        kind,
        settings,
        lambda: {**prompt(16), "pixel_values": torch.randn(2, 3, 32, 32)},
        {"pixel_values": {0: "batch"}, "input_ids": {0: "batch"}, "attention_mask": {0: "batch"}},
        vision_config={"model_type": eyes, **EYES},
        text_config={"model_type": "llama", **TEXT},
        image_token_id=IMAGE_TOKEN,
        **sizes,
    )


def qwen(kind: str, settings: str, **sizes: Any) -> Flow:
    """A whole model of Qwen's: patches of one image, and its tokens."""
    return seeing(
        kind,
        settings,
        lambda: {
            **prompt(4, 1),
            "pixel_values": patches(GRID[:1])["hidden_states"],
            "image_grid_thw": GRID[:1],
            "mm_token_type_ids": torch.tensor([[0, 1, 1, 1, 1, 0, 0, 0, 0, 0]]),
        },
        freeze=True,  # the grid of patches is that of the example
        image_token_id=IMAGE_TOKEN,
        video_token_id=8,
        vision_start_token_id=9,
        vision_end_token_id=10,
        **sizes,
    )


def detector() -> Example:
    text = {
        "model_type": "bert",
        **{k: v for k, v in TEXT.items() if k not in ("num_key_value_heads", "head_dim")},
    }
    eyes = {
        "model_type": "swin",
        "embed_dim": 16,
        "depths": [1, 1, 1, 1],
        "num_heads": [1, 2, 2, 4],
        "window_size": 4,
        "image_size": 64,
        "out_features": ["stage2", "stage3", "stage4"],
    }
    settings = config(
        "GroundingDinoConfig",
        backbone_config=eyes,
        text_config=text,
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        num_queries=10,
    )
    words = torch.tensor([[101, 30, 31, 1012, 32, 1012, 102]]).clamp(max=VOCABULARY - 1)
    return (
        model("GroundingDinoForObjectDetection", settings),
        (),
        {
            "pixel_values": torch.randn(1, 3, 128, 128),
            "input_ids": words,
            "attention_mask": torch.ones_like(words),
            "token_type_ids": torch.zeros_like(words),
        },
    )


ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}}
