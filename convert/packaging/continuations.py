"""Greedy decoding by the source and by files, and the comparison of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tmconvert.inspection.decoding import Decoding, Run, session
from tmconvert.packaging.kind import Converted, Parts
from tmconvert.packaging.trial import Wrong
from tmconvert.targets.written_model import TensorInfo

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report

Runs = Mapping[str, tuple[Run, "Report"]]  # of the parts of a model
STEPS = 16  # tokens to decode
# differences of the two best logits, by the largest, below which rounding decides which one is the best
EXACT, ROUNDED = 1e-4, 2e-2


class Continuation(NamedTuple):
    """Tokens that follow a prompt; ``margins`` are the differences of the two best logits, by the largest."""

    tokens: list[int]
    margins: list[float]

    def add(self, logits: np.ndarray) -> None:
        """Appends the best token of ``logits`` [vocabulary]."""
        second, first = np.sort(logits)[-2:]
        self.tokens.append(int(logits.argmax()))
        self.margins.append(float((first - second) / max(np.abs(logits).max(), 1e-30)))


class Prompt(NamedTuple):
    """The first tokens of the decoder, and the inputs of the encoder, if there is one, by name.

    An encoder of images computes what replaces the embeddings of ``image_token``.
    """

    tokens: list[int]
    encoder: Mapping[str, np.ndarray]
    image_token: int | None = None


class Stopped(Exception):
    """A part of the model cannot be run."""


def choices_of_source(
    made: Converted, prompts: Sequence[Prompt], found: Sequence[Sequence[int]]
) -> list[Continuation] | None:
    """Returns what PyTorch chooses after a prompt and each of the first tokens ``found`` by a program; None
    where the model cannot be run again.

    Up to the first other choice these are the tokens that it decodes. It runs once for a prompt, without a
    cache; a model to which embeddings are passed decodes by itself: its first step differs from others.
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
        if "embedding" in runs:
            return [_decoded(runs, prompt) for prompt in prompts]
        return [_chosen(runs, *each) for each in zip(prompts, found, strict=True)]
    except Stopped:
        return None


def continuations_of_files(
    folder: Path, parts: Parts, prompts: Sequence[Prompt]
) -> list[Continuation] | None:
    """Returns what files decode in ONNX Runtime; None where that is not installed. Raises Wrong."""
    if find_spec("onnxruntime") is None:
        return None
    try:
        runs = {
            name: (session(folder / file.path, [each["name"] for each in report.outputs]), report)
            for name, (file, report) in parts.files.items()
        }
        return [_decoded(runs, prompt) for prompt in prompts]
    except Exception as error:  # of no common class
        raise Wrong(f"ONNX Runtime does not run the files: {str(error).strip()!s:.200}") from error


def _decoded(runs: Runs, prompt: Prompt) -> Continuation:
    """Returns what the files or the source decode greedily, with a cache."""
    decoding, new, found = _decoding(runs, prompt), list(prompt.tokens), Continuation([], [])
    for _ in range(STEPS):
        found.add(decoding.logits_after(new)[-1])
        new = found.tokens[-1:]
    return found


def _chosen(runs: Runs, prompt: Prompt, tokens: Sequence[int]) -> Continuation:
    """Returns the choices after the prompt and each of the first ``tokens``; one more than there are, for a
    program that ended, but at most ``STEPS``.
    """
    first, given = len(prompt.tokens), [*prompt.tokens, *tokens][: len(prompt.tokens) + STEPS - 1]
    rows = [*_decoding(runs, prompt).logits_after(given)[first - 1 :]]
    if len(rows) != len(given) - first + 1:  # the model returns those of the last token only
        ends = range(first, len(given) + 1)
        rows = [_decoding(runs, prompt).logits_after(given[:end])[-1] for end in ends]
    found = Continuation([], [])
    for row in rows:
        found.add(row)
    return found


def _decoding(runs: Runs, prompt: Prompt) -> Decoding:
    run, report = runs.get("decoder") or runs[""]
    fixed: dict[str, np.ndarray] = {}
    if "encoder" in runs:
        fixed["encoder_hidden_states"] = runs["encoder"][0](prompt.encoder)["last_hidden_state"]
        fixed["encoder_attention_mask"] = np.ones(fixed["encoder_hidden_states"].shape[:2], np.int64)
    features = runs["vision"][0](prompt.encoder)["image_features"] if "vision" in runs else None

    def embedded(feeds: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        if features is None:
            return {}
        embed, of_embed = runs["embedding"]
        is_first = feeds["input_ids"].size > 1
        merges = any(each["name"] == "image_features" for each in of_embed.inputs)
        given = {"image_features": features[: None if is_first else 0]} if merges else {}
        found = embed({"input_ids": feeds["input_ids"], **given})["inputs_embeds"].copy()
        if is_first and not merges:
            found[feeds["input_ids"] == prompt.image_token] = features
        return {"inputs_embeds": found}

    inputs = [TensorInfo(each["name"], each["dtype"], tuple(each["shape"])) for each in report.inputs]
    return Decoding(run, inputs, fixed, extra=embedded)


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
