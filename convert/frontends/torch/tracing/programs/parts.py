"""The parts of a model of transformers that programs open as files of their own.

A decoder with an encoder takes a cache of four tensors a layer: keys and values of its own tokens, and those
of the encoder. It projects only what the encoder's cache lacks, so that one file serves the first step, with
empty caches, and all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from tmconvert.frontends.torch.tracing.programs.pretrained_inputs import (
    BATCH,
    NEW,
    PAST,
    NamedTensors,
    Part,
    Sizes,
    cache_argument,
    cache_in,
    encoder_example,
    example_of,
    renamed_sizes,
    vocabulary_size,
)
from tmconvert.frontends.torch.tracing.programs.sentence_vectors import SentenceHead, SentenceVectors

KNOWN = 3  # positions of the encoder whose keys and values the example's cache has
Split = Literal["", "encoder-decoder", "vision-language", "merged vision-language"]


class Decoder(torch.nn.Module):
    """A step of the decoder of an encoder-decoder with a language-model head.

    ``input_ids`` are [batch, tokens], ``encoder_hidden_states`` [batch, positions, width],
    ``encoder_attention_mask`` [batch, positions] where the encoder reads text, and ``past_key_values`` four
    tensors [batch, heads, length, size] a layer. The result has ``logits`` and the longer cache.
    ``encoded`` is the class of the outputs of the encoder.
    """

    def __init__(self, model: Any, encoded: type) -> None:
        super().__init__()
        self.model, self.cache, self.encoded = model, cache_argument(model), encoded

    def forward(
        self,
        input_ids: Tensor,
        encoder_hidden_states: Tensor,
        past_key_values: Any,
        encoder_attention_mask: Tensor | None = None,
    ) -> dict[str, Any]:
        known, length = past_key_values[0][2].shape[2], encoder_hidden_states.shape[1]
        unknown = torch.narrow(encoder_hidden_states, 1, known, length - known).contiguous()
        made = self.model(
            encoder_outputs=self.encoded(last_hidden_state=unknown),
            attention_mask=encoder_attention_mask,
            decoder_input_ids=input_ids,
            use_cache=True,
            **{self.cache: _cache(past_key_values)},
        )
        return {"logits": made.logits, "past_key_values": _tensors(cache_in(made))}


def _cache(layers: Any) -> Any:
    """Returns a cache to which a decoder adds tokens, and positions of the encoder."""
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    own, cross = DynamicCache(), DynamicCache()
    for number, (key, value, encoder_key, encoder_value) in enumerate(layers):
        own.update(key, value, number)
        cross.update(encoder_key, encoder_value, number)
    made = EncoderDecoderCache(own, cross)
    made.is_updated = dict.fromkeys(made.is_updated, False)
    return made


def _tensors(cache: Any) -> list[tuple[Tensor, ...]]:
    pairs = zip(cache.self_attention_cache.layers, cache.cross_attention_cache.layers, strict=True)
    return [(own.keys, own.values, cross.keys, cross.values) for own, cross in pairs]


def parts_of(
    model: Any, named_tensors: NamedTensors, *, split: Split, head: SentenceHead | None
) -> Mapping[str, Part]:
    """Returns the parts of a model by name; that of a model that stays whole has an empty one.

    Raises ValueError for a model without the parts of ``split``, UnsupportedError TM2032 for one whose parts
    compute something else.
    """
    if split == "encoder-decoder":
        return _encoder_and_decoder(model)
    if split in ("vision-language", "merged vision-language"):
        from tmconvert.frontends.torch.tracing.programs.vision_language import vision_language_parts

        return vision_language_parts(model, named_tensors, merges=split != "vision-language")
    if head is not None:
        return {"": _sentence_vectors(model, named_tensors, head)}
    return {"": Part(model, *example_of(model, named_tensors, for_package=True))}


def _sentence_vectors(model: Any, named_tensors: NamedTensors, head: SentenceHead) -> Part:
    """Returns the encoder of text with what follows it; that of an encoder-decoder is its encoder alone."""
    if getattr(model.config, "is_encoder_decoder", False):
        encoder = model.get_encoder()
        example = encoder_example(model, encoder)
    else:
        encoder = model.base_model
        example = example_of(encoder, named_tensors, for_package=True)
    inputs = {name: each for name, each in example.inputs.items() if name != "use_cache"}
    return Part(SentenceVectors(encoder, head).eval(), inputs, example.sizes)


def _encoder_and_decoder(model: Any) -> Mapping[str, Part]:
    encoder = model.get_encoder()
    example = encoder_example(model, encoder)
    with torch.no_grad():
        encoded = encoder(**example.inputs)
        hidden = encoded.last_hidden_state
        mask = example.inputs.get("attention_mask") if "input_ids" in example.inputs else None
        tokens = torch.randint(3, vocabulary_size(model.config), (BATCH, PAST + NEW))
        made = model(
            encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=tokens[:, :PAST], use_cache=True
        )
    cache = cache_in(made)
    if not hasattr(cache, "cross_attention_cache"):
        raise ValueError("its decoder has no cache of its own tokens and of the encoder")
    layers = [
        (key, value, encoder_key[:, :, :KNOWN], encoder_value[:, :, :KNOWN])
        for key, value, encoder_key, encoder_value in _tensors(cache)
    ]
    return {
        "encoder": Part(_Encoder(encoder).eval(), *example),
        "decoder": _decoder_part(Decoder(model, type(encoded)), tokens[:, PAST:], hidden, mask, layers),
    }


class _Encoder(torch.nn.Module):
    """An encoder, which returns its last hidden state only."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, **inputs: Any) -> dict[str, Tensor]:
        return {"last_hidden_state": self.encoder(**inputs)[0]}


def _decoder_part(decoder: Decoder, tokens: Tensor, hidden: Tensor, mask: Any, layers: Any) -> Part:
    inputs = {"input_ids": tokens, "encoder_hidden_states": hidden, "past_key_values": layers}
    sizes: Sizes = {
        "input_ids": {0: "batch", 1: "decoder_sequence"},
        "encoder_hidden_states": {0: "batch", 1: "encoder_sequence"},
    }
    if mask is not None:
        inputs["encoder_attention_mask"] = mask
        sizes["encoder_attention_mask"] = sizes["encoder_hidden_states"]
    for number in range(len(layers)):
        for slot, size in enumerate(("past_decoder", "past_decoder", "past_encoder", "past_encoder")):
            sizes[f"past_key_values.{number}.{slot}"] = {0: "batch", 2: size}
    return Part(decoder.eval(), inputs, renamed_sizes(sizes))
