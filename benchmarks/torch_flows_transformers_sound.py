"""Models of ``transformers`` of sound and of time series: name -> flow."""

from __future__ import annotations

from typing import Any

import torch
from torch_flow import Flow, sizes_of
from torch_flow_transformers import config, features, model, series, sound, tokens

NARROW = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96}
WHISPER = {"d_model": 64, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 96}
WHISPER |= {"decoder_ffn_dim": 96, "max_source_positions": 100}
MIMI = {"hidden_size": 32, "num_filters": 4, "codebook_dim": 16, "codebook_size": 32, "num_quantizers": 4}
MIMI |= {"intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16}
MIMI |= {"vector_quantization_hidden_dimension": 16, "upsample_groups": 32}
DAC = {
    "encoder_hidden_size": 8,
    "decoder_hidden_size": 64,
    "codebook_size": 32,
    "n_codebooks": 2,
    "codebook_dim": 4,
}
CODEC_SIZES = {"samples": (3200, 6400, 8000)}
VITS = {"vocab_size": 40, "hidden_size": 16, "num_attention_heads": 2, "ffn_dim": 32, "flow_size": 16}
VITS |= {"spectrogram_bins": 8, "upsample_initial_channel": 16, "upsample_rates": [4, 4]}
VITS |= {"upsample_kernel_sizes": [8, 8], "use_stochastic_duration_prediction": False}
SPEECHT5 = {"vocab_size": 40, "hidden_size": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
SPEECHT5 |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "speech_decoder_prenet_units": 32}
SEAMLESS = {"hidden_size": 64, "vocab_size": 40, "t2u_vocab_size": 40, "unit_hifi_gan_vocab_size": 40}
SEAMLESS |= {
    "speech_encoder_layers": 2,
    "speech_encoder_attention_heads": 4,
    "encoder_layers": 1,
    "decoder_layers": 1,
}
SEAMLESS |= {"speech_encoder_intermediate_size": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
SEAMLESS |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "t2u_encoder_layers": 1}
SEAMLESS |= {"t2u_decoder_layers": 1, "t2u_encoder_attention_heads": 4, "t2u_decoder_attention_heads": 4}
SEAMLESS |= {"t2u_encoder_ffn_dim": 64, "t2u_decoder_ffn_dim": 64, "unit_embed_dim": 32, "spkr_embed_dim": 8}
SEAMLESS |= {"lang_embed_dim": 8, "upsample_initial_channel": 32}
FORECAST = {"prediction_length": 6, "context_length": 12, "lags_sequence": [1, 2, 3], "num_time_features": 2}
FORECAST |= {"d_model": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2}


def forecast() -> dict[str, torch.Tensor]:
    """Past values, times and masks of the models that forecast."""
    past = {"past_values": torch.rand(2, 15) + 1, "past_time_features": torch.randn(2, 15, 2)}
    seen = {"past_observed_mask": torch.ones(2, 15)}
    return {
        **past,
        **seen,
        "future_values": torch.rand(2, 6) + 1,
        "future_time_features": torch.randn(2, 6, 2),
    }


class Method(torch.nn.Module):
    """A method of a codec as a module: codes of a waveform, or the reverse."""

    def __init__(self, whole: Any, name: str) -> None:
        super().__init__()
        self.whole, self.name = whole, name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = getattr(self.whole, self.name)(x)
        return found[0]


class Decode(torch.nn.Module):
    """Encodec's decoder, without scales."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        return self.whole.decode(codes, [None])[0]


def codec(kind: str, settings: str, **sizes: Any) -> Any:
    """A codec with codebooks; those of an untrained one are zeros."""
    found = model(kind, config(settings, **sizes))
    for name, buffer in found.named_buffers():
        if name.endswith(("codebook.embed", "codebook.embed_sum")):
            buffer.normal_()
    return found


class First(torch.nn.Module):
    """The first output of a model that forecasts; the location that its scaler returns is constant."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(
        self,
        past_values: Any,
        past_time_features: Any,
        past_observed_mask: Any,
        future_values: Any,
        future: Any,
    ) -> Any:
        given = past_time_features, past_observed_mask, None, None, future_values, future
        return self.whole(past_values, *given)[0]


def quiet(module: Any) -> Any:
    """VITS without noise."""
    module.noise_scale = 0.0
    return module


SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    # sound
    "wav2vec2-conformer": sound("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig"),
    "wav2vec2-bert": features("Wav2Vec2BertModel", "Wav2Vec2BertConfig", (2, 50, 160)),
    "data2vec-audio": sound("Data2VecAudioModel", "Data2VecAudioConfig"),
    "sew-d": sound("SEWDModel", "SEWDConfig"),
    "hubert-ctc": sound("HubertForCTC", "HubertConfig"),
    "moonshine-encoder": Flow(
        lambda: (
            model("MoonshineModel", config("MoonshineConfig")).get_encoder(),
            (),
            {"input_values": torch.randn(2, 8000)},
        ),
        {"input_values": {0: "batch"}},
    ),
    "whisper-encoder": Flow(
        lambda: (
            model("WhisperModel", config("WhisperConfig")).get_encoder(),
            (),
            {"input_features": torch.randn(2, 80, 3000)},
        ),
        {"input_features": {0: "batch"}},
    ),
    "speech-to-text-encoder": Flow(
        lambda: (
            model("Speech2TextModel", config("Speech2TextConfig")).get_encoder(),
            (),
            {"input_features": torch.randn(2, 64, 80)},
        ),
        {"input_features": {0: "batch"}},
    ),
    "clap-audio": Flow(
        lambda: (
            model("ClapAudioModel", config("ClapAudioConfig", depths=[1, 1, 1, 1])),
            (),
            {"input_features": torch.randn(2, 1, 1001, 64)},
        ),
        {},
    ),
    "univnet": Flow(
        lambda: (
            model("UnivNetModel", config("UnivNetConfig")),
            (torch.randn(1, 20, 100), torch.randn(1, 20, 64)),
            {},
        ),
        {},
    ),
    "hifigan": Flow(
        lambda: (model("SpeechT5HifiGan", config("SpeechT5HifiGanConfig")), (torch.randn(2, 40, 80),), {}),
        {"spectrogram": {0: "batch", 1: "frames"}},
    ),
    "whisper": Flow(
        lambda: (
            model("WhisperForConditionalGeneration", config("WhisperConfig", **WHISPER, use_cache=False)),
            (),
            {"input_features": torch.randn(2, 80, 200), "decoder_input_ids": tokens(length=5)},
        ),
        {"input_features": {0: "batch"}, "decoder_input_ids": {0: "batch", 1: "target"}},
    ),
    "wav2vec2-ctc": sound("Wav2Vec2ForCTC", "Wav2Vec2Config", open_samples=True),
    "wavlm": sound("WavLMModel", "WavLMConfig", open_samples=True),
    "unispeech-sat": sound("UniSpeechSatModel", "UniSpeechSatConfig", open_samples=True),
    "sew": sound("SEWModel", "SEWConfig"),
    "mctct-like-parakeet": features("ParakeetEncoder", "ParakeetEncoderConfig", (2, 64, 80), **NARROW),
    "granite-speech-like-ast": Flow(
        lambda: (
            model("ASTModel", config("ASTConfig", **NARROW, max_length=128, num_mel_bins=32)),
            (),
            {"input_values": torch.randn(2, 128, 32)},
        ),
        {"input_values": {0: "batch"}},
    ),
    "encodec-encode": Flow(
        lambda: (Method(codec("EncodecModel", "EncodecConfig"), "encode"), (torch.randn(2, 1, 4800),), {}),
        {"x": {0: "batch", 2: "samples"}},
        CODEC_SIZES,
    ),
    "encodec-decode": Flow(
        lambda: (Decode(codec("EncodecModel", "EncodecConfig")), (torch.randint(0, 30, (1, 2, 8, 15)),), {}),
        {"codes": {1: "batch"}},
    ),
    "mimi-encode": Flow(
        lambda: (Method(codec("MimiModel", "MimiConfig", **MIMI), "encode"), (torch.randn(2, 1, 5760),), {}),
        {"x": {0: "batch"}},
    ),
    "mimi-decode": Flow(
        lambda: (
            Method(codec("MimiModel", "MimiConfig", **MIMI), "decode"),
            (torch.randint(0, 30, (2, 4, 6)),),
            {},
        ),
        {"x": {0: "batch"}},
    ),
    "dac-encode": Flow(
        lambda: (Method(codec("DacModel", "DacConfig", **DAC), "encode"), (torch.randn(2, 1, 1024),), {}),
        {"x": {0: "batch"}},
    ),
    "vits": Flow(
        lambda: (
            quiet(model("VitsModel", config("VitsConfig", **VITS))),
            (),
            {"input_ids": tokens(1, 9) % 30 + 1},
        ),
        random=True,
    ),
    "speecht5-encoder": Flow(
        lambda: (
            model("SpeechT5ForTextToSpeech", config("SpeechT5Config", **SPEECHT5)).speecht5.encoder,
            (),
            {"input_values": tokens() % 30},
        ),
        {"input_values": {0: "batch", 1: "sequence"}},
    ),
    "speecht5-asr": Flow(
        lambda: (
            model("SpeechT5ForSpeechToText", config("SpeechT5Config", **SPEECHT5)),
            (),
            {
                "input_values": torch.randn(2, 4000),
                "decoder_input_ids": tokens(2, 5) % 30,
                "use_cache": False,
            },
        ),
        {"input_values": {0: "batch"}, "decoder_input_ids": {0: "batch", 1: "target"}},
    ),
    "fastspeech2-conformer": Flow(
        lambda: (
            model("FastSpeech2ConformerModel", config("FastSpeech2ConformerConfig", vocab_size=40)),
            (),
            {"input_ids": tokens(1, 9) % 39 + 1},
        ),
        {},
    ),
    "seamless-vocoder": Flow(
        lambda: (
            model("SeamlessM4TCodeHifiGan", config("SeamlessM4TConfig", **SEAMLESS)),
            (tokens(1, 9) % 30, torch.tensor([[1]]), torch.tensor([[2]])),
            {},
        ),
        {},
    ),
    "seamless-speech-encoder": Flow(
        lambda: (
            model("SeamlessM4TModel", config("SeamlessM4TConfig", **SEAMLESS)).speech_encoder,
            (),
            {
                "input_features": torch.randn(2, 40, 160),
                "attention_mask": torch.ones(2, 40, dtype=torch.int64),
            },
        ),
        {"input_features": {0: "batch"}, "attention_mask": {0: "batch"}},
    ),
    "seamless-v2-speech-encoder": Flow(
        lambda: (
            model("SeamlessM4Tv2Model", config("SeamlessM4Tv2Config", **SEAMLESS)).speech_encoder,
            (),
            {
                "input_features": torch.randn(2, 40, 160),
                "attention_mask": torch.ones(2, 40, dtype=torch.int64),
            },
        ),
        {"input_features": {0: "batch"}, "attention_mask": {0: "batch"}},
    ),
    "musicgen-decoder": Flow(
        lambda: (
            model(
                "MusicgenForCausalLM",
                config(
                    "MusicgenDecoderConfig",
                    hidden_size=64,
                    ffn_dim=64,
                    num_attention_heads=4,
                    num_codebooks=4,
                    vocab_size=50,
                    use_cache=False,
                ),
            ),
            (),
            {"input_ids": torch.randint(0, 50, (8, 6)), "encoder_hidden_states": torch.randn(2, 5, 64)},
        ),
        {},
    ),
    "bark-fine": Flow(
        lambda: (
            model(
                "BarkFineModel",
                config(
                    "BarkFineConfig",
                    hidden_size=64,
                    num_heads=4,
                    input_vocab_size=50,
                    output_vocab_size=50,
                    block_size=64,
                ),
            ),
            (2, torch.randint(0, 40, (2, 9, 8))),
            {},
        ),
        {},
    ),
    # time series
    **{
        name: Flow(
            lambda kind=kind: (
                First(model(f"{kind}Model", config(f"{kind}Config", **FORECAST))),
                tuple(forecast().values()),
                {},
            )
        )
        for name, kind in (
            ("informer", "Informer"),
            ("autoformer", "Autoformer"),
            ("time-series-transformer", "TimeSeriesTransformer"),
        )
    },
    "timesfm": series(
        "TimesFmModelForPrediction",
        "TimesFmConfig",
        lambda: {"past_values": torch.randn(2, 64), "freq": torch.zeros(2, 1, dtype=torch.int64)},
        **SIZES["timesfm"],
    ),
    "patchtst": series("PatchTSTModel", "PatchTSTConfig", lambda: {"past_values": torch.randn(2, 32, 1)}),
    "patchtsmixer": series(
        "PatchTSMixerForPrediction", "PatchTSMixerConfig", lambda: {"past_values": torch.randn(2, 32, 1)}
    ),
    "decision-transformer": series(
        "DecisionTransformerModel",
        "DecisionTransformerConfig",
        lambda: {
            "states": torch.randn(1, 5, 17),
            "actions": torch.randn(1, 5, 4),
            "rewards": torch.randn(1, 5, 1),
            "returns_to_go": torch.randn(1, 5, 1),
            "timesteps": torch.arange(5)[None],
            "attention_mask": torch.ones(1, 5, dtype=torch.int64),
        },
    ),
}
