"""The parts of a model of text and images that generates text: vision encoder, embeddings and decoder.

A program computes the embeddings of tokens, replaces those of image tokens by the features of the vision
encoder, in order, and passes them to the decoder. No part has the weights of another one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.programs.pretrained_inputs import (
    Example,
    NamedTensors,
    Part,
    cache_argument,
    cache_in,
    image,
    renamed_sizes,
    with_cache,
)

AROUND = 3  # tokens of text before and after an image
CLOSE = 1e-4  # the largest difference of logits by the largest, between parts and whole


class VisionLanguageModel(Protocol):
    """A model of transformers, as the parts call it."""

    config: Any
    forward: Callable[..., Any]

    def __call__(self, **inputs: object) -> Any: ...

    def get_image_features(self, **inputs: torch.Tensor) -> Any: ...

    def get_input_embeddings(self) -> torch.nn.Embedding: ...


class VisionEncoder(torch.nn.Module):
    """Features of images, which replace embeddings of image tokens: ``image_features`` [tokens, width]."""

    def __init__(self, model: VisionLanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        made = self.model.get_image_features(**inputs)
        found = getattr(made, "pooler_output", made)  # releases before 5 return the features
        features = torch.cat(list(found)) if isinstance(found, (list, tuple)) else found
        return {"image_features": features.reshape(-1, features.shape[-1])}


class Embeddings(torch.nn.Module):
    """Embeddings of tokens: [batch, tokens] to ``inputs_embeds`` [batch, tokens, width].

    A token beyond the vocabulary, as the image token of some models, has the embedding of token 0, since
    features replace it.
    """

    def __init__(self, model: VisionLanguageModel) -> None:
        super().__init__()
        self.table = model.get_input_embeddings()
        self.is_beyond = model.config.image_token_id >= self.table.num_embeddings

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.is_beyond:
            input_ids = torch.where(input_ids < self.table.num_embeddings, input_ids, 0)
        return {"inputs_embeds": self.table(input_ids)}


class EmbeddingsDecoder(torch.nn.Module):
    """A step of the decoder: ``inputs_embeds`` [batch, tokens, width] and a cache to ``logits`` and a cache.

    With ``has_prefix`` the tokens of the first step attend to each other in both directions.
    """

    def __init__(self, model: VisionLanguageModel, *, has_prefix: bool) -> None:
        super().__init__()
        self.model, self.cache, self.has_prefix = model, cache_argument(model), has_prefix

    def forward(
        self, inputs_embeds: torch.Tensor, attention_mask: torch.Tensor, **inputs: object
    ) -> dict[str, Any]:
        if "past_key_values" in inputs:
            inputs[self.cache] = inputs.pop("past_key_values")
        if self.has_prefix:
            attention_mask = prefix_mask(attention_mask, inputs_embeds.shape[1])
        made = self.model(
            inputs_embeds=inputs_embeds, attention_mask=attention_mask, use_cache=True, **inputs
        )
        return {"logits": made.logits, "past_key_values": cache_in(made)}


def prefix_mask(mask: torch.Tensor, count: int) -> torch.Tensor:
    """Returns which positions the last ``count`` attend to, as booleans [batch, 1, count, length].

    ``mask`` is [batch, length]. It is causal unless the step is the first one.
    """
    length = mask.shape[1]
    keys = torch.arange(length)
    queries = torch.arange(length - count, length)
    allowed = (keys[None, :] <= queries[:, None]) | (queries[:1, None] == 0)
    return allowed[None, None] & mask.bool()[:, None, None, :]


def vision_language_parts(model: VisionLanguageModel, named_tensors: NamedTensors) -> Mapping[str, Part]:
    """Returns ``vision``, ``embedding`` and ``decoder``.

    Raises UnsupportedError TM2032 where they do not compute what the whole model does.
    """
    vision, embedding = VisionEncoder(model).eval(), Embeddings(model).eval()
    images = Example(*(dict(each) for each in zip(*_images(model), strict=True)))
    step = with_cache(model, Example({}, {}), named_tensors, keeps_all=True)
    inputs, sizes = dict(step.inputs), dict(step.sizes)
    tokens = inputs.pop("input_ids")
    name = cache_argument(model)
    inputs["past_key_values"] = inputs.pop(name)
    del inputs["use_cache"]
    sizes = {each.replace(f"{name}.", "past_key_values.", 1): axes for each, axes in sizes.items()}
    with torch.no_grad():
        inputs["inputs_embeds"] = embedding(tokens)["inputs_embeds"]
        decoder = _decoder(model, vision, embedding, images.inputs)
    text = {0: "batch", 1: "sequence"}
    return {
        "vision": Part(vision, images.inputs, images.sizes),
        "embedding": Part(embedding, {"input_ids": tokens}, renamed_sizes({"input_ids": text})),
        "decoder": Part(decoder, inputs, renamed_sizes({**sizes, "inputs_embeds": text})),
    }


def _images(
    model: VisionLanguageModel,
) -> Iterator[tuple[tuple[str, torch.Tensor], tuple[str, dict[int, str]]]]:
    """Yields example inputs of the vision encoder, each with its open sizes."""
    parameters = inspect.signature(model.get_image_features).parameters
    pixels = image(model.config)
    unknown = {"image_grid_thw", "image_sizes", "pixel_position_ids"} & set(parameters)
    required = [name for name in unknown if parameters[name].default is inspect.Parameter.empty]
    if required or "image_grid_thw" in unknown:
        raise _unsupported(model, "the sizes in its vision encoder follow from values of an input")
    if "pixel_attention_mask" not in parameters:
        yield ("pixel_values", pixels), ("pixel_values", {0: "num_images"})
        return
    sizes = {1: "num_images"}  # of one text
    yield ("pixel_values", pixels[None]), ("pixel_values", sizes)
    mask = torch.ones(1, len(pixels), *pixels.shape[-2:], dtype=torch.bool)
    yield ("pixel_attention_mask", mask), ("pixel_attention_mask", sizes)


def _decoder(
    model: VisionLanguageModel, vision: VisionEncoder, embedding: Embeddings, inputs: dict[str, torch.Tensor]
) -> EmbeddingsDecoder:
    """Returns the decoder whose attention is that of the model: causal, or both ways within a prefix.

    Raises UnsupportedError TM2032 for one that needs more than embeddings, such as the types of tokens, and
    for a prefix in layers with windows, which are longer than the text that is compared here.
    """
    features = vision(**inputs)["image_features"]
    token = model.config.image_token_id
    count = len(features)
    tokens = torch.cat(
        [torch.arange(3, 3 + AROUND), torch.full((count,), token), torch.arange(4, 4 + AROUND)]
    )
    embedded = embedding(tokens[None])["inputs_embeds"].clone()
    embedded[0, AROUND : AROUND + count] = features
    mask = torch.ones(1, len(tokens), dtype=torch.int64)
    parameters = inspect.signature(model.forward).parameters
    named = [name for name in ("token_type_ids", "mm_token_type_ids") if name in parameters]
    # processors mark the tokens of images, or those after a prefix; a prompt has none
    for has_prefix, types in ((False, tokens == token), (True, torch.zeros_like(tokens))):
        given = {name: types[None].long() for name in named}
        whole = model(input_ids=tokens[None], attention_mask=mask, **inputs, **given).logits
        decoder = EmbeddingsDecoder(model, has_prefix=has_prefix).eval()
        made = decoder(embedded, mask)
        if (made["logits"] - whole).abs().max() > CLOSE * whole.abs().max():
            continue
        if has_prefix and has_windows(made["past_key_values"], model.config):
            raise _unsupported(model, "within a prefix its decoder attends both ways, and to windows")
        return decoder
    raise _unsupported(
        model, "its decoder also takes the types of tokens, since attention within an image is not causal"
    )


def has_windows(cache: Any, config: Any) -> bool:
    """Whether layers attend to fewer positions than the model has."""
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    windows = (getattr(each, "sliding_window", None) for each in getattr(cache, "layers", ()))
    return any(each and (positions is None or each < positions) for each in windows)


def _unsupported(model: VisionLanguageModel, reason: str) -> UnsupportedError:
    return UnsupportedError(
        "TM2032",
        f"{type(model).__name__} cannot be split into vision encoder, embeddings and decoder: {reason}",
        notes=[
            ("help", "trace the parts that you need with tmconvert.trace, and call the model around them")
        ],
    )
