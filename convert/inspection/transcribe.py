"""Transcribes speech with a model of connectionist temporal classification (CTC), such as Wav2Vec2.

The best path: the best entry of the vocabulary in each step, without repetitions and blanks (Graves et al.,
2006). The vocabulary is ``vocab.json`` of transformers, in which ``|`` is between words.
"""

from __future__ import annotations

import json
import wave
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from tmconvert.calibration.unfit import unfit

_BLANKS = ("<pad>", "[PAD]", "<blank>", "<ctc_blank>")


def read_wave(path: Path, rate: int) -> np.ndarray:
    """Returns the samples of a WAV file of 16 bits, in one channel, from -1 to 1.

    Raises UsageError TM6033 for other files, and for another sampling rate.
    """
    try:
        with wave.open(str(path)) as file:
            found, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
            content = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        raise unfit(f"{path} cannot be read: {error}", "use WAV files of 16 bits") from error
    if width != 2 or found != rate:
        raise unfit(f"{path} has {8 * width} bits at {found} Hz", f"use WAV files of 16 bits at {rate} Hz")
    return np.frombuffer(content, "<i2").reshape(-1, channels).mean(axis=1, dtype=np.float32) / 32768


def best_path(logits: np.ndarray, vocabulary: Sequence[str], blank: int) -> str:
    """Returns the text of ``logits`` [steps, vocabulary].

    >>> best_path(np.eye(4)[[1, 1, 0, 1, 3, 2, 0]], ["<pad>", "a", "b", "|"], 0)
    'aa b'
    """
    steps = (int(token) for token, _ in groupby(logits.argmax(axis=-1).tolist()))
    text = "".join(vocabulary[token] for token in steps if token != blank)
    return " ".join(text.replace("|", " ").split())


def transcriber(path: Path) -> Callable[[np.ndarray], str]:
    """Returns the function from logits to text for the vocabulary in ``path``. Raises UsageError TM6033."""
    indices = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = [name for name, _ in sorted(indices.items(), key=lambda each: each[1])]
    blank = next((vocabulary.index(each) for each in _BLANKS if each in vocabulary), None)
    if blank is None:
        raise unfit(f"{path} has no blank", f"the blank of CTC is called one of {', '.join(_BLANKS)}")
    return lambda logits: best_path(logits, vocabulary, blank)
