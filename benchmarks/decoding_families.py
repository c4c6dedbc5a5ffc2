"""Decoders of ``transformers`` with tiny configurations: name -> a function that makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from rows import table
from torchvision_ops import declare

VOCABULARY = 97
TINY = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "tie_word_embeddings": False,
}
HEADS = {"head_dim": 8}
WINDOWS = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
EXPERTS = {"num_experts_per_tok": 2}
LATENT = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "n_group": 2,
    "topk_group": 1,
    "n_routed_experts": 4,
    "moe_intermediate_size": 24,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 4,
}
MIXTURE = {**EXPERTS, "num_experts": 4, "moe_intermediate_size": 24}
ONE_GROUP = {"n_group": 1, "topk_group": 1}
OLDER = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
EAGER = {"attn_implementation": "eager"}
# name -> (the class of its configuration, what differs from TINY)
CONFIGURATIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = table(__file__, globals())


def causal_model(name: str) -> torch.nn.Module:
    """Returns the decoder with random weights that are neither zero nor one."""
    declare()
    import transformers

    kind, settings = CONFIGURATIONS[name]
    settings = dict(settings)
    attention = settings.pop("attn_implementation", "sdpa")
    config = getattr(transformers, kind)(**{**TINY, **settings})
    torch.manual_seed(0)
    return drawn_anew(transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention))


def whisper() -> torch.nn.Module:
    """Returns a speech model: an encoder, and a decoder with cross-attention."""
    declare()
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_source_positions=20,
        max_target_positions=128,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    torch.manual_seed(0)
    return drawn_anew(transformers.WhisperForConditionalGeneration(config))


def drawn_anew(model: torch.nn.Module, spread: float = 0.15) -> torch.nn.Module:
    """Draws weights around their values, so that biases are not zero and scales not one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * spread)
    return model.eval()


FAMILIES: dict[str, Callable[[], torch.nn.Module]] = {
    name: (lambda name=name: causal_model(name)) for name in CONFIGURATIONS
}
