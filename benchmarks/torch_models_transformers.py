"""Models of ``transformers`` with tiny configurations and random weights: name -> (module, args, kwargs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torchvision_ops import declare

Example = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]
Factory = Callable[[], Example]

VOCABULARY, BATCH, LENGTH = 96, 2, 7
ENCODER = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
}
DECODER = {**ENCODER, "num_key_value_heads": 2, "use_cache": False}
PAIR = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "use_cache": False,
}
VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
    "image_size": 32,
    "patch_size": 8,
}


def ids(length: int = LENGTH) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (BATCH, length))


def mask(length: int = LENGTH) -> torch.Tensor:
    """All of the first sequence, all but two of the second."""
    rows = torch.ones(BATCH, length, dtype=torch.int64)
    rows[1, -2:] = 0
    return rows


def pixels(size: int = 32) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(BATCH, 3, size, size)}


def text() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(), "attention_mask": mask()}


def both() -> dict[str, torch.Tensor]:
    return {**text(), "decoder_input_ids": ids(5)}


def speech() -> dict[str, torch.Tensor]:
    return {"input_values": torch.randn(BATCH, 1200)}


def model(name: str, inputs: Callable[[], dict[str, Any]], *, config: str = "", **settings: Any) -> Factory:
    """The class ``name`` with its configuration class, or the one called ``config``."""

    def factory() -> Example:
        declare()
        import transformers

        torch.manual_seed(0)
        cls = getattr(transformers, name)
        made = getattr(transformers, config)(**settings) if config else cls.config_class(**settings)
        return cls(made).eval(), (), inputs()

    return factory


def nested(name: str, inputs: Callable[[], dict[str, Any]], **parts: dict[str, Any]) -> Factory:
    """A model whose configuration has configurations, given as dicts."""
    return model(name, inputs, **parts)


ALIBI = {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4, "use_cache": False}
GPT2 = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 37,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
    "use_cache": False,
}
WAV2VEC2 = {
    **{key: value for key, value in ENCODER.items() if key != "max_position_embeddings"},
    "conv_dim": (16, 16, 16),
    "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 32,
}
MIXTURE = {**DECODER, "intermediate_size": 48, "num_local_experts": 4, "num_experts_per_tok": 2}
CLIP_TEXT = {**ENCODER, "eos_token_id": VOCABULARY - 1, "bos_token_id": 1, "pad_token_id": 0}
RESNET = {
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 16, 32],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage4"],
    "model_type": "resnet",
}


def clip_inputs() -> dict[str, torch.Tensor]:
    texts = ids()
    texts[:, -1] = VOCABULARY - 1
    return {"input_ids": texts, "attention_mask": torch.ones_like(texts), **pixels()}


def layout_inputs() -> dict[str, torch.Tensor]:
    corner = torch.full((BATCH, LENGTH, 4), 7)  # any order of the numbers is a box
    return {**text(), "bbox": corner}


TEXT: dict[str, Factory] = {
    "bert": model("BertModel", text, **ENCODER),
    "bert-classifier": model("BertForSequenceClassification", text, **ENCODER),
    "roberta": model("RobertaModel", text, **ENCODER),
    "xlm-roberta": model("XLMRobertaForTokenClassification", text, **ENCODER),
    "distilbert": model(
        "DistilBertForMaskedLM",
        text,
        vocab_size=VOCABULARY,
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=37,
        max_position_embeddings=64,
    ),
    "albert": model("AlbertModel", text, embedding_size=16, **ENCODER),
    "electra": model("ElectraModel", text, embedding_size=16, **ENCODER),
    "deberta-v2": model(
        "DebertaV2Model",
        text,
        relative_attention=True,
        position_buckets=8,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        **ENCODER,
    ),
    "mpnet": model("MPNetModel", text, **ENCODER),
    "funnel": model(
        "FunnelModel",
        text,
        vocab_size=VOCABULARY,
        d_model=32,
        n_head=4,
        d_head=8,
        d_inner=37,
        block_sizes=[1, 1],
        num_decoder_layers=1,
    ),
    "modernbert": model(
        "ModernBertModel",
        text,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
        **ENCODER,
    ),
    "fnet": model(
        "FNetModel",
        lambda: {"input_ids": ids()},
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=37,
        max_position_embeddings=64,
    ),
    "xlnet": model("XLNetModel", text, vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=37),
    "longformer": model(
        "LongformerModel",
        lambda: {"input_ids": ids(8), "attention_mask": mask(8)},
        attention_window=4,
        **ENCODER,
    ),
    "bigbird": model("BigBirdModel", text, attention_type="original_full", **ENCODER),
    "layoutlm": model("LayoutLMModel", layout_inputs, max_2d_position_embeddings=1024, **ENCODER),
    "perceiver": model(
        "PerceiverForMaskedLM",
        lambda: {"inputs": ids(), "attention_mask": mask()},
        vocab_size=VOCABULARY,
        d_model=32,
        d_latents=32,
        num_latents=8,
        num_self_attends_per_block=2,
        num_self_attention_heads=4,
        num_cross_attention_heads=4,
        max_position_embeddings=64,
        qk_channels=32,
        v_channels=32,
    ),
}
CAUSAL: dict[str, Factory] = {
    "gpt2": model("GPT2LMHeadModel", text, use_cache=False, **GPT2),
    "gpt2-cache": model("GPT2LMHeadModel", text, use_cache=True, **GPT2),
    "gptj": model("GPTJForCausalLM", text, rotary_dim=4, use_cache=False, **GPT2),
    "gpt-neo": model(
        "GPTNeoForCausalLM",
        text,
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        window_size=4,
        max_position_embeddings=64,
        use_cache=False,
    ),
    "gpt-neox": model("GPTNeoXForCausalLM", text, use_cache=False, **ENCODER),
    "opt": model(
        "OPTForCausalLM",
        text,
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=37,
        word_embed_proj_dim=32,
        max_position_embeddings=64,
        use_cache=False,
    ),
    "bloom": model("BloomForCausalLM", text, **ALIBI),
    "falcon": model(
        "FalconForCausalLM",
        text,
        num_kv_heads=2,
        new_decoder_architecture=True,
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        use_cache=False,
    ),
    "mpt": model(
        "MptForCausalLM",
        text,
        vocab_size=VOCABULARY,
        d_model=32,
        n_heads=4,
        n_layers=2,
        max_seq_len=64,
        use_cache=False,
    ),
    "llama": model("LlamaForCausalLM", text, **DECODER),
    "llama-eager": model("LlamaForCausalLM", text, attn_implementation="eager", **DECODER),
    "llama-cache": model("LlamaForCausalLM", text, **{**DECODER, "use_cache": True}),
    "mistral": model("MistralForCausalLM", text, sliding_window=4, **DECODER),
    "qwen2": model("Qwen2ForCausalLM", text, **DECODER),
    "qwen3": model("Qwen3ForCausalLM", text, head_dim=8, **DECODER),
    "gemma": model("GemmaForCausalLM", text, head_dim=8, **DECODER),
    "gemma2": model("Gemma2ForCausalLM", text, head_dim=8, sliding_window=4, **DECODER),
    "gemma3": model(
        "Gemma3ForCausalLM", text, config="Gemma3TextConfig", head_dim=8, sliding_window=4, **DECODER
    ),
    "phi": model("PhiForCausalLM", text, **DECODER),
    "phi3": model("Phi3ForCausalLM", text, pad_token_id=0, **DECODER),
    "stablelm": model("StableLmForCausalLM", text, **DECODER),
    "starcoder2": model("Starcoder2ForCausalLM", text, **DECODER),
    "olmo2": model("Olmo2ForCausalLM", text, **DECODER),
    "cohere": model("CohereForCausalLM", text, **DECODER),
    "granite": model("GraniteForCausalLM", text, **DECODER),
    "smollm3": model("SmolLM3ForCausalLM", text, pad_token_id=0, **DECODER),
    "mixtral": model("MixtralForCausalLM", text, **MIXTURE),
    "qwen2-moe": model(
        "Qwen2MoeForCausalLM",
        text,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
        num_experts=4,
        num_experts_per_tok=2,
        **DECODER,
    ),
    "olmoe": model(
        "OlmoeForCausalLM",
        text,
        num_experts=4,
        **{k: v for k, v in MIXTURE.items() if k != "num_local_experts"},
    ),
    "mamba": model(
        "MambaForCausalLM",
        lambda: {"input_ids": ids()},
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=4,
        use_cache=False,
    ),
    "mamba2": model(
        "Mamba2ForCausalLM",
        lambda: {"input_ids": ids()},
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=4,
        num_heads=8,
        head_dim=8,
        n_groups=2,
        chunk_size=4,
        use_cache=False,
    ),
    "rwkv": model(
        "RwkvForCausalLM",
        lambda: {"input_ids": ids()},
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        attention_hidden_size=32,
        intermediate_size=37,
        context_length=64,
        use_cache=False,
    ),
}
TRANSLATION: dict[str, Factory] = {
    "t5": model("T5ForConditionalGeneration", both, **T5),
    "t5-encoder": model("T5EncoderModel", text, **T5),
    "mt5": model("MT5ForConditionalGeneration", both, feed_forward_proj="gated-gelu", **T5),
    "bart": model("BartForConditionalGeneration", both, **PAIR),
    "mbart": model("MBartModel", both, **PAIR),
    "marian": model("MarianMTModel", both, pad_token_id=0, decoder_start_token_id=0, **PAIR),
    "pegasus": model("PegasusForConditionalGeneration", both, **PAIR),
    "m2m100": model("M2M100ForConditionalGeneration", both, **PAIR),
    "blenderbot": model("BlenderbotForConditionalGeneration", both, **PAIR),
}
AUDIO: dict[str, Factory] = {
    "whisper": model(
        "WhisperForConditionalGeneration",
        lambda: {"input_features": torch.randn(BATCH, 16, 60), "decoder_input_ids": ids(5)},
        num_mel_bins=16,
        max_source_positions=30,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        **{k: v for k, v in PAIR.items() if k != "max_position_embeddings"},
    ),
    "wav2vec2": model("Wav2Vec2Model", speech, **WAV2VEC2),
    "wav2vec2-ctc": model("Wav2Vec2ForCTC", speech, **WAV2VEC2),
    "hubert": model("HubertModel", speech, **WAV2VEC2),
    "sew": model("SEWModel", speech, squeeze_factor=2, **WAV2VEC2),
    "wavlm": model("WavLMModel", speech, **WAV2VEC2),
    "unispeech": model("UniSpeechModel", speech, **WAV2VEC2),
    "ast": model(
        "ASTModel",
        lambda: {"input_values": torch.randn(BATCH, 48, 16)},
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=37,
        patch_size=4,
        max_length=48,
        num_mel_bins=16,
        frequency_stride=4,
        time_stride=4,
    ),
    "encodec": model(
        "EncodecModel",
        lambda: {"input_values": torch.randn(1, 1, 640)},
        num_filters=4,
        hidden_size=16,
        codebook_dim=16,
        codebook_size=16,
        upsampling_ratios=[4, 2],
        target_bandwidths=[48.0],
        num_lstm_layers=1,
    ),
    "speecht5": model(
        "SpeechT5Model",
        lambda: {
            "input_values": torch.randn(BATCH, 9, 32),
            "decoder_input_values": torch.randn(BATCH, 5, 32),
        },
        hidden_size=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=37,
        decoder_ffn_dim=37,
        use_cache=False,
    ),
}
IMAGES: dict[str, Factory] = {
    "vit": model("ViTModel", pixels, **VISION),
    "deit": model("DeiTModel", pixels, **VISION),
    "dinov2": model("Dinov2Model", pixels, **VISION),
    "vit-mae": model("ViTMSNModel", pixels, **VISION),
    "beit": model("BeitModel", pixels, use_relative_position_bias=True, **VISION),
    "data2vec": model("Data2VecVisionModel", pixels, use_shared_relative_position_bias=True, **VISION),
    "swin": model(
        "SwinModel",
        pixels,
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "swinv2": model(
        "Swinv2Model",
        pixels,
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "convnext": model(
        "ConvNextModel", pixels, hidden_sizes=[8, 16], depths=[1, 2], num_stages=2, image_size=32
    ),
    "convnextv2": model(
        "ConvNextV2Model", pixels, hidden_sizes=[8, 16], depths=[1, 2], num_stages=2, image_size=32
    ),
    "resnet": model("ResNetModel", pixels, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2]),
    "regnet": model(
        "RegNetModel", pixels, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], groups_width=8
    ),
    "mobilevit": model(
        "MobileViTModel",
        lambda: pixels(64),
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64],
        num_attention_heads=4,
        image_size=64,
    ),
    "segformer": model(
        "SegformerForSemanticSegmentation",
        lambda: pixels(64),
        hidden_sizes=[8, 16, 16, 32],
        num_attention_heads=[1, 2, 2, 4],
        depths=[1, 1, 1, 1],
        decoder_hidden_size=16,
    ),
    "pvt": model(
        "PvtModel",
        lambda: pixels(64),
        image_size=64,
        hidden_sizes=[8, 16, 16, 32],
        num_attention_heads=[1, 2, 2, 4],
        depths=[1, 1, 1, 1],
    ),
    "poolformer": model(
        "PoolFormerModel", lambda: pixels(64), hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]
    ),
    "levit": model(
        "LevitModel",
        lambda: pixels(64),
        image_size=64,
        hidden_sizes=[16, 32, 48],
        num_attention_heads=[2, 2, 2],
        key_dim=[8, 8, 8],
        depths=[1, 1, 1],
    ),
    "dpt": model(
        "DPTForDepthEstimation",
        pixels,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[8, 8, 16, 16],
        fusion_hidden_size=16,
        **{**VISION, "num_hidden_layers": 4},
    ),
    "detr": model(
        "DetrForObjectDetection",
        lambda: pixels(64),
        backbone_config=RESNET,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        num_queries=6,
        **{k: v for k, v in PAIR.items() if k not in ("vocab_size", "use_cache")},
    ),
    "conditional-detr": model(
        "ConditionalDetrForObjectDetection",
        lambda: pixels(64),
        backbone_config=RESNET,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        num_queries=6,
        **{k: v for k, v in PAIR.items() if k not in ("vocab_size", "use_cache")},
    ),
    "yolos": model(
        "YolosForObjectDetection", pixels, num_detection_tokens=4, **{**VISION, "image_size": [32, 32]}
    ),
    "perceiver-image": model(
        "PerceiverForImageClassificationLearned",
        lambda: {"inputs": torch.randn(BATCH, 3, 16, 16)},
        image_size=16,
        d_model=32,
        d_latents=32,
        num_latents=8,
        num_self_attends_per_block=2,
        num_self_attention_heads=4,
        num_cross_attention_heads=4,
        qk_channels=32,
        v_channels=32,
    ),
    "mobilenetv2": model("MobileNetV2Model", pixels, depth_multiplier=0.35, image_size=32),
    "efficientnet": model(
        "EfficientNetModel",
        pixels,
        width_coefficient=0.25,
        depth_coefficient=0.3,
        image_size=32,
        hidden_dim=320,
    ),
}
TOGETHER: dict[str, Factory] = {
    "clip": model("CLIPModel", clip_inputs, projection_dim=16, text_config=CLIP_TEXT, vision_config=VISION),
    "siglip": model("SiglipModel", clip_inputs, text_config=ENCODER, vision_config=VISION),
    "blip": model(
        "BlipForConditionalGeneration",
        lambda: {**text(), **pixels()},
        projection_dim=16,
        text_config={
            **ENCODER,
            "encoder_hidden_size": 32,
            "bos_token_id": 1,
            "pad_token_id": 0,
            "sep_token_id": 2,
            "eos_token_id": 2,
            "use_cache": False,
        },
        vision_config=VISION,
    ),
    "vilt": model("ViltModel", lambda: {**text(), **pixels()}, **{**ENCODER, **VISION}),
    "owlvit": model(
        "OwlViTModel",
        lambda: {**text(), **pixels()},
        projection_dim=16,
        text_config={**ENCODER, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
        vision_config=VISION,
    ),
}


def _with_codebooks(make: Factory) -> Factory:
    """An untrained codebook is all zeros, and every sound the same code."""

    def factory() -> Example:
        example = make()
        for name, buffer in example[0].named_buffers():
            if name.endswith("codebook.embed"):
                buffer.normal_(std=0.05)  # as far apart as what the encoder gives
        return example

    return factory


AUDIO["encodec"] = _with_codebooks(AUDIO["encodec"])
MODELS = {**TEXT, **CAUSAL, **TRANSLATION, **AUDIO, **IMAGES, **TOGETHER}
