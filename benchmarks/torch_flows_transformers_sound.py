"""What the rows of ``torch_flows/transformers_sound.models`` use."""

from __future__ import annotations

from typing import Any

import torch
from torch_flow import Flow
from torch_flow_transformers import config, model

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


def forecaster(kind: str) -> Flow:
    """A model of a time series, with all inputs of its training."""
    return Flow(
        lambda: (
            First(model(f"{kind}Model", config(f"{kind}Config", **FORECAST))),
            tuple(forecast().values()),
            {},
        )
    )
