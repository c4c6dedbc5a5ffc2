"""Models of ``transformers`` of sound and of time series: name -> flow."""

from __future__ import annotations

import torch
from torch_flow import Flow
from torch_flow_transformers import config, features, model, series, sound

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
    "dac": sound(
        "DacModel", "DacConfig", name="input_values", encoder_hidden_size=16, decoder_hidden_size=64
    ),
    # time series
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
