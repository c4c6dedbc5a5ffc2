"""Decoders of ``transformers`` with tiny configurations: name -> a function that makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
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
CONFIGURATIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama": ("LlamaConfig", {}),
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", HEADS),
    "qwen3-moe": ("Qwen3MoeConfig", {**HEADS, **EXPERTS, "num_experts": 4, "moe_intermediate_size": 24}),
    "mistral": ("MistralConfig", {"sliding_window": 8}),
    "mixtral": ("MixtralConfig", {**EXPERTS, "num_local_experts": 4}),
    "gemma2": ("Gemma2Config", {**HEADS, **WINDOWS, **EAGER, "query_pre_attn_scalar": 8}),
    "gemma3": ("Gemma3TextConfig", {**HEADS, **WINDOWS, "query_pre_attn_scalar": 8}),
    "phi3": ("Phi3Config", {}),
    "gpt-oss": ("GptOssConfig", {**HEADS, **WINDOWS, **EXPERTS, **EAGER, "num_local_experts": 4}),
    "deepseek-v3": ("DeepseekV3Config", {**EXPERTS, **LATENT}),
    "cohere2": ("Cohere2Config", WINDOWS),
    "glm4": ("Glm4Config", HEADS),
    "smollm3": ("SmolLM3Config", {}),
    "exaone4": ("Exaone4Config", WINDOWS),
    "granitemoe": ("GraniteMoeConfig", {**EXPERTS, "num_local_experts": 4}),
    "olmo2": ("Olmo2Config", {}),
    "olmo3": ("Olmo3Config", WINDOWS),
    "nemotron": ("NemotronConfig", {}),
    "starcoder2": ("Starcoder2Config", {"sliding_window": 8}),
    "stablelm": ("StableLmConfig", {}),
    "gpt-neox": ("GPTNeoXConfig", {}),
    "gpt2": ("GPT2Config", OLDER),
    "gptj": ("GPTJConfig", {**OLDER, **EAGER, "rotary_dim": 4}),
    "opt": ("OPTConfig", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "bloom": ("BloomConfig", {**OLDER, **EAGER}),
    "falcon": ("FalconConfig", {}),
    "ernie4-5": ("Ernie4_5Config", {}),
    "seed-oss": ("SeedOssConfig", HEADS),
    "hunyuan": ("HunYuanDenseV1Config", HEADS),
    "helium": ("HeliumConfig", HEADS),
    "afmoe": (
        "AfmoeConfig",
        {**HEADS, **WINDOWS, **MIXTURE, **ONE_GROUP, "num_dense_layers": 1, "num_shared_experts": 1},
    ),
    "cohere2-moe": ("Cohere2MoeConfig", {**HEADS, **WINDOWS, **MIXTURE}),
    "cwm": ("CwmConfig", {**HEADS, **WINDOWS}),
    "dots1": (
        "Dots1Config",
        {**HEADS, **WINDOWS, **MIXTURE, **ONE_GROUP, "n_routed_experts": 4, "n_shared_experts": 1}
        | {"first_k_dense_replace": 1},
    ),
    "exaone-moe": ("ExaoneMoeConfig", {**HEADS, **WINDOWS, **MIXTURE, "first_k_dense_replace": 1}),
    "flint": ("FlintConfig", {**EAGER, **HEADS, **WINDOWS}),
    "gemma4": ("Gemma4UnifiedTextConfig", {**HEADS, **WINDOWS}),
    "glm4-moe": (
        "Glm4MoeConfig",
        {**HEADS, **MIXTURE, "n_routed_experts": 4, "first_k_dense_replace": 1},
    ),
    "gpt-neo": (
        "GPTNeoConfig",
        {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 8}
        | EAGER,
    ),
    "granite-swa": ("GraniteSWAConfig", {**EAGER, **WINDOWS}),
    "laguna": ("LagunaConfig", {**HEADS, **WINDOWS, **MIXTURE}),
    "llama4": (
        "Llama4TextConfig",
        {**HEADS, **EXPERTS, "num_local_experts": 4, "intermediate_size_mlp": 48}
        | {"attention_chunk_size": 8, "layer_types": ["chunked_attention", "full_attention"]},
    ),
    "mellum": ("MellumConfig", {**HEADS, **WINDOWS, **MIXTURE}),
    "mimo-v2-flash": ("MiMoV2FlashConfig", {**EAGER, **HEADS, **WINDOWS, **MIXTURE}),
    "ministral": ("MinistralConfig", {**HEADS, **WINDOWS}),
    "ministral3": ("Ministral3Config", {**HEADS, "sliding_window": 8}),
    "modernbert-decoder": ("ModernBertDecoderConfig", WINDOWS),
    "phimoe": ("PhimoeConfig", {**EXPERTS, "num_local_experts": 4, "sliding_window": 8}),
    "qwen2-moe": ("Qwen2MoeConfig", {**MIXTURE, "shared_expert_intermediate_size": 24}),
    "vaultgemma": ("VaultGemmaConfig", {**EAGER, **HEADS, **WINDOWS, "query_pre_attn_scalar": 8}),
}


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


def drawn_anew(model: torch.nn.Module) -> torch.nn.Module:
    """Draws weights around their values, so that biases are not zero and scales not one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval()


FAMILIES: dict[str, Callable[[], torch.nn.Module]] = {
    name: (lambda name=name: causal_model(name)) for name in CONFIGURATIONS
}
