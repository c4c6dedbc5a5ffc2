"""What the rows of ``torch_flows/audio.models`` use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torch_flow_makers import BATCH, found

FIXED: dict[int, str] = {}
WAVE = {0: "batch", 1: "samples"}
CHANNEL_WAVE = {0: "batch", 2: "samples"}
FRAMES = {0: "batch", 1: "frames"}
MEL = {0: "batch", 2: "frames"}


class Net(nn.Module):
    """A module called as people wrap it."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, wave: torch.Tensor) -> Any:
        return self.call(self.module, wave)


def plain(module: nn.Module, wave: torch.Tensor) -> Any:
    return module(wave)


def wave(
    make: Callable[[], nn.Module],
    *shape: int,
    axes: Mapping[int, str] = WAVE,
    call: Callable[..., Any] = plain,
) -> Flow:
    """A model of a waveform or of features, of the shape."""

    def example() -> Example:
        torch.manual_seed(0)
        return Net(make().eval(), call).eval(), (), {"wave": torch.randn(shape) * 0.3}

    return Flow(example, {"wave": axes})


class Lengths(nn.Module):
    """A module of features and their lengths."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, features: torch.Tensor, lengths: torch.Tensor) -> Any:
        return self.call(self.module, features, lengths)


def lengths(
    make: Callable[[], nn.Module],
    *shape: int,
    axes: Mapping[int, str],
    call: Callable[..., Any],
    time: int = 1,
) -> Flow:
    def example() -> Example:
        given = {
            "features": torch.randn(shape) * 0.5,
            "lengths": torch.full((shape[0],), shape[time], dtype=torch.int64),
        }
        return Lengths(make().eval(), call).eval(), (), given

    known = {"lengths": axes[time]} if time in axes else {}
    return Flow(example, {"features": axes, "lengths": BATCH}, lengths=known)


def called(
    make: Callable[[], nn.Module],
    inputs: Callable[[], dict[str, torch.Tensor]],
    axes: Mapping[str, Mapping[int, str]],
) -> Flow:
    """A module called with named tensors."""

    def example() -> Example:
        return make().eval(), (), inputs()

    return Flow(example, axes)


class Frontend(nn.Module):
    """Log-mel features and a small network behind, from a waveform."""

    def __init__(self) -> None:
        super().__init__()
        self.mel = found("torchaudio.transforms", "MelSpectrogram")(
            16000, n_fft=400, hop_length=160, n_mels=40
        )
        self.net = nn.Sequential(
            nn.Conv1d(40, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()
        )
        self.head = nn.Linear(32, 12)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        features = torch.log(self.mel(wave) + 1e-6)
        features = (features - features.mean(2, keepdim=True)) / (features.std(2, keepdim=True) + 1e-5)
        return self.head(self.net(features)).softmax(1)


class Istft(nn.Module):
    """A magnitude and a phase from features, and the waveform of them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(80, 2 * 257, 7, padding=3)
        self.register_buffer("window", torch.hann_window(512))

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        magnitude, phase = self.conv(wave).chunk(2, 1)
        spectrum = torch.polar(magnitude.clamp(max=3).exp(), phase)
        return torch.istft(spectrum, 512, 128, 512, self.window, center=True)


class Denoiser(nn.Module):
    """A mask on a spectrum, from an LSTM over its frames."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(129, 64, 2, batch_first=True, bidirectional=True)
        self.mask = nn.Linear(128, 129)
        self.register_buffer("window", torch.hann_window(256))

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(wave, 256, 64, window=self.window, return_complex=True)
        mask = self.mask(self.lstm(spectrum.abs().transpose(1, 2))[0]).sigmoid().transpose(1, 2)
        return torch.istft(spectrum * mask, 256, 64, window=self.window, length=wave.shape[-1])


class Vad(nn.Module):
    """A step of voice activity detection: a chunk and the state of an LSTM, as silero has it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("basis", torch.randn(258, 1, 256) * 0.1)
        self.encoder = nn.Sequential(
            nn.Conv1d(129, 128, 3, padding=1), nn.ReLU(), nn.Conv1d(128, 64, 3, 2, 1), nn.ReLU()
        )
        self.cell = nn.LSTMCell(64, 64)
        self.head = nn.Conv1d(64, 1, 1)

    def forward(self, chunk: torch.Tensor, state: torch.Tensor) -> Any:
        x = nn.functional.pad(chunk, (0, 64), mode="reflect").unsqueeze(1)
        spectrum = nn.functional.conv1d(x, self.basis, stride=128)
        real, imaginary = spectrum.chunk(2, 1)
        x = self.encoder(torch.sqrt(real**2 + imaginary**2)).mean(2)
        hidden, cell = self.cell(x, (state[0], state[1]))
        return self.head(hidden.relu().unsqueeze(2)).sigmoid().squeeze(2), torch.stack([hidden, cell])


class Quantizer(nn.Module):
    """A residual vector quantization between a convolutional encoder and decoder, as codecs have it."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 32, 7, padding=3), nn.ELU(), nn.Conv1d(32, 32, 8, 4, 2))
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(32, 32, 8, 4, 2), nn.ELU(), nn.Conv1d(32, 1, 7, padding=3)
        )
        self.codebooks = nn.Parameter(torch.randn(4, 64, 32))

    def forward(self, wave: torch.Tensor) -> Any:
        rest = self.encoder(wave).transpose(1, 2)
        codes, total = [], torch.zeros_like(rest)
        for codebook in self.codebooks:
            code = torch.cdist(rest, codebook[None]).argmin(-1)
            chosen = nn.functional.embedding(code, codebook)
            rest, total = rest - chosen, total + chosen
            codes.append(code)
        return torch.stack(codes, 1), self.decoder(total.transpose(1, 2))


class Ctc(nn.Module):
    """Greedy decoding behind an acoustic model: the best labels, and where they are kept."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, wave: torch.Tensor) -> Any:
        scores = self.model(wave).log_softmax(-1)
        best, labels = scores.max(-1)
        before = nn.functional.pad(labels, (1, 0), value=-1)[:, :-1]
        return scores, labels, (labels != before) & (labels != 0), best.mean(-1)


def vocos(**head: Any) -> nn.Module:
    backbone = found("vocos.models", "VocosBackbone")(100, 128, 256, 2)
    return nn.Sequential(backbone, found("vocos.heads", "ISTFTHead")(128, 512, 128, **head))


def wav2vec2(**settings: Any) -> nn.Module:
    sizes = {
        "extractor_mode": "group_norm",
        "extractor_conv_layer_config": [(64, 10, 5)] + [(64, 3, 2)] * 4 + [(64, 2, 2)] * 2,
        "extractor_conv_bias": False,
        "encoder_embed_dim": 96,
        "encoder_projection_dropout": 0.0,
        "encoder_pos_conv_kernel": 32,
        "encoder_pos_conv_groups": 4,
        "encoder_num_layers": 2,
        "encoder_num_heads": 4,
        "encoder_attention_dropout": 0.0,
        "encoder_ff_interm_features": 192,
        "encoder_ff_interm_dropout": 0.0,
        "encoder_dropout": 0.0,
        "encoder_layer_norm_first": False,
        "encoder_layer_drop": 0.0,
        "aux_num_out": 29,
    }
    return found("torchaudio.models", "wav2vec2_model")(**(sizes | settings))


def wavlm() -> nn.Module:
    return found("torchaudio.models", "wavlm_model")(
        "group_norm", [(64, 10, 5)] + [(64, 3, 2)] * 4 + [(64, 2, 2)] * 2, False, 96, 0.0, 32, 4, 2, 4,
        320, 800, 0.0, 192, 0.0, 0.0, False, 0.0, 29,
    )  # fmt: skip


def emformer() -> nn.Module:
    return found("torchaudio.models", "Emformer")(
        80, 4, 160, 2, 16, left_context_length=16, right_context_length=4
    )


def demucs() -> nn.Module:
    return found("demucs.hdemucs", "HDemucs")(["drums", "other"], channels=8, nfft=1024, depth=4)


def htdemucs() -> nn.Module:
    return found("demucs.htdemucs", "HTDemucs")(
        ["drums", "other"], channels=16, nfft=1024, depth=4, t_layers=1, bottom_channels=64, segment=1,
        samplerate=8192, use_train_segment=False,
    )  # fmt: skip
