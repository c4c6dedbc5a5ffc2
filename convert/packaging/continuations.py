"""Greedy decoding by the source and by files, and the comparison of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.packaging.kind import Converted, Parts
from tmconvert.packaging.trial import Wrong

STEPS = 16  # tokens to decode
# differences of the two best logits, by the largest, below which rounding decides which one is the best
EXACT, ROUNDED = 1e-4, 2e-2
Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
# outputs by inputs, before the layer
_PRESENT = {"past_key_values": "present", "past_conv": "present_conv", "past_ssm": "present_ssm"}


class Continuation(NamedTuple):
    """Tokens that follow a prompt; ``margins`` are the differences of the two best logits, by the largest."""

    tokens: list[int]
    margins: list[float]


class Prompt(NamedTuple):
    """The first tokens of the decoder, and the inputs of the encoder, if there is one, by name.

    An encoder of images computes what replaces the embeddings of ``image_token``.
    """

    tokens: list[int]
    encoder: Mapping[str, np.ndarray]
    image_token: int | None = None


class Stopped(Exception):
    """A part of the model cannot be run."""


def continuations_of_source(made: Converted, prompts: Sequence[Prompt]) -> list[Continuation] | None:
    """Returns what PyTorch decodes; None where the model cannot be run again.

    It has no cache, unless embeddings are passed to it: the first step of some decoders differs from others.
    """
    reports = next(made.by_dtype()).files

    def part(name: str) -> Run:
        original, report = made.modules[name].original, reports[name][1]

        def run(feeds: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
            outputs = original.run([feeds[each["name"]] for each in report.inputs]) if original else None
            if outputs is None:
                raise Stopped
            return dict(zip((each["name"] for each in report.outputs), outputs, strict=True))

        return run

    runs = {name: (part(name), report) for name, (_, report) in reports.items()}
    try:
        return [_decoded(runs, prompt, has_cache="embedding" in runs) for prompt in prompts]
    except Stopped:
        return None


def continuations_of_files(
    folder: Path, parts: Parts, prompts: Sequence[Prompt]
) -> list[Continuation] | None:
    """Returns what files decode in ONNX Runtime; None where that is not installed. Raises Wrong."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3

    def part(path: Path, report: Any) -> Run:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [each["name"] for each in report.outputs]
        return lambda feeds: dict(zip(names, session.run(names, dict(feeds)), strict=True))

    try:
        runs = {
            name: (part(folder / file.path, report), report) for name, (file, report) in parts.files.items()
        }
        return [_decoded(runs, prompt, has_cache=True) for prompt in prompts]
    except Exception as error:  # of no common class
        raise Wrong(f"ONNX Runtime does not run the files: {str(error).strip()!s:.200}") from error


def _decoded(runs: Mapping[str, tuple[Run, Any]], prompt: Prompt, *, has_cache: bool) -> Continuation:
    run, report = runs.get("decoder") or runs[""]
    fixed: dict[str, np.ndarray] = {}
    if "encoder" in runs:
        fixed["encoder_hidden_states"] = runs["encoder"][0](prompt.encoder)["last_hidden_state"]
        fixed["encoder_attention_mask"] = np.ones(fixed["encoder_hidden_states"].shape[:2], np.int64)
    features = runs["vision"][0](prompt.encoder)["image_features"] if "vision" in runs else None
    types = {each["name"]: each["dtype"] for each in report.inputs}
    empty = {each["name"]: _empty(each) for each in report.inputs if is_cache(each["name"])}
    cache, new, found = empty, list(prompt.tokens), Continuation([], [])
    for _ in range(STEPS):
        length = len(prompt.tokens) + len(found.tokens)
        feeds = {
            "input_ids": np.array([new]),
            "attention_mask": np.ones((1, length)),
            "position_ids": np.arange(length - len(new), length)[None],
            **fixed,
            **cache,
        }
        if features is not None:
            embed, of_embed = runs["embedding"]
            merges = any(each["name"] == "image_features" for each in of_embed.inputs)
            given = {"image_features": features[: None if len(new) > 1 else 0]} if merges else {}
            embedded = embed({"input_ids": feeds["input_ids"], **given})["inputs_embeds"].copy()
            if len(new) > 1 and not merges:
                embedded[feeds["input_ids"] == prompt.image_token] = features
            feeds["inputs_embeds"] = embedded
        made = run({name: feeds[name].astype(dtype) for name, dtype in types.items()})
        logits = made["logits"][0, -1].astype(np.float64)
        second, first = np.sort(logits)[-2:]
        found.tokens.append(int(logits.argmax()))
        found.margins.append(float((first - second) / max(np.abs(logits).max(), 1e-30)))
        if has_cache:
            new = found.tokens[-1:]
            cache = {name: made[_present(name)] for name in cache}
        else:
            new = [*new, found.tokens[-1]]
    return found


def is_cache(name: str) -> bool:
    """Whether an input of a decoder is a part of its cache."""
    return name.partition(".")[0] in _PRESENT


def _present(name: str) -> str:
    top, _, rest = name.partition(".")
    return f"{_PRESENT[top]}.{rest}"


def _empty(given: Mapping[str, Any]) -> np.ndarray:
    """Returns an empty cache: its open sizes are zero, but for the batch."""
    shape = [size if isinstance(size, int) else int(axis == 0) for axis, size in enumerate(given["shape"])]
    return np.zeros(shape, given["dtype"])


def difference(
    found: Sequence[Sequence[int]], wanted: Sequence[Continuation], ends: Sequence[int], *, is_exact: bool
) -> str:
    """Returns the first token that differs, but for those that rounding or the end of a text explains."""
    least = EXACT if is_exact else ROUNDED
    for number, (tokens, expected) in enumerate(zip(found, wanted, strict=True)):
        for step, (token, margin) in enumerate(zip(expected.tokens, expected.margins, strict=True)):
            if step >= len(tokens):
                if token in ends or (tokens and tokens[-1] in ends):  # which consumers return or drop
                    break
                return f"prompt {number + 1} ends after {step} of {len(expected.tokens)} tokens"
            if margin < least:
                break
            if tokens[step] != token:
                return f"prompt {number + 1}, step {step + 1}: token {tokens[step]}, not {token}"
    return ""


def agreement(found: Sequence[Sequence[int]], wanted: Sequence[Continuation]) -> str:
    """Returns how many tokens are those of PyTorch, and how many different ones there are."""
    pairs = [
        (a, b)
        for one, other in zip(found, wanted, strict=True)
        for a, b in zip(one, other.tokens, strict=False)
    ]
    same = sum(a == b for a, b in pairs)
    return f"{same} of {len(pairs)} tokens are PyTorch's, {len({a for a, _ in pairs})} different ones"
