"""Factories of architectures of other people, by name: ``architectures:resnet18``.

Rows state the package, the class or function, its arguments, and the shape of the input, or of token ids.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

IMAGE, SMALL = (1, 3, 64, 64), (1, 3, 32, 32)
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 99,
}
# name: package, shape of the input (or the number of tokens), arguments
ROWS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "DeepSpeech": ("tests.streaming.nets", (1, 1, 8, 48), {}),
    "Unet": ("tests.streaming.nets", (1, 1, 48), {}),
    **{
        name: ("torchvision.models", IMAGE, {})
        for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "densenet121")
    },
    **{
        name: ("torchvision.models", IMAGE, {})
        for name in ("efficientnet_b0", "mnasnet0_5", "regnet_y_400mf", "convnext_tiny", "swin_t")
    },
    "googlenet": ("torchvision.models", IMAGE, {"init_weights": False, "aux_logits": False}),
    "VisionTransformer": (
        "torchvision.models",
        SMALL,
        {
            "image_size": 32,
            "patch_size": 8,
            "num_layers": 2,
            "num_heads": 4,
            "hidden_dim": 32,
            "mlp_dim": 64,
        },
    ),
    "lraspp_mobilenet_v3_large": ("torchvision.models.segmentation", IMAGE, {"weights_backbone": None}),
    "r3d_18": ("torchvision.models.video", (1, 3, 4, 32, 32), {}),
    **{
        name: ("timm.models", IMAGE, {})
        for name in ("ghostnet_100", "mobilevit_xxs", "poolformer_s12", "edgenext_xx_small", "repvgg_a0")
    },
    "resmlp_12_224": ("timm.models", IMAGE, {"img_size": 64}),
    "hrnet_w18_small": ("timm.models", IMAGE, {}),
    **dict.fromkeys(
        ("BertModel", "DistilBertModel", "LlamaModel", "GPTNeoXModel", "RobertaModel", "ElectraModel"),
        ("transformers", 8, TINY),
    ),
    "GPT2Model": ("transformers", 8, {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99}),
    "ViTModel": ("transformers", SMALL, {**TINY, "image_size": 32, "patch_size": 8}),
}


def _make(name: str) -> Any:
    import torch

    package, shape, arguments = ROWS[name]
    torch.manual_seed(0)
    for op in ("nms", "qnms"):
        with suppress(RuntimeError):  # torchvision of another build imports where these are known
            torch.library.define(f"torchvision::{op}", "(Tensor dets, Tensor scores, float least) -> Tensor")
    found = getattr(importlib.import_module(package), name)
    if package != "transformers":
        return found(**arguments), (torch.rand(shape),)
    transformers = importlib.import_module(package)
    config = getattr(transformers, name.replace("Model", "Config"))(**arguments)
    inputs = torch.rand(shape) if isinstance(shape, tuple) else torch.arange(shape)[None]
    return found(config), (inputs,)


def _with_seed(name: str, seed: str) -> Any:
    """Returns an architecture with code after the middle one of its layers that no trace can follow."""
    from tests.reduction.untraceable import SEEDS

    model, inputs = _make(name)
    places = [
        (parent, key)
        for parent in model.modules()
        for key, child in parent.named_children()
        if not [*child.children()]
    ]
    parent, key = places[len(places) // 2]
    setattr(parent, key, SEEDS[seed](getattr(parent, key)))
    return model, inputs


def __getattr__(name: str) -> Callable[[], Any]:
    name, _, seed = name.partition("__with_")
    if name not in ROWS:
        raise AttributeError(name)
    return (lambda: _with_seed(name, seed)) if seed else (lambda: _make(name))
