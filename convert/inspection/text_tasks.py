"""Scores of models of text and speech: perplexity, similarity of sentences, word error rate."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.calibration.unfit import unfit
from tmconvert.conversion.format_numbers import counted
from tmconvert.errors import UsageError
from tmconvert.inspection.compared_models import FileSide
from tmconvert.inspection.decoding import empty, is_cache, of_tokens, typed
from tmconvert.inspection.labelled_data import table_rows
from tmconvert.inspection.metrics import log_likelihoods, spearman, word_errors
from tmconvert.inspection.task_score import Score, Side
from tmconvert.inspection.transcribe import read_wave, transcriber
from tmconvert.progress import counter


class _Text:
    """A model of text with its tokenizer, and its inputs by name."""

    def __init__(self, side: Side, options: Mapping[str, Any]) -> None:
        self.side, names = side, [info.name for info in side.inputs]
        if "input_ids" not in names:
            raise UsageError("TM6003", f"{side.title} has no input called input_ids")
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise unfit(
                "texts require tokenizers, which is not installed", "pip install tokenizers"
            ) from error
        path = _next_to(side, "tokenizer.json", options["tokenizer"])
        try:
            self.tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # of no class of its own
            raise unfit(f"{path} is not a tokenizer: {error!s:.200}", "use its tokenizer.json") from error
        self.tokenizer.no_padding()
        sizes = (side.inputs[names.index("input_ids")].shape or ())[1:]
        self.length = next((each for each in sizes if isinstance(each, int)), 0)

    def tokens(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)

    def outputs(self, tokens: Sequence[int]) -> dict[str, np.ndarray]:
        """Returns the outputs for a list of tokens without a cache."""
        side = self.side
        caches = {each.name: empty(each) for each in side.inputs if is_cache(each.name)}
        given = typed(side.inputs, {**of_tokens(np.array([tokens]), len(tokens)), **caches})
        return dict(zip(side.output_names, side.outputs(list(given.values())), strict=True))


def _next_to(side: Side, name: str, given: str | None) -> Path:
    """Returns a file of a package: the given one, or that in the folder of the model or the one above."""
    if given is not None:
        path = Path(given) / name if Path(given).is_dir() else Path(given)
        if not path.is_file():
            raise unfit(f"there is no file {path}", "name the file or its folder with --tokenizer")
        return path
    folder = Path(side.title).parent
    for each in (folder, folder.parent):
        if (each / name).is_file():
            return each / name
    raise unfit(f"there is no {name} next to {side.title}", "name the file or its folder with --tokenizer")


def score_perplexity(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A text; the model predicts each of its tokens from those before it, in windows."""
    model, count = _Text(side, options), counter("compare")
    try:
        tokens = model.tokens(data.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise unfit(f"{data} cannot be read as a text: {error}", "use a file in UTF-8") from error
    window = model.length or options["window"]
    total, scored = 0.0, 0
    starts = range(0, len(tokens) - (window - 1 if model.length else 1), window)
    for number, start in enumerate(starts, 1):
        part = tokens[start : start + window]
        outputs = model.outputs(part)
        logits = outputs.get("logits", next(iter(outputs.values())))
        if logits.ndim != 3 or logits.shape[:2] != (1, len(part)):
            what = f"an output {list(logits.shape)}, not logits of each of {len(part)} tokens"
            raise UsageError("TM6003", f"{side.title} returns {what}")
        total -= float(log_likelihoods(logits[0, :-1], np.array(part[1:])).sum())
        scored += len(part) - 1
        if count is not None:
            count(number, len(starts))
    if not scored:
        raise unfit(f"{data} has {counted(len(tokens), 'token')}, fewer than a window", "use a longer text")
    loss = total / scored
    return Score(side.title, math.exp(min(loss, 700.0)), scored, {"loss": loss})


def score_similarity(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A CSV or TSV of two sentences and their similarity, compared with the cosine of their vectors."""
    model, rows = _Text(side, options), table_rows(data, 3, lambda row: _is_number(row[2]))
    cosines = []
    for one, other, *_ in rows:
        a, b = (_vector(model.outputs(model.tokens(text))) for text in (one, other))
        cosines.append(float(a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-30)))
    return Score(side.title, spearman(cosines, [float(row[2]) for row in rows]), len(rows))


def _vector(outputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns the vector of a text: an output of vectors, or the mean over the tokens."""
    vectors = [array for array in outputs.values() if array.ndim == 2]
    array = outputs.get("sentence_embedding", vectors[0] if vectors else next(iter(outputs.values())))
    return np.asarray(array[0] if array.ndim == 2 else array[0].mean(axis=0), np.float64)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def score_words(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A CSV or TSV of WAV files and their texts, transcribed by a model of CTC or an encoder-decoder."""
    rate, text_of = options["sampling_rate"], _transcriber(side, options)
    rows, count = table_rows(data, 2, lambda row: Path(row[0]).suffix.lower() == ".wav"), counter("compare")
    found = {"errors": 0, "words": 0, "letters": 0, "wrong letters": 0}
    for number, (name, text, *_) in enumerate(rows, 1):
        wanted, made = words_of(text), words_of(text_of(read_wave(data.parent / name, rate)))
        found["errors"] += word_errors(wanted, made)
        found["words"] += len(wanted)
        found["wrong letters"] += word_errors(" ".join(wanted), " ".join(made))
        found["letters"] += len(" ".join(wanted))
        if count is not None:
            count(number, len(rows))
    if not found["words"]:
        raise unfit(f"the texts of {data} have no words", "the second column has the words of the recording")
    of_letters = found["wrong letters"] / found["letters"]
    others = {"errors": found["errors"], "words": found["words"], "CER": of_letters}
    return Score(side.title, found["errors"] / found["words"], len(rows), others)


def words_of(text: str) -> list[str]:
    """Returns the words of a text in lower case, without punctuation around them.

    >>> words_of("It's a «cat»; 3.5 kg -- no?")
    ["it's", 'a', 'cat', '3.5', 'kg', 'no']
    """
    marks = {each for each in text if unicodedata.category(each)[0] == "P"}
    words = unicodedata.normalize("NFC", text.lower()).split()
    return [word for word in (each.strip("".join(marks)) for each in words) if word]


def _transcriber(side: Side, options: Mapping[str, Any]) -> Callable[[np.ndarray], str]:
    """Returns the function from samples of sound to text. Raises UsageError TM6003, TM6033."""
    from tmconvert.inspection.generate_speech import is_speech_decoder, speech_generator

    rate, given = options["sampling_rate"], options["tokenizer"]
    if isinstance(side, FileSide) and is_speech_decoder(side.path):
        folder = Path(given) if given is not None else _next_to(side, "config.json", None).parent
        return speech_generator(side, folder, rate)
    if len(side.inputs) != 1:
        takes = ", ".join(info.name for info in side.inputs)
        raise UsageError(
            "TM6003",
            f"{side.title} takes {len(side.inputs)} inputs, not one of samples: {takes}",
            notes=[("help", "speech that a decoder generates takes decoder_model_merged.onnx of a package")],
        )
    text_of = transcriber(_next_to(side, "vocab.json", given))

    def text(sound: np.ndarray) -> str:
        sound = (sound - sound.mean()) / np.sqrt(sound.var() + 1e-7)  # as Wav2Vec2's feature extractor
        return text_of(np.asarray(side.outputs([sound[None].astype(np.float32)])[0])[0])

    return text
