"""Speech, music and codecs: torchaudio, vocos, demucs, speechbrain, conformer: name -> flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torch_flow_makers import BATCH, found, made

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


MODELS: dict[str, Flow] = {
    # transforms
    "melspectrogram": wave(
        made("torchaudio.transforms", "MelSpectrogram", 16000, n_mels=64, n_fft=400), 2, 4000
    ),
    "mfcc": wave(
        made("torchaudio.transforms", "MFCC", 16000, n_mfcc=20, melkwargs={"n_mels": 40, "n_fft": 400}),
        2,
        4000,
    ),
    "spectrogram-db": wave(
        lambda: nn.Sequential(
            found("torchaudio.transforms", "Spectrogram")(n_fft=256, hop_length=64),
            found("torchaudio.transforms", "AmplitudeToDB")(top_db=80),
        ),
        2,
        4000,
    ),
    "resample": wave(made("torchaudio.transforms", "Resample", 44100, 16000), 2, 4410),
    "griffin-lim": wave(
        made("torchaudio.transforms", "GriffinLim", 256, n_iter=2, hop_length=64, rand_init=False, power=1.0),
        2,
        129,
        30,
        axes=MEL,
        call=lambda m, x: m(x.abs()),
    ),
    "lfcc": wave(made("torchaudio.transforms", "LFCC", 16000, n_lfcc=20, speckwargs={"n_fft": 400}), 2, 4000),
    "kaldi-fbank": wave(
        nn.Identity,
        1,
        4000,
        axes=FIXED,
        call=lambda m, x: found("torchaudio.compliance.kaldi", "fbank")(m(x), num_mel_bins=40, dither=0.0),
    ),
    "frontend-classifier": wave(Frontend, 2, 4800),
    "biquad-filters": wave(
        nn.Identity,
        2,
        400,
        axes=BATCH,
        call=lambda m, x: found("torchaudio.functional", "lowpass_biquad")(m(x), 16000, 2000.0),
    ),
    "spectral-denoiser": wave(Denoiser, 2, 4096),
    "istft-vocoder": wave(Istft, 2, 80, 40, axes=MEL),
    # torchaudio's models
    "ta-conv-tasnet": wave(
        made("torchaudio.models", "ConvTasNet", 2, 16, 64, 3, 32, 64, 3, 1), 2, 1, 2000, axes=CHANNEL_WAVE
    ),
    "ta-deepspeech": wave(
        made("torchaudio.models", "DeepSpeech", 40, 128, 29), 2, 1, 30, 40, axes={0: "batch", 2: "frames"}
    ),
    "ta-wav2letter": wave(made("torchaudio.models", "Wav2Letter", 29, "mfcc", 40), 2, 40, 60, axes=MEL),
    "ta-wav2vec2": wave(wav2vec2, 2, 6400, call=lambda m, x: m(x)[0]),
    "ta-wav2vec2-lengths": lengths(wav2vec2, 2, 6400, axes=WAVE, call=lambda m, x, n: m(x, n)),
    "ta-wav2vec2-ctc": wave(lambda: Ctc(Net(wav2vec2(), lambda m, x: m(x)[0])), 2, 6400),
    "ta-wav2vec2-layer-norm": wave(
        lambda: wav2vec2(extractor_mode="layer_norm", encoder_layer_norm_first=True),
        2,
        6400,
        call=lambda m, x: m(x)[0],
    ),
    "ta-wavlm": wave(wavlm, 2, 6400, call=lambda m, x: m(x)[0]),
    "ta-conformer": lengths(
        made("torchaudio.models", "Conformer", 80, 4, 160, 2, 15),
        2,
        50,
        80,
        axes=FRAMES,
        call=lambda m, x, n: m(x, n),
    ),
    "ta-emformer": lengths(emformer, 2, 36, 80, axes=BATCH, call=lambda m, x, n: m(x, n)),
    "ta-emformer-step": lengths(emformer, 2, 20, 80, axes=BATCH, call=lambda m, x, n: m.infer(x, n, None)),
    "ta-rnnt-transcribe": lengths(
        made("torchaudio.models", "emformer_rnnt_base", 32),
        1,
        132,
        80,
        axes=FIXED,
        call=lambda m, x, n: m.transcribe(x, n),
    ),
    "ta-hdemucs": wave(
        made("torchaudio.models", "HDemucs", ["drums", "other"], nfft=1024, depth=4, channels=8),
        1,
        2,
        8192,
        axes=BATCH,
    ),
    "ta-wavernn": called(
        made(
            "torchaudio.models",
            "WaveRNN",
            upsample_scales=[5, 5, 8],
            n_classes=64,
            hop_length=200,
            n_res_block=2,
            n_rnn=64,
            n_fc=64,
            n_freq=40,
            n_hidden=32,
            n_output=32,
        ),
        lambda: {"waveform": torch.randn(2, 1, 1200), "specgram": torch.randn(2, 1, 40, 10)},
        {"waveform": BATCH, "specgram": BATCH},
    ),
    "ta-squim-objective": wave(made("torchaudio.models", "squim_objective_base"), 1, 8000, axes={}),
    "ta-tacotron2-encoder": wave(
        lambda: found("torchaudio.models", "Tacotron2")(n_symbol=40).encoder,
        2,
        512,
        20,
        axes=BATCH,
        call=lambda m, x: m(x, torch.full((x.shape[0],), x.shape[2])),
    ),
    "ta-tacotron2-postnet": wave(
        lambda: found("torchaudio.models", "Tacotron2")(n_symbol=40).postnet, 2, 80, 40, axes=MEL
    ),
    # vocoders, separation, enhancement
    "vocos": wave(vocos, 2, 100, 30, axes=MEL),
    "vocos-same": wave(lambda: vocos(padding="same"), 2, 100, 30, axes=MEL),
    "vocos-mel-features": wave(
        made("vocos.feature_extractors", "MelSpectrogramFeatures", 24000, 512, 128, 80), 2, 4000
    ),
    "demucs-hybrid": wave(demucs, 1, 2, 8192, axes=BATCH),
    "demucs-htdemucs": wave(htdemucs, 1, 2, 8192, axes=BATCH),
    "demucs-time": wave(
        made(
            "demucs.demucs", "Demucs", ["drums", "other"], channels=8, depth=3, lstm_layers=1, normalize=True
        ),
        2,
        2,
        4096,
        axes=BATCH,
    ),
    "openunmix": wave(
        made("openunmix.model", "OpenUnmix", nb_bins=129, nb_channels=2, hidden_size=64, nb_layers=1),
        2,
        2,
        129,
        20,
        axes={0: "batch", 3: "frames"},
    ),
    "conformer-lucidrains": wave(
        made("conformer", "ConformerBlock", dim=128, dim_head=32, heads=4), 2, 40, 128, axes=FRAMES
    ),
    "asteroid-filterbank": wave(
        lambda: found("asteroid_filterbanks", "Encoder")(found("asteroid_filterbanks", "STFTFB")(128, 128)),
        2,
        1,
        1600,
        axes=BATCH,
    ),
    # speechbrain
    "sb-ecapa": wave(
        made(
            "speechbrain.lobes.models.ECAPA_TDNN", "ECAPA_TDNN", 80, channels=[64] * 4 + [192], lin_neurons=64
        ),
        2,
        60,
        80,
        axes=FRAMES,
    ),
    "sb-crdnn": wave(
        made("speechbrain.lobes.models.CRDNN", "CRDNN", input_size=40, rnn_neurons=64), 2, 60, 40, axes=FRAMES
    ),
    "sb-sepformer-block": wave(
        made("speechbrain.lobes.models.dual_path", "SBTransformerBlock", 2, 64, 4), 2, 30, 64, axes=FRAMES
    ),
    "sb-hifigan": wave(
        made(
            "speechbrain.lobes.models.HifiGAN",
            "HifiganGenerator",
            80,
            1,
            "1",
            [[1, 3, 5]] * 2,
            [3, 7],
            [8, 8],
            64,
            [4, 4],
        ),
        2,
        80,
        20,
        axes=MEL,
    ),
    # written by hand, as applications do
    "vad-step": called(
        Vad,
        lambda: {"chunk": torch.randn(2, 512), "state": torch.randn(2, 2, 64)},
        {"chunk": BATCH, "state": {1: "batch"}},
    ),
    "rvq-codec": wave(Quantizer, 2, 1, 800, axes=CHANNEL_WAVE),
}
