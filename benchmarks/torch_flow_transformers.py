"""Makes flows of models of ``transformers``, with real widths and few layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

import torch
from torch_flow import Example, Flow
from torch_flow_makers import with_variance_1
from torchvision_ops import declare

VOCABULARY = 1000
TEXT = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "sequence"}}
IMAGE = {"pixel_values": {0: "batch"}}
OPEN_IMAGE = {"pixel_values": {0: "batch", 2: "height", 3: "width"}}
LAYERS = (
    "num_hidden_layers",
    "num_layers",
    "encoder_layers",
    "decoder_layers",
    "num_decoder_layers",
    "n_layer",
    "n_layers",
)


def config(name: str, **sizes: Any) -> Any:
    """A configuration with two layers and a small vocabulary; what is given counts more."""
    declare()
    import transformers

    kind = attrgetter(name)(transformers)
    known = kind().to_dict()
    few: dict[str, Any] = {layers: 2 for layers in LAYERS if isinstance(known.get(layers), int)}
    if "vocab_size" in known:
        few["vocab_size"] = VOCABULARY
        few |= {
            key: 0 for key, value in known.items() if key.endswith("_token_id") and isinstance(value, int)
        }
    return kind(**{**few, **sizes})


def model(name: str, settings: Any) -> Any:
    """The module, with PyTorch's own attention where the model knows it."""
    import transformers

    kind = attrgetter(name)(transformers)
    try:
        return kind._from_config(settings, attn_implementation="sdpa").eval()
    except ValueError:
        return kind._from_config(settings, attn_implementation="eager").eval()


def tokens(batch: int = 2, length: int = 9) -> torch.Tensor:
    return torch.randint(1, VOCABULARY, (batch, length))


def text(kind: str, settings: str, *, masked: bool = True, **sizes: Any) -> Flow:
    """A model of tokens, with the mask of attention."""

    def make() -> Example:
        given = {"input_ids": tokens()}
        if masked:
            given["attention_mask"] = torch.ones(2, 9, dtype=torch.int64)
        return model(kind, config(settings, **sizes)), (), given

    return Flow(make, TEXT if masked else {"input_ids": TEXT["input_ids"]})


def causal(kind: str, settings: str, **sizes: Any) -> Flow:
    return text(kind, settings, use_cache=False, **sizes)


def pair(kind: str, settings: str, **sizes: Any) -> Flow:
    """An encoder and a decoder, in one run without a cache."""

    def make() -> Example:
        given = {"input_ids": tokens(), "decoder_input_ids": tokens(length=5)}
        return model(kind, config(settings, use_cache=False, **sizes)), (), given

    axes = {"input_ids": TEXT["input_ids"], "decoder_input_ids": {0: "batch", 1: "target"}}
    return Flow(make, axes)


def image(
    kind: str,
    settings: str,
    size: int | tuple[int, int] = 224,
    axes: Mapping[str, Mapping[int, str]] = IMAGE,
    more: Any = None,
    **sizes: Any,
) -> Flow:
    """A model of square images, or of a height and a width. ``more`` makes the other arguments."""
    height, width = (size, size) if isinstance(size, int) else size

    def make() -> Example:
        given = {"pixel_values": torch.randn(2, 3, height, width), **(more() if more else {})}
        return model(kind, config(settings, **sizes)), (), given

    return Flow(make, axes)


def detector(kind: str, settings: str, size: int = 320, **sizes: Any) -> Flow:
    """A detector whose decoder takes the places with the highest scores.

    The scores vary by more than the rounding of their bias, and few places are taken.
    """
    flow = with_variance_1(image(kind, settings, size, **{"num_queries": 20, **sizes}))

    def make() -> Example:
        module, args, kwargs = flow.make()
        for name, parameter in module.named_parameters():
            if name.endswith("enc_score_head.weight"):
                parameter.data *= 100
        return module, args, kwargs

    return replace(flow, make=make)


def sound(kind: str, settings: str, length: int = 8000, *, open_samples: bool = False, **sizes: Any) -> Flow:
    def make() -> Example:
        return model(kind, config(settings, **sizes)), (), {"input_values": torch.randn(2, length)}

    return Flow(make, {"input_values": {0: "batch", **({1: "samples"} if open_samples else {})}})


def features(kind: str, settings: str, shape: tuple[int, ...], **sizes: Any) -> Flow:
    def make() -> Example:
        return model(kind, config(settings, **sizes)), (), {"input_features": torch.randn(shape)}

    return Flow(make, {"input_features": {0: "batch"}})


def series(kind: str, settings: str, make_inputs: Any, **sizes: Any) -> Flow:
    def make() -> Example:
        return model(kind, config(settings, **sizes)), (), make_inputs()

    return Flow(make, {})


SMALL = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
}
EXPERTS = {"moe_intermediate_size": 128, "num_experts_per_tok": 2}
