"""The word error rate of speech that a decoder generates, against ``generate`` of transformers."""

from __future__ import annotations

import csv
import wave
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(7)
LANGUAGES = {"<|en|>": 3, "<|de|>": 4}
WHISPER = {
    "lang_to_id": LANGUAGES,
    "task_to_id": {"transcribe": 5, "translate": 6},
    "no_timestamps_token_id": 7,
    "is_multilingual": True,
    "suppress_tokens": [2, 3, 4, 5, 6, 7, 8, 9],
    "begin_suppress_tokens": [10, 11],
    "max_length": 12,
}
WIDE = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "vocab_size": 61,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_target_positions": 64,
    "decoder_start_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "bos_token_id": 2,
}
MOONSHINE = {
    **{f"{side}_num_hidden_layers": 1 for side in ("encoder", "decoder")},
    **{f"{side}_num_attention_heads": 4 for side in ("encoder", "decoder")},
    **{f"{side}_num_key_value_heads": 4 for side in ("encoder", "decoder")},
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "bos_token_id": 2,
}
CONVOLVED = {"input_feat_per_channel": 8, "input_channels": 1, "conv_channels": 16}


def whisper(**settings: Any) -> tuple[Any, Any]:
    sizes = {"num_mel_bins": 8, "max_source_positions": 50}
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**WIDE, **sizes))
    model.generation_config.update(**{**WHISPER, **settings})
    return model, transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=1)


def moonshine() -> tuple[Any, Any]:
    model = transformers.MoonshineForConditionalGeneration(transformers.MoonshineConfig(**MOONSHINE))
    model.generation_config.update(max_length=14, suppress_tokens=[9], forced_eos_token_id=1)
    return model, transformers.Wav2Vec2FeatureExtractor(do_normalize=False, return_attention_mask=True)


def speech_to_text() -> tuple[Any, Any]:
    config = transformers.Speech2TextConfig(**WIDE, **CONVOLVED, max_source_positions=200)
    model = transformers.Speech2TextForConditionalGeneration(config)
    model.generation_config.update(max_length=14, forced_bos_token_id=20)
    return model, transformers.Speech2TextFeatureExtractor(feature_size=8, num_mel_bins=8)


MODELS = {
    "whisper": whisper,
    "whisper of a language": lambda: whisper(language="de", task="translate"),
    "whisper of one language": lambda: whisper(lang_to_id=None, task_to_id=None, suppress_tokens=None),
    "moonshine": moonshine,
    "speech to text": speech_to_text,
}


def saved(name: str, folder: Path) -> tuple[Any, Any, Any]:
    """Writes a model with random weights, and returns it with its feature extractor and tokenizer."""
    torch.manual_seed(1)
    model, extractor = MODELS[name]()
    for each in ("lang_to_id", "task_to_id"):
        if getattr(model.generation_config, each, 0) is None:
            delattr(model.generation_config, each)
    for each in model.eval().parameters():
        each.data.add_(torch.randn_like(each) * 0.15).mul_(2)
    from tokenizers import Tokenizer, models, pre_tokenizers

    numbers = {f"w{number}" if number > 11 else f"<{number}>": number for number in range(61)}
    made = Tokenizer(models.WordLevel(numbers, unk_token="<0>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens([f"<{number}>" for number in range(12)])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<0>")
    for each in (model, extractor, tokenizer):
        each.save_pretrained(folder)
    return model, extractor, tokenizer


def sounds(folder: Path, count: int = 3) -> list[np.ndarray]:
    found = []
    for number in range(count):
        samples = (RNG.standard_normal(9000 + 1500 * number) * 6000 * (1 + number)).clip(-32768, 32767)
        samples = samples.astype("<i2")
        with wave.open(str(folder / f"{number}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(samples.tobytes())
        found.append(samples.astype(np.float32) / 32768)
    return found


def distance(one: list[str], other: list[str]) -> int:
    """The distance of Levenshtein, by its definition."""

    @cache
    def of(i: int, j: int) -> int:
        if not (i and j):
            return i + j
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (one[i - 1] != other[j - 1]))

    return of(len(one), len(other))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_words_are_those_that_transformers_generates(name: str, tmp_path: Path) -> None:
    model, extractor, tokenizer = saved(name, tmp_path / "model")
    tmconvert.package(tmp_path / "model", tmp_path / "package", kind="optimum", verify=False)
    texts, recordings = [], sounds(tmp_path)
    for sound in recordings:
        features = extractor(sound, sampling_rate=16000, return_tensors="pt")
        features.pop("attention_mask", None)
        tokens = model.generate(**features, num_beams=1, do_sample=False)
        texts.append(tokenizer.decode(tokens[0], skip_special_tokens=True))
    assert len({each for text in texts for each in text.split()}) > 3, texts
    # references differ from what is generated by a word each
    wanted = [" ".join(["Extra,", *text.split()[1:]]) for text in texts]
    with (tmp_path / "list.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["file", "text"], *((f"{at}.wav", text) for at, text in enumerate(wanted))]
        )
    (found,) = tmconvert.score(tmp_path / "package", data=tmp_path / "list.csv", task="wer").files
    pairs = [
        (one.lower().replace(",", "").split(), other.split())
        for one, other in zip(wanted, texts, strict=True)
    ]
    errors = sum(distance(*pair) for pair in pairs)
    assert errors >= len(texts)
    assert (found.others["errors"], found.samples) == (errors, len(texts))
    assert found.value == errors / sum(len(one) for one, _ in pairs)
