"""Image models of ``timm`` with random weights, on small images: name -> (module, args, kwargs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from rows import table
from torchvision_ops import declare

Example = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]


def image(name: str, size: int = 64, **settings: Any) -> Callable[[], Example]:
    def factory() -> Example:
        declare()
        import timm

        torch.manual_seed(0)
        module = timm.create_model(name, pretrained=False, num_classes=10, **settings).eval()
        return module, (torch.randn(2, 3, size, size),), {}

    return factory


PLAIN = """
    resnet18 mobilenetv3_small_050 efficientnet_b0 convnext_atto poolformer_s12 hrnet_w18_small
    dm_nfnet_f0 nf_regnet_b0 regnety_002 repvgg_a0 ghostnet_050 edgenext_xx_small mobilevit_xxs
    pvt_v2_b0 fastvit_t8 efficientnet_lite0 densenet121 dla34 mnasnet_050 vgg11 res2net50_14w_8s
    skresnet18 ecaresnet26t seresnet18 xception41 selecsls42 vovnet39a mobileone_s0 repghostnet_050
    inception_next_atto starnet_s1 tiny_vit_5m_224 efficientvit_b0 mobilenetv4_conv_small gernet_s
    cspresnet50 convmixer_768_32 rexnet_100 tinynet_e lcnet_050 hardcorenas_a davit_tiny
    focalnet_tiny_srf caformer_s18 convformer_s18
"""
MODELS: dict[str, Callable[[], Example]] = {name: image(name) for name in PLAIN.split()} | table(
    __file__, globals()
)
