"""Transcribes speech with an encoder-decoder in two ONNX files, as packages have them: greedily, by the
settings of ``generate`` in transformers.

The features of sound and the text of tokens come from transformers itself, by the files next to the model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.calibration.unfit import unfit
from tmconvert.inspection.compared_models import FileSide
from tmconvert.inspection.decoding import Decoding, Run, session, typed
from tmconvert.inspection.run_file import FileRunner

DECODER, ENCODER = "decoder_model_merged", "encoder_model"
_CONFIGURATIONS = ("config.json", "generation_config.json")  # settings of the last count more
# settings that change what a greedy search finds, with the values that change nothing
_UNKNOWN = {
    "bad_words_ids": None,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "guidance_scale": 1,
    "min_length": 0,
    "min_new_tokens": 0,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "return_timestamps": False,
    "sequence_bias": None,
}
_LONGEST = 20  # tokens that ``generate`` makes where no setting limits them


def is_speech_decoder(path: Path) -> bool:
    """Whether a file is the decoder of a package with an encoder."""
    return path.name.startswith(DECODER) and _encoder_of(path).is_file()


def _encoder_of(path: Path) -> Path:
    return path.with_name(path.name.replace(DECODER, ENCODER, 1))


def speech_generator(side: FileSide, folder: Path, rate: int) -> Callable[[np.ndarray], str]:
    """Returns the function from samples of sound to text, with the settings in ``folder``.

    Raises UsageError TM6033, VerificationError TM4002, TM4003.
    """
    return _Generator(side, folder, rate).text


class _Generator:
    def __init__(self, side: FileSide, folder: Path, rate: int) -> None:
        self.folder, self.rate = folder, rate
        self.extractor = _opened("AutoFeatureExtractor", folder)
        self.tokenizer = _opened("AutoTokenizer", folder)
        self.settings = _Settings(folder)
        self.inputs = side.inputs
        encoder = FileRunner(_encoder_of(side.path))
        self.encoder_inputs = encoder.inputs
        self.encode = session(encoder.path, [each.name for each in encoder.outputs])
        self.decode: Run = session(side.path, side.output_names)

    def text(self, sound: np.ndarray) -> str:
        states = self._states(sound)
        first = self._first_tokens(states)
        decoding, tokens, new = self._decoding(states), list[int](), first
        for made in range(self.settings.most(len(first))):
            new = [self.settings.best(decoding.logits_after(new)[-1], len(first), made)]
            tokens += new
            if new[0] in self.settings.ends:
                break
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def _states(self, sound: np.ndarray) -> np.ndarray:
        """Returns the states of the encoder. Raises UsageError TM6033 for longer sound than it takes."""
        longest = getattr(self.extractor, "n_samples", None)
        if longest is not None and len(sound) > longest:
            seconds = f"{len(sound) / self.rate:.1f} s long, and the model takes {longest / self.rate:g} s"
            raise unfit(f"a recording is {seconds}", "cut it into parts")
        masks = [each.name for each in self.encoder_inputs if each.name == "attention_mask"]
        options = {"return_attention_mask": True} if masks else {}
        try:
            found = self.extractor(sound, sampling_rate=self.rate, return_tensors="np", **options)
        except ValueError as error:
            raise unfit(f"{self.folder} has no features of this sound: {error!s:.200}", "") from error
        features = {name: np.asarray(found[name]) for name in found}
        made = self.encode(typed(self.encoder_inputs, features))
        return made["last_hidden_state"]

    def _decoding(self, states: np.ndarray) -> Decoding:
        mask = np.ones(states.shape[:2])
        return Decoding(
            self.decode, self.inputs, {"encoder_hidden_states": states, "encoder_attention_mask": mask}
        )

    def _first_tokens(self, states: np.ndarray) -> list[int]:
        """Returns the tokens that the decoder begins with; Whisper finds the language of the sound."""
        settings = self.settings
        first: list[int | None] = [settings.start, *settings.forced]
        if settings.languages and (len(first) == 1 or first[1] is None):
            logits = self._decoding(states).logits_after([settings.start])[-1]
            first[1:2] = [max(settings.languages, key=lambda token: float(logits[token]))]
        if settings.task is not None:
            first.append(settings.task)
        if settings.no_times is not None and first[-1] != settings.no_times:
            first.append(settings.no_times)
        return [int(each) for each in first if each is not None]


class _Settings:
    """Settings of ``generate`` in a folder: the first tokens, the last ones, and which are not allowed."""

    def __init__(self, folder: Path) -> None:
        found: dict[str, Any] = {}
        for name in _CONFIGURATIONS:
            if (folder / name).is_file():
                own = json.loads((folder / name).read_text(encoding="utf-8"))
                nested = own.get("decoder")
                own = {**(nested if isinstance(nested, dict) else {}), **own}
                found |= {key: value for key, value in own.items() if value is not None}
        self.found, self.folder = found, folder
        changed = [name for name, value in _UNKNOWN.items() if found.get(name) not in (None, value)]
        if changed:
            raise unfit(f"the setting {changed[0]} of {folder} is not known", "WER takes greedy decoding")
        start = found.get("decoder_start_token_id", found.get("bos_token_id"))
        if start is None:
            raise unfit(f"{folder} has no decoder_start_token_id", "it is in generation_config.json")
        self.start = int(start)
        self.ends = _list(found.get("eos_token_id"))
        self.languages = list(found.get("lang_to_id", {}).values())
        self.forced, self.task = self._of_whisper()
        self.no_times = found.get("no_timestamps_token_id")
        self.suppressed = _list(found.get("suppress_tokens"))
        self.suppressed_first = _list(found.get("begin_suppress_tokens"))

    def _of_whisper(self) -> tuple[list[int | None], int | None]:
        """Returns forced tokens, None for the language of the sound, and the token of the task."""
        found, tasks = self.found, self.found.get("task_to_id", {})
        language, task = found.get("language"), found.get("task")
        if language is None and task is None:
            forced = [token for place, token in found.get("forced_decoder_ids", []) if place > 0]
            return forced, None
        tokens = found.get("lang_to_id", {})
        known = [token for name, token in tokens.items() if name.strip("<|>") == str(language).strip("<|>")]
        if language is not None and not known:
            raise unfit(f"the language {language!r:.40} of {self.folder} is not in lang_to_id", "")
        return list(known), tasks.get(task or "transcribe")

    def most(self, first: int) -> int:
        """Returns how many tokens may follow the ``first`` ones."""
        if "max_new_tokens" in self.found:
            return int(self.found["max_new_tokens"])
        longest = self.found.get("max_length", _LONGEST)
        if self.found.get("model_type") == "whisper":  # which does not count the first tokens
            longest += first
        positions = self.found.get("max_target_positions", longest)
        return max(0, min(int(longest), int(positions)) - first)

    def best(self, logits: np.ndarray, first: int, made: int) -> int:
        """Returns the best token that is allowed after the ``first`` ones and those that were ``made``."""
        beginning = _list(self.found.get("forced_bos_token_id")) if first == 1 else []
        end = _list(self.found.get("forced_eos_token_id"))
        if beginning and not made:
            return beginning[0]
        if end and made == self.most(first) - 1:
            return end[0]
        logits[self.suppressed] = -math.inf
        if made == len(beginning):
            logits[self.suppressed_first] = -math.inf
        return int(logits.argmax())


def _list(value: Any) -> list[int]:
    return list(map(int, value)) if isinstance(value, Sequence) else [] if value is None else [int(value)]


def _opened(kind: str, folder: Path) -> Any:
    """Returns what a class of transformers reads from a folder. Raises UsageError TM6033."""
    try:
        library = import_module("transformers")
        return getattr(library, kind).from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except ImportError as error:
        raise unfit(
            f"speech that a decoder generates requires {error.name}", "pip install transformers"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        help = "name the folder of the model's tokenizer and preprocessor_config.json with --tokenizer"
        raise unfit(f"{kind} does not open {folder}: {error!s:.200}", help) from error
