"""Decoders with caches of a fixed length, as LiteRT-LM runs them.

LiteRT-LM gives a step the new tokens, their positions and the keys and values of all positions, and takes the
updated keys and values. Names and order of arguments: ``litert_compiled_model_executor_utils.cc`` of
https://github.com/google-ai-edge/LiteRT-LM. The mask is the model's own, for the positions from the first one
on: so attention with a window is what the model makes of it. Transformers leaves the mask out for a step of
as many tokens as the caches have positions, and so there is no such step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.programs.pretrained_inputs import (
    Part,
    cache_argument,
    cache_in,
    vocabulary_size,
)
from tmconvert.frontends.torch.tracing.recording.arrays import has_stand_ins
from tmconvert.frontends.torch.tracing.special.stand_ins import stored_weights
from tmconvert.output.scratch import scratch_array

PREFILL, DECODE = "prefill", "decode"
_KEYS, _VALUES = "kv_cache_k_{}", "kv_cache_v_{}"


class StaticDecoder(torch.nn.Module):
    """A step of a decoder whose caches have a fixed length.

    ``tokens`` are int32[1, new]; ``input_pos`` int32[new], whose first element is the number of positions in
    the cache; ``caches`` are float32[1, heads, length, size], keys and values of each layer. The result has
    the updated caches, and with ``has_logits`` float32[1, new, vocabulary]. Tokens that would exceed the
    length are not kept. With ``has_mask`` the model gets a mask of all positions.
    """

    def __init__(self, model: Any, *, has_logits: bool, has_mask: bool = False) -> None:
        super().__init__()
        self.model, self.has_logits, self.argument = model, has_logits, cache_argument(model)
        self.has_mask = has_mask

    def forward(
        self, tokens: torch.Tensor, input_pos: torch.Tensor, **caches: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        from transformers.cache_utils import Cache

        length = next(iter(caches.values())).shape[2]
        slots = _Slots(input_pos, length)
        pairs = (
            (caches[_KEYS.format(layer)], caches[_VALUES.format(layer)]) for layer in range(len(caches) // 2)
        )
        cache = Cache(layers=[_layer(*pair, slots) for pair in pairs])
        mask = {"attention_mask": torch.ones(1, length, dtype=torch.int64)} if self.has_mask else {}
        made = self.model(
            input_ids=tokens, position_ids=input_pos[None], use_cache=True, **mask, **{self.argument: cache}
        )
        logits = {"logits": made.logits} if self.has_logits else {}
        return {**_tensors(cache.layers), **logits}


class _Slots:
    """The positions of new tokens in caches of one length.

    ``source`` is int32[length], for each position the number of the new token that is stored there, and
    ``is_new`` bool[length, 1] whether there is one.
    """

    def __init__(self, input_pos: torch.Tensor, length: int) -> None:
        self.start, count = input_pos[0], input_pos.shape[0]
        offsets = torch.arange(length, dtype=torch.int32) - self.start
        self.is_new = ((offsets >= 0) & (offsets < count))[:, None]
        self.source = offsets.clamp(0, count - 1)
        self.length, self.is_single = length, count == 1

    def updated(self, cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        spread = new if self.is_single else new.index_select(2, self.source)
        return torch.where(self.is_new, spread, cache)


def _layer(keys: torch.Tensor, values: torch.Tensor, slots: _Slots) -> Any:
    from transformers.cache_utils import CacheLayerMixin

    class Layer(CacheLayerMixin):  # type: ignore[misc]
        """The keys and values of a layer at all positions."""

        is_compileable, is_sliding = True, False
        keys: torch.Tensor
        values: torch.Tensor

        def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
            """There is nothing to do: the tensors are arguments."""

        def update(self, keys: torch.Tensor, values: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            self.keys, self.values = slots.updated(self.keys, keys), slots.updated(self.values, values)
            return self.keys, self.values

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            return slots.length, 0

        def get_seq_length(self) -> Any:
            return slots.start

        def get_max_length(self) -> int:
            return slots.length

    layer = Layer()
    layer.keys, layer.values, layer.is_initialized = keys, values, True
    return layer


def _tensors(layers: Sequence[Any]) -> dict[str, torch.Tensor]:
    names = ((_KEYS, "keys"), (_VALUES, "values"))
    return {name.format(n): getattr(each, part) for n, each in enumerate(layers) for name, part in names}


def static_parts(
    model: Any, caches: Mapping[str, torch.Tensor], prefills: Sequence[int]
) -> Mapping[str, Part]:
    """Returns the signatures of a decoder by name: ``prefill_N`` for N new tokens, and ``decode`` for one."""
    length = next(iter(caches.values())).shape[2]
    has_mask = _needs_mask(model, _inputs(model, caches, 1, length // 2))
    counts = {f"{PREFILL}_{count}": count for count in prefills}
    return {
        name: Part(
            StaticDecoder(model, has_logits=name == DECODE, has_mask=has_mask).eval(),
            _inputs(model, caches, count, 0 if name != DECODE else length // 2),
            {},
        )
        for name, count in {**counts, DECODE: 1}.items()
    }


def _needs_mask(model: Any, inputs: Mapping[str, torch.Tensor]) -> bool:
    """Whether the model fails without a mask of all positions.

    Falcon's biases by distance (ALiBi) are for a mask that it makes itself, of the tokens so far.
    """
    with torch.no_grad():
        try:
            StaticDecoder(model, has_logits=True)(**inputs)
        except (RuntimeError, ValueError):
            return True
    return False


def logits_after(model: Any, tokens: Sequence[int]) -> np.ndarray:
    """Returns the logits after each of tokens, float32[tokens, vocabulary], computed without a cache."""
    with torch.no_grad(), stored_weights(model):
        made = model(input_ids=torch.tensor([list(tokens)]), use_cache=False)
    found: np.ndarray = made.logits[0].float().numpy()
    return found


def _inputs(
    model: Any, caches: Mapping[str, torch.Tensor], count: int, start: int
) -> dict[str, torch.Tensor]:
    tokens = torch.randint(3, vocabulary_size(model.config), (1, count), dtype=torch.int32)
    positions = torch.arange(start, start + count, dtype=torch.int32)
    return {"tokens": tokens, "input_pos": positions, **caches}


def random_caches(model: Any, shapes: Mapping[str, tuple[int, int]], length: int) -> dict[str, torch.Tensor]:
    """Returns random keys and values at ``length`` positions, for heads and sizes by name.

    Those of a large model would fill the memory.
    """
    is_large, type = has_stand_ins(model), np.dtype(np.float32)
    made = {name: (1, heads, length, size) for name, (heads, size) in shapes.items()}
    return {
        name: torch.from_numpy(scratch_array(shape, type) if is_large else np.empty(shape, type)).normal_()
        for name, shape in made.items()
    }


def cache_shapes(model: Any) -> dict[str, tuple[int, int]]:
    """Returns the heads and sizes of caches by name. Raises UnsupportedError TM2032 for other states."""
    with torch.no_grad():
        cache = cache_in(model(input_ids=torch.tensor([[0]]), use_cache=True))
    layers = getattr(cache, "layers", ())
    if not layers or any(getattr(each, "keys", None) is None or each.keys.dim() != 4 for each in layers):
        raise _unsupported(model, "its layers have no caches of keys and values")
    others = dict.fromkeys(
        name
        for layer in layers
        for name, each in vars(layer).items()
        if name not in ("keys", "values") and not name.startswith("_") and _has_tensor(each)
    )
    if others:
        raise _unsupported(model, f"its layers have other states, too: {', '.join(others)}")
    return {name: (each.shape[1], each.shape[3]) for name, each in _tensors(layers).items()}


def _has_tensor(value: object) -> bool:
    return any(
        isinstance(each, torch.Tensor) for each in (value.values() if isinstance(value, dict) else [value])
    )


def _unsupported(model: Any, reason: str) -> UnsupportedError:
    return UnsupportedError(
        "TM2032",
        f"{type(model).__name__} has no form with caches of a fixed length: {reason}",
        notes=[("help", "choose another kind with --for; transformers.js runs states of convolutions")],
    )
