"""The parts of a model of text and images that generates text: vision encoder, embeddings and decoder.

The embeddings of image tokens are replaced by the features of the vision encoder, in order, and passed to the
decoder. A program does that itself, or passes the features to the embeddings and the tokens to the decoder,
too. No part has the weights of another one.
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


class MergedEmbeddings(torch.nn.Module):
    """Embeddings of tokens, and features [image tokens, width] in the place of those of image tokens.

    Image tokens for which there are no features have their own embeddings, as in a text without images.
    """

    def __init__(self, model: VisionLanguageModel) -> None:
        super().__init__()
        self.embeddings, self.token = Embeddings(model), model.config.image_token_id

    def forward(self, input_ids: torch.Tensor, image_features: torch.Tensor) -> dict[str, torch.Tensor]:
        embedded = self.embeddings(input_ids)["inputs_embeds"]
        is_image = input_ids == self.token
        number = torch.cumsum(is_image.flatten().long(), 0).reshape(input_ids.shape)
        number = torch.where(is_image & (number <= image_features.shape[0]), number, 0)  # from 1
        rows = torch.cat([torch.zeros(1, image_features.shape[1]), image_features])
        return {"inputs_embeds": torch.where((number > 0)[..., None], rows[number], embedded)}


class EmbeddingsDecoder(torch.nn.Module):
    """A step of the decoder: ``inputs_embeds`` [batch, tokens, width] and a cache to ``logits`` and a cache.

    With ``has_prefix`` the tokens of the first step attend to each other in both directions; with
    ``has_blocks`` those of an image do, and ``input_ids`` tells which they are.
    """

    def __init__(
        self, model: VisionLanguageModel, *, has_prefix: bool = False, has_blocks: bool = False
    ) -> None:
        super().__init__()
        self.model, self.cache = model, cache_argument(model)
        self.has_prefix, self.has_blocks = has_prefix, has_blocks

    def forward(
        self, inputs_embeds: torch.Tensor, attention_mask: torch.Tensor, **inputs: Any
    ) -> dict[str, Any]:
        if "past_key_values" in inputs:
            inputs[self.cache] = inputs.pop("past_key_values")
        mask: Any = attention_mask
        if self.has_prefix:
            mask = prefix_mask(attention_mask, inputs_embeds.shape[1])
        if self.has_blocks:
            from transformers.masking_utils import create_masks_for_generate

            past = attention_mask.shape[1] - inputs_embeds.shape[1]
            mask = create_masks_for_generate(
                self.model.config.get_text_config(),
                inputs_embeds,
                attention_mask,
                inputs.get(self.cache),
                inputs.get("position_ids"),
                block_sequence_ids=blocks(inputs.pop("input_ids") == self.model.config.image_token_id, past),
            )
        made = self.model(inputs_embeds=inputs_embeds, attention_mask=mask, use_cache=True, **inputs)
        return {"logits": made.logits, "past_key_values": cache_in(made)}


def blocks(is_image: torch.Tensor, past: int) -> torch.Tensor:
    """Returns the numbers of images by position [batch, past + tokens]; -1 for text, and for the past."""
    before = torch.nn.functional.pad(is_image, (1, 0))[:, :-1]
    numbers = torch.cumsum((is_image & ~before).long(), 1)
    return torch.nn.functional.pad(torch.where(is_image, numbers, -1), (past, 0), value=-1)


def prefix_mask(mask: torch.Tensor, count: int) -> torch.Tensor:
    """Returns which positions the last ``count`` attend to, as booleans [batch, 1, count, length].

    ``mask`` is [batch, length]. It is causal unless the step is the first one.
    """
    length = mask.shape[1]
    keys = torch.arange(length)
    queries = torch.arange(length - count, length)
    allowed = (keys[None, :] <= queries[:, None]) | (queries[:1, None] == 0)
    return allowed[None, None] & mask.bool()[:, None, None, :]


def vision_language_parts(
    model: VisionLanguageModel, named_tensors: NamedTensors, *, merges: bool
) -> Mapping[str, Part]:
    """Returns ``vision``, ``embedding`` and ``decoder``.

    With ``merges`` the embeddings take the features, and the decoder takes tokens where it needs them. Raises
    UnsupportedError TM2032 where the parts do not compute what the whole model does.
    """
    vision = VisionEncoder(model).eval()
    embedding: torch.nn.Module = (MergedEmbeddings if merges else Embeddings)(model).eval()
    images = Example(*(dict(each) for each in zip(*_images(model), strict=True)))
    step = with_cache(model, Example({}, {}), named_tensors, keeps_all=True)
    inputs, sizes = dict(step.inputs), dict(step.sizes)
    tokens = inputs.pop("input_ids")
    name = cache_argument(model)
    inputs["past_key_values"] = inputs.pop(name)
    del inputs["use_cache"]
    sizes = {each.replace(f"{name}.", "past_key_values.", 1): axes for each, axes in sizes.items()}
    text = {0: "batch", 1: "sequence"}
    embedded, of_embedded = {"input_ids": tokens}, {"input_ids": text}
    with torch.no_grad():
        decoder, features = _decoder(model, vision, Embeddings(model), images.inputs, takes_tokens=merges)
        if merges:
            tokens[0, : len(features)] = model.config.image_token_id
            embedded["image_features"] = features[: int((tokens == model.config.image_token_id).sum())]
            of_embedded["image_features"] = {0: "image_tokens"}
        inputs["inputs_embeds"] = embedding(**embedded)["inputs_embeds"]
    if decoder.has_blocks:
        inputs["input_ids"], sizes["input_ids"] = tokens, text
    return {
        "vision": Part(vision, images.inputs, images.sizes),
        "embedding": Part(embedding, embedded, renamed_sizes(of_embedded)),
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
    model: VisionLanguageModel,
    vision: VisionEncoder,
    embedding: Embeddings,
    inputs: dict[str, torch.Tensor],
    *,
    takes_tokens: bool,
) -> tuple[EmbeddingsDecoder, torch.Tensor]:
    """Returns the decoder whose attention is that of the model, and the features of ``inputs``.

    Attention is causal, both ways within an image, or both ways within a prefix. Raises UnsupportedError
    TM2032 for one that needs more than embeddings, such as tokens without ``takes_tokens``, and for a prefix
    in layers with windows, which are longer than the text that is compared here.
    """
    features = vision(**inputs)["image_features"]
    token = model.config.image_token_id
    count = len(features)
    tokens = torch.cat(
        [torch.arange(3, 3 + AROUND), torch.full((count,), token), torch.arange(4, 4 + AROUND)]
    )
    embedded = embedding(tokens[None])["inputs_embeds"].clone()
    embedded[0, AROUND : AROUND + count] = features
    parameters = inspect.signature(model.forward).parameters
    named = [name for name in ("token_type_ids", "mm_token_type_ids") if name in parameters]
    is_image, none = tokens == token, torch.zeros_like(tokens)
    # processors mark the tokens of images, or those after a prefix; a prompt has none
    candidates = [(EmbeddingsDecoder(model), is_image), (EmbeddingsDecoder(model, has_prefix=True), none)]
    if takes_tokens and named:
        candidates.append((EmbeddingsDecoder(model, has_blocks=True), is_image))
    for decoder, types in candidates:
        given = {name: types[None].long() for name in named}
        mask = torch.ones(1, len(tokens), dtype=torch.int64)
        whole = model(input_ids=tokens[None], attention_mask=mask, **inputs, **given).logits
        made, cache = _logits_in_steps(decoder.eval(), tokens, embedded, in_steps=not decoder.has_prefix)
        if (made - whole).abs().max() > CLOSE * whole.abs().max():
            continue
        if decoder.has_prefix and has_windows(cache, model.config):
            raise _unsupported(model, "within a prefix its decoder attends both ways, and to windows")
        return decoder, features
    raise _unsupported(
        model, "its decoder also takes the types of tokens, since attention within an image is not causal"
    )


def _logits_in_steps(
    decoder: EmbeddingsDecoder, tokens: torch.Tensor, embedded: torch.Tensor, *, in_steps: bool
) -> tuple[torch.Tensor, Any]:
    """Returns logits of a prompt, with its last token in a step of its own, and the cache after them."""
    ends, start, logits, given = [len(tokens)], 0, [], dict[str, Any]()
    if in_steps:
        ends = [len(tokens) - 1, len(tokens)]
    for end in ends:
        if decoder.has_blocks:
            given["input_ids"] = tokens[None, start:end]
        made = decoder(embedded[:, start:end], torch.ones(1, end, dtype=torch.int64), **given)
        logits.append(made["logits"])
        start, given = end, {"past_key_values": made["past_key_values"]}
    return torch.cat(logits, 1), given["past_key_values"]


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
