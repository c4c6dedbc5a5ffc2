"""Makes example inputs for the task of a model of transformers.

Which inputs a model takes follows from the parameters of its ``forward`` and the fields of its configuration.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import torch

BATCH, TOKENS, PAST, NEW = 2, 8, 7, 5
CHOICES = 4  # answers to choose from
_TEXTS = {"input_ids", "attention_mask", "token_type_ids"}
CACHES = ("cache", "past_key_values")  # the second in older releases
IMAGE_SIZE, SAMPLES, FRAMES, MEL_BINS = 224, 16000, 200, 80
Sizes = dict[str, dict[int, str]]
NamedTensors = Callable[[Any, tuple[Any, ...], dict[str, Any]], Mapping[str, torch.Tensor]]
# names of open sizes, as programs that open packages know them; transformers.js looks for batch_size
NAMES_IN_PACKAGES = {
    "batch": "batch_size",
    "text_batch": "text_batch_size",
    "past": "past_sequence_length",
    "sequence": "sequence_length",
    "decoder_sequence": "decoder_sequence_length",
    "encoder_sequence": "encoder_sequence_length",
    "past_decoder": "past_decoder_sequence_length",
    "past_encoder": "past_encoder_sequence_length",
}


class Example(NamedTuple):
    """Inputs of a model by name, and their dynamic sizes."""

    inputs: dict[str, Any]
    sizes: Sizes


class Part(NamedTuple):
    """A module with example inputs by name, and their dynamic sizes."""

    module: Any
    inputs: dict[str, Any]
    sizes: Sizes


def example_of(model: Any, named_tensors: NamedTensors, *, for_package: bool = False) -> Example:
    """Returns example inputs for the task of a model; sizes of batch, sequences and caches are open.

    ``named_tensors(module, args, kwargs)`` names the tensors among the arguments. Programs that open packages
    expect caches that keep all positions, also where attention has a window: so are they with
    ``for_package``, and open sizes have the names of ``NAMES_IN_PACKAGES``.
    """
    parameters = inspect.signature(model.forward).parameters
    config = model.config
    found = Example({}, {})
    for name, (tensor, axes) in _inputs(model, config, parameters, for_package=for_package):
        found.inputs[name] = tensor
        found.sizes[name] = {0: "batch", **axes}
    if _is_decoder(model):
        found = with_cache(model, found, named_tensors, keeps_all=for_package)
    elif "use_cache" in parameters:
        found.inputs["use_cache"] = False
    if for_package and {"input_ids", "pixel_values"} <= found.inputs.keys():
        found = _with_more_texts(model, found)
    return found._replace(sizes=renamed_sizes(found.sizes)) if for_package else found


def _with_more_texts(model: Any, example: Example) -> Example:
    """Returns inputs with another number of texts than of images, where the model takes them.

    Models that compare each text with each image do (CLIP). Those that look for texts in images take several
    for each (OWL-ViT): they get one image. Those that join both (ViLT) take as many texts as images.
    """
    for texts, images in ((BATCH + 1, BATCH), (2 * BATCH, 1)):
        inputs, sizes = dict(example.inputs), dict(example.sizes)
        for name in _TEXTS & inputs.keys():
            inputs[name] = torch.cat([inputs[name], inputs[name]])[:texts]
            sizes[name] = {**sizes[name], 0: "text_batch"}
        with suppress(RuntimeError, ValueError), torch.no_grad():
            model(**inputs)
            if images == 1:
                inputs["pixel_values"] = inputs["pixel_values"][:1]
                sizes["pixel_values"] = {axis: size for axis, size in sizes["pixel_values"].items() if axis}
            return Example(inputs, sizes)
    return example


def encoder_example(model: Any, encoder: Any) -> Example:
    """Returns inputs of the encoder of an encoder-decoder, with sizes named for packages."""
    parameters = inspect.signature(encoder.forward).parameters
    config = getattr(encoder, "config", model.config)  # two models that were joined have two vocabularies
    given = _inputs(model, config, parameters, for_package=True)
    made = {name: each for name, each in given if name in parameters}
    made.pop("token_type_ids", None)  # which programs do not pass; all are 0 then
    sizes = {name: {0: "batch", **axes} for name, (_, axes) in made.items()}
    return Example({name: tensor for name, (tensor, _) in made.items()}, renamed_sizes(sizes))


def vocabulary_size(config: Any) -> int:
    """Returns the number of tokens; at least four, of which the first three may be special."""
    return max(4, int(config.get_text_config().vocab_size))


def renamed_sizes(sizes: Sizes) -> Sizes:
    """Returns sizes with the names of ``NAMES_IN_PACKAGES``."""
    return {
        name: {
            axis: re.sub(r"\w+", lambda found: NAMES_IN_PACKAGES.get(found[0], found[0]), size)
            for axis, size in axes.items()
        }
        for name, axes in sizes.items()
    }


def _inputs(
    model: Any, config: Any, parameters: Mapping[str, object], *, for_package: bool
) -> Iterator[tuple[str, tuple[Any, dict[int, str]]]]:
    """Yields inputs by name, with those axes that are open in addition to the batch.

    Programs that open packages do not pass the tokens of a decoder to a model that does not generate: it
    makes them itself. They pass images of any size where the configuration states none.
    """
    main = model.main_input_name
    if main == "input_ids" or (hasattr(config, "vision_config") and "input_ids" in parameters):
        for name, (tensor, axes) in _text(config, parameters, "", "sequence"):
            if type(model).__name__.endswith("ForMultipleChoice"):
                tensor, axes = tensor[:, None].repeat(1, CHOICES, 1), {1: "choices", 2: axes[1]}
            yield name, (tensor, axes)
    names = ("vision_config", "image_size", "visual_embed")
    takes_images = main == "pixel_values" or any(getattr(config, name, None) for name in names)
    if "pixel_values" in parameters and takes_images:
        for name, (tensor, axes) in _images(config, parameters):
            yield name, (tensor, axes if for_package else {})
    if main == "input_values" and hasattr(config, "num_mel_bins"):  # AST: an image of frequencies
        yield main, (torch.randn(BATCH, config.max_length, config.num_mel_bins), {})
    elif main == "input_values":
        yield main, (torch.randn(BATCH, SAMPLES), {1: "samples"})
    if main == "input_features":
        yield main, _features(getattr(config, "encoder_config", config))
    if not for_package and getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in parameters:
        yield from _text(config, parameters, "decoder_", "decoder_sequence")


def _text(
    config: Any, parameters: Mapping[str, object], prefix: str, size: str
) -> Iterator[tuple[str, tuple[Any, dict[int, str]]]]:
    text = config.get_text_config()
    tokens = torch.randint(3, vocabulary_size(config), (BATCH, TOKENS))
    yield f"{prefix}input_ids", (tokens, {1: size})
    if prefix:
        return
    if "attention_mask" in parameters:
        yield "attention_mask", (torch.ones_like(tokens), {1: size})
    if "token_type_ids" in parameters and getattr(text, "type_vocab_size", 0) > 1:
        yield "token_type_ids", (torch.zeros_like(tokens), {1: size})
    if "bbox" in parameters and hasattr(text, "max_2d_position_embeddings"):  # left, top, right, bottom
        boxes = torch.randint(0, text.max_2d_position_embeddings, (BATCH, TOKENS, 2, 2))
        yield "bbox", (boxes.sort(2).values.flatten(2), {1: size})


def _images(
    config: Any, parameters: Mapping[str, object]
) -> Iterator[tuple[str, tuple[torch.Tensor, dict[int, str]]]]:
    """Yields images, frames of videos, or patches of images with other sizes (SigLIP 2)."""
    vision = _vision(config)
    found = image(config)
    if "spatial_shapes" in parameters:
        side = int(vision.num_patches**0.5)
        width = vision.num_channels * vision.patch_size**2
        yield "pixel_values", (torch.randn(BATCH, side * side, width), {1: "patches"})
        yield "pixel_attention_mask", (torch.ones(BATCH, side * side, dtype=torch.int64), {1: "patches"})
        yield "spatial_shapes", (torch.full((BATCH, 2), side), {})
    elif getattr(config, "num_frames", None) and not hasattr(config, "vision_config"):
        yield "pixel_values", (found[:, None].repeat(1, config.num_frames, 1, 1, 1), {})
    else:
        yield "pixel_values", (found, {} if _image_size(config) else {2: "height", 3: "width"})


def image(config: object) -> torch.Tensor:
    vision = _vision(config)
    size = _image_size(config) or IMAGE_SIZE
    height, width = (size, size) if isinstance(size, int) else tuple(size)[-2:]
    return torch.randn(BATCH, getattr(vision, "num_channels", 3), height, width)


def _vision(config: object) -> Any:
    """Returns the configuration of the part that takes images: the first one that has their size."""
    first, last = getattr(config, "vision_config", None), getattr(config, "backbone_config", None)
    parts = [each for each in (first, getattr(config, "encoder", None), config, last) if each is not None]
    return next((each for each in parts if getattr(each, "image_size", None)), parts[0])


def _image_size(config: object) -> Any:
    """Returns the size of images, a number or several; None for a model that takes images of any size."""
    vision = _vision(config)
    return getattr(vision, "image_size", None) or getattr(vision, "input_size", None)


def _features(config: object) -> tuple[torch.Tensor, dict[int, str]]:
    """Spectrograms: [batch, bins, frames] of Whisper, whose length is fixed, or [batch, frames, bins]."""
    bins = getattr(config, "num_mel_bins", MEL_BINS)
    if hasattr(config, "max_source_positions") and getattr(config, "model_type", "") == "whisper":
        return torch.randn(BATCH, bins, 2 * config.max_source_positions), {}
    bins = getattr(config, "input_feat_per_channel", getattr(config, "feature_projection_input_dim", bins))
    return torch.randn(BATCH, FRAMES, bins), {1: "frames"}


def _is_decoder(model: Any) -> bool:
    """Whether the model generates text with a cache, and has no encoder."""
    generates = type(model).__name__.endswith(("ForCausalLM", "LMHeadModel"))
    has_encoder = getattr(model.config, "is_encoder_decoder", False)
    return generates and bool(cache_argument(model)) and not has_encoder


def cache_argument(model: Any) -> str:
    """Returns the parameter for the cache, whose name depends on the release; empty where there is none."""
    parameters = inspect.signature(model.forward).parameters
    return next((name for name in CACHES if name in parameters), "")


def with_cache(
    model: Any,
    example: Example,
    named_tensors: NamedTensors,
    *,
    keeps_all: bool,
) -> Example:
    """Returns inputs of a step in the middle of a text: its cache is that of ``PAST`` tokens before."""
    tokens = torch.randint(3, vocabulary_size(model.config), (BATCH, PAST + NEW))
    name = cache_argument(model)
    with torch.no_grad():
        past, longer = (_cache_after(model, tokens[:, :length], name, {}) for length in (PAST, PAST + 1))
        if keeps_all and _has_windows(past):
            past, longer = (
                _cache_after(model, tokens[:, :length], name, {name: type(past)()})
                for length in (PAST, PAST + 1)
            )
    parameters = inspect.signature(model.forward).parameters
    inputs = {**example.inputs, "input_ids": tokens[:, PAST:], "attention_mask": torch.ones_like(tokens)}
    sizes = {**example.sizes, "attention_mask": {0: "batch", 1: "past+sequence"}}
    if "position_ids" in parameters:
        inputs["position_ids"] = torch.arange(PAST, PAST + NEW).expand(BATCH, -1).clone()
        sizes["position_ids"] = {0: "batch", 1: "sequence"}
    inputs.pop("token_type_ids", None)
    sizes.pop("token_type_ids", None)
    inputs |= {name: past, "use_cache": True}
    of_cache = _cache_sizes(name, past, longer, named_tensors)
    if not any("past" in axes.values() for axes in of_cache.values()):  # states do not keep the positions
        inputs.pop("attention_mask")
        sizes.pop("attention_mask")
    return Example(inputs, {**sizes, **of_cache})


def _cache_after(model: Any, tokens: torch.Tensor, name: str, empty: Mapping[str, Any]) -> Any:
    found = cache_in(model(input_ids=tokens, use_cache=True, **empty))
    if found is None:
        raise ValueError("the model returns no cache")
    return found


def cache_in(made: Any) -> Any:
    """Returns the cache among the outputs of a model; None where there is none."""
    return next((made[each] for each in CACHES if each in made), None)


def _has_windows(cache: Any) -> bool:
    """Whether layers of a cache keep the last positions only, and all keep keys and values as they are."""
    from transformers import cache_utils

    layers = getattr(cache, "layers", ())
    plain = getattr(cache_utils, "DynamicLayer", ())
    return any(getattr(each, "is_sliding", False) for each in layers) and all(
        isinstance(each, plain) for each in layers
    )


def _cache_sizes(argument: str, past: Any, longer: Any, named_tensors: NamedTensors) -> Sizes:
    """Returns the dynamic sizes of the tensors in a cache: its length is the axis that grows."""

    def forward(**caches: Any) -> None:
        """Takes a cache under any name."""

    shapes, others = (
        {name: tensor.shape for name, tensor in named_tensors(forward, (), {argument: cache}).items()}
        for cache in (past, longer)
    )
    return {
        name: {0: "batch", **{axis: "past" for axis, size in enumerate(shape) if size != others[name][axis]}}
        for name, shape in shapes.items()
    }
