"""Models of ``transformers`` of text: name -> flow. Decoders are without a cache; see decoding.py for it."""

from __future__ import annotations

import torch
from torch_flow import Flow, sizes_of
from torch_flow_transformers import EXPERTS, SMALL, VOCABULARY, causal, config, model, pair, text

T5GEMMA = {**SMALL, "num_hidden_layers": 2, "vocab_size": VOCABULARY, "sliding_window": 4}
SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    # encoders
    "bert": text("BertModel", "BertConfig"),
    "bert-tokens": text("BertForTokenClassification", "BertConfig"),
    "bert-answers": text("BertForQuestionAnswering", "BertConfig"),
    "camembert": text("CamembertModel", "CamembertConfig"),
    "deberta-v1": text("DebertaModel", "DebertaConfig", max_relative_positions=32, relative_attention=True),
    "modernbert": text("ModernBertModel", "ModernBertConfig", num_hidden_layers=4),
    "modernbert-decoder": causal("ModernBertDecoderForCausalLM", "ModernBertDecoderConfig"),
    "mobilebert": text("MobileBertModel", "MobileBertConfig"),
    "squeezebert": text("SqueezeBertModel", "SqueezeBertConfig"),
    "roformer": text("RoFormerModel", "RoFormerConfig"),
    "convbert": text("ConvBertModel", "ConvBertConfig"),
    "ibert": text("IBertModel", "IBertConfig"),
    "nystromformer": text(
        "NystromformerModel", "NystromformerConfig", num_landmarks=9, segment_means_seq_len=9
    ),
    "luke": text("LukeModel", "LukeConfig", entity_vocab_size=100),
    "ernie": text("ErnieModel", "ErnieConfig"),
    "eurobert": text("EuroBertModel", "EuroBertConfig", **SMALL),
    "nomic": text("NomicBertModel", "NomicBertConfig"),
    "megatron": text("MegatronBertModel", "MegatronBertConfig", hidden_size=256, num_attention_heads=8),
    "xlm": text("XLMModel", "XLMConfig", emb_dim=256, n_heads=8),
    "esm": text("EsmModel", "EsmConfig", **SIZES["esm"]),
    "canine": Flow(
        lambda: (
            model("CanineModel", config("CanineConfig")),
            (),
            {"input_ids": torch.randint(32, 200, (2, 16))},
        ),
        {"input_ids": {0: "batch"}},
    ),
    # decoders without a cache: prompts and scores
    "llama": causal("LlamaForCausalLM", "LlamaConfig", **SMALL),
    "llama-classifier": text(
        "LlamaForSequenceClassification", "LlamaConfig", use_cache=False, **{**SMALL, "pad_token_id": 0}
    ),
    "llama-linear-rope": causal(
        "LlamaForCausalLM",
        "LlamaConfig",
        **SMALL,
        rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
    ),
    "llama3-rope": causal(
        "LlamaForCausalLM",
        "LlamaConfig",
        **SMALL,
        rope_parameters={
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
            "rope_theta": 1e4,
        },
    ),
    "llama-yarn": causal(
        "LlamaForCausalLM",
        "LlamaConfig",
        **SMALL,
        rope_parameters={
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 64,
            "rope_theta": 1e4,
        },
    ),
    "qwen3": causal("Qwen3ForCausalLM", "Qwen3Config", **SMALL),
    "qwen3-embedding": text("Qwen3Model", "Qwen3Config", use_cache=False, **SMALL),
    "qwen3-moe": causal("Qwen3MoeForCausalLM", "Qwen3MoeConfig", **SMALL, **EXPERTS, num_experts=4),
    "qwen3-next": causal(
        "Qwen3NextForCausalLM",
        "Qwen3NextConfig",
        **SMALL,
        **EXPERTS,
        num_experts=4,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        layer_types=["linear_attention", "full_attention"],
    ),
    "gemma3": causal("Gemma3ForCausalLM", "Gemma3TextConfig", **SMALL, sliding_window=4),
    "gemma3n": causal(
        "Gemma3nForCausalLM",
        "Gemma3nTextConfig",
        **{**SMALL, "intermediate_size": [512, 512]},
        hidden_size_per_layer_input=32,
        laurel_rank=16,
        num_kv_shared_layers=0,
        vocab_size_per_layer_input=VOCABULARY,
        activation_sparsity_pattern=[0.0, 0.0],
        layer_types=["sliding_attention", "full_attention"],
    ),
    "phi3": causal("Phi3ForCausalLM", "Phi3Config", **SIZES["phi3"]),
    "phimoe": causal("PhimoeForCausalLM", "PhimoeConfig", **SIZES["phimoe"]),
    "gpt-oss": causal(
        "GptOssForCausalLM", "GptOssConfig", **SMALL, num_local_experts=4, num_experts_per_tok=2
    ),
    "deepseek-v2": causal(
        "DeepseekV2ForCausalLM",
        "DeepseekV2Config",
        **{**SMALL, "num_key_value_heads": 8},
        **EXPERTS,
        **SIZES["deepseek-v2"],
    ),
    "deepseek-v3": causal(
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        **{**SMALL, "num_key_value_heads": 8, "head_dim": 16},
        **EXPERTS,
        **SIZES["deepseek-v3"],
    ),
    "glm4": causal("Glm4ForCausalLM", "Glm4Config", **SMALL),
    "cohere2": causal("Cohere2ForCausalLM", "Cohere2Config", **SMALL),
    "granitemoe": causal("GraniteMoeForCausalLM", "GraniteMoeConfig", **SIZES["granitemoe"]),
    "exaone4": causal("Exaone4ForCausalLM", "Exaone4Config", **SMALL, sliding_window=4),
    "ministral": causal("MinistralForCausalLM", "MinistralConfig", **SMALL),
    "nemotron": causal("NemotronForCausalLM", "NemotronConfig", **SMALL),
    "olmo3": causal("Olmo3ForCausalLM", "Olmo3Config", **SMALL),
    "helium": causal("HeliumForCausalLM", "HeliumConfig", **SMALL),
    "ernie4-5": causal("Ernie4_5ForCausalLM", "Ernie4_5Config", **SMALL),
    "arcee": causal("ArceeForCausalLM", "ArceeConfig", **SMALL),
    "seed-oss": causal("SeedOssForCausalLM", "SeedOssConfig", **SMALL),
    "lfm2": causal("Lfm2ForCausalLM", "Lfm2Config", **SMALL, layer_types=["conv", "full_attention"]),
    "hunyuan": causal("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Config", **SMALL),
    "bitnet": causal("BitNetForCausalLM", "BitNetConfig", **SMALL),
    "dbrx": causal(
        "DbrxForCausalLM",
        "DbrxConfig",
        d_model=256,
        n_heads=8,
        attn_config={"kv_n_heads": 4, "clip_qkv": 8.0, "rope_theta": 1e4},
    ),
    "codegen": causal("CodeGenForCausalLM", "CodeGenConfig", n_embd=256, n_head=8, rotary_dim=16),
    "biogpt": causal(
        "BioGptForCausalLM", "BioGptConfig", hidden_size=256, num_attention_heads=8, intermediate_size=512
    ),
    "persimmon": causal(
        "PersimmonForCausalLM",
        "PersimmonConfig",
        hidden_size=256,
        intermediate_size=512,
        num_attention_heads=8,
    ),
    "falcon-alibi": causal(
        "FalconForCausalLM", "FalconConfig", hidden_size=256, num_attention_heads=8, alibi=True
    ),
    "recurrentgemma": causal("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", **SIZES["recurrentgemma"]),
    "jamba": causal("JambaForCausalLM", "JambaConfig", **SIZES["jamba"]),
    "bamba": causal("BambaForCausalLM", "BambaConfig", attn_layer_indices=[1], **SIZES["bamba"]),
    "falcon-mamba": causal(
        "FalconMambaForCausalLM", "FalconMambaConfig", hidden_size=256, intermediate_size=512
    ),
    # encoder and decoder
    "t5gemma": pair("T5GemmaForConditionalGeneration", "T5GemmaConfig", encoder=T5GEMMA, decoder=T5GEMMA),
    "longt5": pair("LongT5ForConditionalGeneration", "LongT5Config", d_model=256, num_heads=4),
    "umt5": pair("UMT5ForConditionalGeneration", "UMT5Config", d_model=256, num_heads=4),
    "bigbird-pegasus": pair(
        "BigBirdPegasusForConditionalGeneration",
        "BigBirdPegasusConfig",
        attention_type="original_full",
        d_model=256,
    ),
    "prophetnet": pair("ProphetNetForConditionalGeneration", "ProphetNetConfig", **SIZES["prophetnet"]),
    "plbart": pair("PLBartForConditionalGeneration", "PLBartConfig"),
    "led": pair("LEDForConditionalGeneration", "LEDConfig", attention_window=4, d_model=256),
    "switch-transformers": pair(
        "SwitchTransformersForConditionalGeneration",
        "SwitchTransformersConfig",
        d_model=256,
        num_heads=4,
        num_experts=2,
    ),
}
