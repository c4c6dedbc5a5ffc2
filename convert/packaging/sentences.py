"""Vectors of texts, in a consumer and in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.frontends.torch.entry import vectors_of_tokens
from tmconvert.packaging.kind import Converted, Parts
from tmconvert.packaging.sentence_transformers import counts_prompts, sentence_modules
from tmconvert.packaging.trial import Trial, unpacked
from tmconvert.packaging.vectors import difference_of_arrays, refuse_difference

TEXTS = ("A small text.", "Another one, which has more words than the first.")
PROMPT = "a text: "


def trial(made: Converted) -> Trial:
    """Compares the vectors of texts with those of PyTorch for the tokens that the consumer made of them.

    Where tokens of a prompt do not count, texts with one are compared, too.
    """
    original, report = made.modules[""].original, made.files[0][1]
    modules = sentence_modules(made.source)
    prompts = [""] if counts_prompts(modules) else ["", PROMPT]

    def wanted(features: Mapping[str, Any]) -> np.ndarray | None:
        tokens = np.array(features["input_ids"], np.int64)
        given = {name: np.array(each, np.int64) for name, each in features.items() if name != "prompt"}
        given = {"token_type_ids": np.zeros_like(tokens), **given}
        outputs = original and original.run([given[each["name"]] for each in report.inputs])
        if not outputs:
            return None
        return vectors_of_tokens(modules, outputs[0], given["attention_mask"], features.get("prompt", 0))

    def judge(parts: Parts, answer: Mapping[str, Any]) -> str:
        vectors = [wanted(each) for each in answer["features"]]
        if any(each is None for each in vectors):
            return "not compared with PyTorch, which cannot be run again"
        found = {prompt: unpacked(each) for prompt, each in zip(prompts, answer["vectors"], strict=True)}
        error = difference_of_arrays(
            found, {name: each for name, each in zip(prompts, vectors, strict=True) if each is not None}
        )
        refuse_difference(parts, "PyTorch", error)
        texts = f"PyTorch's vectors of {len(TEXTS)} texts to {error:.1e}"
        return texts if len(prompts) == 1 else f"{texts}, also after a prompt, whose tokens do not count"

    return Trial({"texts": list(TEXTS), "prompts": prompts}, judge)
