"""Vectors of texts from the vectors of their tokens, as modules of sentence-transformers compute them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class SentenceVectors(torch.nn.Module):
    """Runs an encoder, and pools its ``last_hidden_state`` [batch, tokens, width] to [batch, width].

    ``modes`` are pooling modes of sentence-transformers, whose vectors are concatenated; with ``normalizes``
    the result has length 1. The attention mask, of ones and zeros, states which tokens count.
    """

    def __init__(self, model: Any, modes: tuple[str, ...], *, normalizes: bool) -> None:
        super().__init__()
        self.model, self.modes, self.normalizes = model, modes, normalizes

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **others: Any) -> dict[str, Tensor]:
        tokens = self.model(input_ids=input_ids, attention_mask=attention_mask, **others).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(tokens.dtype)
        pooled = torch.cat([POOLING[mode](tokens, mask) for mode in self.modes], 1)
        if self.normalizes:
            pooled = torch.nn.functional.normalize(pooled, p=2.0, dim=1)
        return {"last_hidden_state": tokens, "sentence_embedding": pooled}


def _mean(tokens: Tensor, mask: Tensor) -> Tensor:
    return (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


def _max(tokens: Tensor, mask: Tensor) -> Tensor:
    return tokens.masked_fill(mask == 0, -1e9).amax(1)


def _root_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    return (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9).sqrt()


def _first(tokens: Tensor, mask: Tensor) -> Tensor:
    """The vector of the first token that counts: padding may be on the left."""
    return _at(tokens, mask[..., 0].argmax(1))


def _last(tokens: Tensor, mask: Tensor) -> Tensor:
    places = torch.arange(tokens.shape[1], device=tokens.device)
    return _at(tokens, (mask[..., 0] * places).argmax(1))


def _at(tokens: Tensor, places: Tensor) -> Tensor:
    index = places[:, None, None].expand(-1, 1, tokens.shape[-1])
    return torch.gather(tokens, 1, index).squeeze(1)


POOLING = {"mean": _mean, "max": _max, "mean_sqrt_len_tokens": _root_mean, "cls": _first, "lasttoken": _last}
