"""Greedy decoding with a cache, by the source and by files, and the comparison of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.packaging.kind import Converted, ModelFile

STEPS, LENGTHS = 16, (1, 5, 12)  # tokens to decode, and those of the prompts
# differences of the two best logits, by the largest, below which rounding decides which one is the best
EXACT, ROUNDED = 1e-4, 2e-2
Run = Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]]


class Continuation(NamedTuple):
    """Tokens that follow a prompt; ``margins`` are the differences of the two best logits, by the largest."""

    tokens: list[int]
    margins: list[float]


def prompts(vocabulary: int, context: int) -> list[list[int]]:
    """Returns prompts of random tokens, after which ``STEPS`` more fit into the context."""
    random = np.random.default_rng(0)
    lengths = [min(length, max(1, context - STEPS)) for length in LENGTHS]
    return [random.integers(min(3, vocabulary - 1), vocabulary, length).tolist() for length in lengths]


def continuations_of_source(made: Converted, given: Sequence[Sequence[int]]) -> list[Continuation] | None:
    """Returns what PyTorch decodes; None where the module cannot be run again."""
    original, inputs = made.module.original, made.files[0][1].inputs
    if original is None:
        return None

    def run(feeds: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
        outputs = original.run([feeds[each["name"]] for each in inputs])
        if outputs is None:
            raise _Stopped
        return outputs

    try:
        return [_decoded(run, made.files[0][1], prompt) for prompt in given]
    except _Stopped:
        return None


def continuations_of_file(
    path: Path, report: Any, given: Sequence[Sequence[int]]
) -> list[Continuation] | None:
    """Returns what a file decodes in ONNX Runtime; None where that is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(feeds: Mapping[str, np.ndarray]) -> Sequence[np.ndarray]:
        return session.run([each["name"] for each in report.outputs], dict(feeds))

    return [_decoded(run, report, prompt) for prompt in given]


class _Stopped(Exception):
    """The module does not run."""


def _decoded(run: Run, report: Any, prompt: Sequence[int]) -> Continuation:
    shapes = {each["name"]: (each["shape"], each["dtype"]) for each in report.inputs}
    outputs = [each["name"] for each in report.outputs]
    cache = {
        name: np.zeros(
            [size if isinstance(size, int) else 1 if not axis else 0 for axis, size in enumerate(shape)],
            dtype,
        )
        for name, (shape, dtype) in shapes.items()
        if name.startswith("past_key_values.")
    }
    new, found = np.array([prompt], np.int64), Continuation([], [])
    for _ in range(STEPS):
        length = len(prompt) + len(found.tokens)
        feeds = {
            "input_ids": new,
            "attention_mask": np.ones((1, length), np.int64),
            "position_ids": np.arange(length - new.shape[1], length)[None],
            **cache,
        }
        made = dict(
            zip(outputs, run({name: feeds[name].astype(shapes[name][1]) for name in shapes}), strict=True)
        )
        logits = made["logits"][0, -1].astype(np.float64)
        second, first = np.sort(logits)[-2:]
        found.tokens.append(int(logits.argmax()))
        found.margins.append(float((first - second) / max(np.abs(logits).max(), 1e-30)))
        new = np.array([[found.tokens[-1]]], np.int64)
        cache = {name: made[name.replace("past_key_values", "present")] for name in cache}
    return found


def difference(
    found: Sequence[Sequence[int]], wanted: Sequence[Continuation], ends: Sequence[int], file: ModelFile
) -> str:
    """Returns the first token that differs, but for those that rounding or the end of a text explains."""
    least = EXACT if file.is_exact else ROUNDED
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
