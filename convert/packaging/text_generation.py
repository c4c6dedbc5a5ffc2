"""The check of LiteRT-LM's packages: it takes texts, and answers with text.

Its texts are compared with what the whole model in PyTorch decodes greedily. Where LiteRT-LM is not
installed, LiteRT's interpreter runs the signatures of the written file, token by token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.continuations import STEPS, Continuation, agreement, difference
from tmconvert.packaging.kind import Converted, Parts
from tmconvert.packaging.litert_lm import (
    FILE,
    StaticDecoder,
    cache_length,
    end_tokens,
    start_tokens,
    tokenizer_of,
)
from tmconvert.packaging.trial import Trial, Wrong

PROMPTS = 10
_LENGTHS = (1, 2, 3, 5, 8, 12)  # of texts, in tokens
_TRIED = 200  # random texts; tokenizers change some of them
INTERPRETER = Consumer("ai-edge-litert", "open_litert_signatures.py", "pip install ai-edge-litert")


class TextPrompt(NamedTuple):
    """A text, and its tokens with those that begin a text."""

    text: str
    tokens: list[int]


def trial(made: Converted) -> Trial:
    """Decodes greedily. A file in float32 must give the tokens of PyTorch; one with rounded weights, those
    that LiteRT decodes with it.
    """
    modules, ends, is_exact = made.modules, end_tokens(made.source), made.files[0][0].is_exact
    assert isinstance(modules, StaticDecoder)
    given = list(_prompts(made))
    question = {"file": FILE, "prompts": [each.tokens for each in given], "steps": STEPS, "ends": ends}
    of_file = None if is_exact else INTERPRETER.ask(question, made.folder, made.source.folder)
    if isinstance(of_file, dict):
        wanted = list(map(Continuation, of_file["tokens"], of_file["margins"]))
        of_source = [_chosen(modules, *each) for each in zip(given, of_file["tokens"], strict=True)]
    else:
        wanted = of_source = [_decoded(modules, each.tokens) for each in given]
    texts: dict[str, list[Any]] = {
        "texts": [each.text for each in given],
        "decoded": [_before_end(each.tokens, ends) for each in wanted],
    }

    def judge(parts: Parts, answer: Mapping[str, Any]) -> str:
        same = [i for i, each in enumerate(given) if answer["tokens"][i] == each.tokens]
        if not same:
            raise Wrong("its tokenizer splits all texts into other tokens than that of the source")
        found = [tokens_of(answer["replies"][i], answer["decoded"][i], texts["decoded"][i]) for i in same]
        wrong = difference(found, [wanted[i] for i in same], ends, is_exact=is_exact)
        if wrong:
            name = "PyTorch" if wanted is of_source else "LiteRT"
            raise Wrong(f"it decodes other tokens than {name}: {wrong}")
        left_out = len(given) - len(same)
        note = (
            f"; its tokenizer splits {left_out} of {len(given)} texts into other tokens" if left_out else ""
        )
        return agreement(found, [of_source[i] for i in same]) + note

    def alone(parts: Parts) -> str:
        answer = INTERPRETER.ask(question, made.folder, made.source.folder)
        if isinstance(answer, str):
            return ""
        wrong = difference(answer["tokens"], of_source, ends, is_exact=True) if is_exact else ""
        if wrong:
            raise Wrong(f"LiteRT decodes other tokens than PyTorch: {wrong}")
        result = agreement(answer["tokens"], of_source)
        return f"LiteRT {answer['version']} ran the signatures of the written file: {result}"

    return Trial({**question, **texts}, judge, alone)


def _prompts(made: Converted) -> Iterator[TextPrompt]:
    """Yields texts of random tokens, after which ``STEPS`` more fit into the caches."""
    tokenizer, start = tokenizer_of(made.source), start_tokens(made.source)
    random, most = np.random.default_rng(0), cache_length(made) - STEPS
    vocabulary = min(int(made.source.text.get("vocab_size") or 4), tokenizer.get_vocab_size())
    found = 0
    for number in range(_TRIED):
        length = _LENGTHS[number % len(_LENGTHS)]
        drawn = random.integers(min(3, vocabulary - 1), vocabulary, length).tolist()
        text = tokenizer.decode(drawn, skip_special_tokens=True)
        tokens = [*start, *tokenizer.encode(text, add_special_tokens=False).ids]
        is_text = bool(text.strip()) and "\0" not in text and "\ufffd" not in text
        if is_text and len(start) < len(tokens) <= most and max(tokens) < vocabulary:
            found += 1
            yield TextPrompt(text, tokens)
        if found == PROMPTS:
            return


def _decoded(modules: StaticDecoder, prompt: Sequence[int]) -> Continuation:
    """Returns what the whole model decodes after a prompt, without a cache."""
    found = Continuation([], [])
    for _ in range(STEPS):
        found.add(modules.logits_after([*prompt, *found.tokens])[-1].astype(np.float64))
    return found


def _chosen(modules: StaticDecoder, prompt: TextPrompt, tokens: Sequence[int]) -> Continuation:
    """Returns what the whole model chooses after a prompt and each of the first tokens of a file."""
    found = Continuation([], [])
    logits = modules.logits_after([*prompt.tokens, *tokens][: len(prompt.tokens) + STEPS - 1])
    for row in logits[len(prompt.tokens) - 1 :]:
        found.add(row.astype(np.float64))
    return found


def _before_end(tokens: Sequence[int], ends: Sequence[int]) -> list[int]:
    count = next((number for number, token in enumerate(tokens) if token in ends), len(tokens))
    return list(tokens[:count])


def tokens_of(reply: str, decoded: Sequence[str], tokens: Sequence[int]) -> list[int]:
    """Returns the tokens that a text begins with; -1 stands for those that are unknown.

    ``decoded`` are the texts of the first 0, 1, 2, ... of ``tokens``. Parts of characters are not compared:
    programs that write a text piece by piece keep them back.
    """
    plain = _plain(reply)
    known = [count for count, text in enumerate(decoded) if plain.startswith(_plain(text))]
    if plain == _plain(decoded[-1]):
        return list(tokens)
    return [*tokens[: max(known)], *([-1] * (len(tokens) - max(known)))]


def _plain(text: str) -> str:
    return text.replace("\ufffd", "").strip()
