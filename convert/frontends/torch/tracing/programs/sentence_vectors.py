"""Vectors of texts from the vectors of their tokens, as modules of sentence-transformers compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tmconvert.frontends.torch.pretrained import unusable
from tmconvert.frontends.torch.sentence_module import SENTENCE, TOKENS, SentenceModule, Settings
from tmconvert.frontends.torch.tracing.recording.users_code import shown

Features = dict[str, Tensor]


class SentenceVectors(torch.nn.Module):
    """Runs an encoder, and computes a vector of each text from its ``last_hidden_state``.

    The hidden state is [batch, tokens, width], the vectors are [batch, size]. They are left out where they
    depend on the length of a prompt, which the file does not know. The attention mask, of
    ones and zeros, states which tokens count.
    """

    def __init__(self, model: Any, head: SentenceHead) -> None:
        super().__init__()
        self.model, self.head = model, head

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **others: Any) -> Features:
        tokens = self.model(input_ids=input_ids, attention_mask=attention_mask, **others).last_hidden_state
        if not self.head.counts_prompts:
            return {"last_hidden_state": tokens}
        return {"last_hidden_state": tokens, SENTENCE: self.head(tokens, attention_mask)}


class SentenceHead(torch.nn.Module):
    """The modules that follow an encoder. Raises LoadError TM1028 for weights that do not fit."""

    def __init__(self, modules: Sequence[SentenceModule]) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(_MODULES[each.kind](each.settings) for each in modules)
        self.counts_prompts = all(each.settings.get("include_prompt", True) for each in modules)
        for part, each in zip(self.parts, modules, strict=True):
            if each.weights:
                _load(part, each.weights)

    def forward(self, tokens: Tensor, attention_mask: Tensor, prompt: int = 0) -> Tensor:
        """Returns the vectors; ``prompt`` is the number of tokens that begin each text and do not count."""
        if not self.counts_prompts:
            first = attention_mask.argmax(1, keepdim=True) + prompt
            places = torch.arange(attention_mask.shape[1], device=tokens.device)
            attention_mask = attention_mask * (places >= first)
        features = {TOKENS: tokens, "mask": attention_mask.unsqueeze(-1).to(tokens.dtype)}
        for part in self.parts:
            features |= part(features)
        return features[SENTENCE]


def _load(part: torch.nn.Module, path: str) -> None:
    from safetensors.torch import load_file

    try:
        part.load_state_dict({name: each.float() for name, each in load_file(path).items()})
    except Exception as error:  # of the library in Rust: damaged headers; other names and shapes
        reason = f"{Path(path).name} of a module of sentence-transformers: {shown(error):.300}"
        raise unusable(str(Path(path).parent), reason) from error


class _Pooling(torch.nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.modes = settings["modes"]

    def forward(self, features: Features) -> Features:
        vectors = [POOLING[mode](features[TOKENS], features["mask"]) for mode in self.modes]
        return {SENTENCE: torch.cat(vectors, 1)}


class _Dense(torch.nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        has_bias = bool(settings.get("bias", True))
        self.linear = torch.nn.Linear(settings["in_features"], settings["out_features"], has_bias)
        self.activation = getattr(torch.nn, settings["activation"])()
        self.source = settings.get("module_input_name") or SENTENCE
        self.result = settings.get("module_output_name") or self.source

    def forward(self, features: Features) -> Features:
        return {self.result: self.activation(self.linear(features[self.source]))}


class _LayerNorm(torch.nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(settings["dimension"])

    def forward(self, features: Features) -> Features:
        return {SENTENCE: self.norm(features[SENTENCE])}


class _Normalize(torch.nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()

    def forward(self, features: Features) -> Features:
        return {SENTENCE: torch.nn.functional.normalize(features[SENTENCE], p=2.0, dim=1)}


_MODULES: dict[str, Callable[[Settings], torch.nn.Module]] = {
    "Pooling": _Pooling,
    "Dense": _Dense,
    "LayerNorm": _LayerNorm,
    "Normalize": _Normalize,
}


def _mean(tokens: Tensor, mask: Tensor) -> Tensor:
    return (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


def _max(tokens: Tensor, mask: Tensor) -> Tensor:
    return tokens.masked_fill(mask == 0, -1e9).amax(1)


def _root_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    return (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9).sqrt()


def _weighted_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    """The mean by positions: the first of all tokens, also of padding, counts once, the second twice."""
    places = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    return _mean(tokens, mask * places[:, None])


def _first(tokens: Tensor, mask: Tensor) -> Tensor:
    """The vector of the first token that counts: padding may be on the left."""
    return _at(tokens, mask[..., 0].argmax(1))


def _last(tokens: Tensor, mask: Tensor) -> Tensor:
    places = torch.arange(tokens.shape[1], device=tokens.device)
    return _at(tokens, (mask[..., 0] * places).argmax(1))


def _at(tokens: Tensor, places: Tensor) -> Tensor:
    index = places[:, None, None].expand(-1, 1, tokens.shape[-1])
    return torch.gather(tokens, 1, index).squeeze(1)


POOLING = {
    "mean": _mean,
    "max": _max,
    "mean_sqrt_len_tokens": _root_mean,
    "weightedmean": _weighted_mean,
    "cls": _first,
    "lasttoken": _last,
}
