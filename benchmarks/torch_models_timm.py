"""Image models of ``timm`` with random weights, on small images: name -> (module, args, kwargs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
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
MODELS: dict[str, Callable[[], Example]] = {
    **{name: image(name) for name in PLAIN.split()},
    "vit_tiny_patch16_224": image("vit_tiny_patch16_224", img_size=64),
    "vit_tiny_patch16_224@even": image("vit_tiny_patch16_224", 96, img_size=64, dynamic_img_size=True),
    "deit_tiny_distilled": image("deit_tiny_distilled_patch16_224", img_size=64),
    "swin_tiny_patch4_window7_224": image("swin_tiny_patch4_window7_224", img_size=64, window_size=4),
    "swinv2_tiny_window8_256": image("swinv2_tiny_window8_256", img_size=64, window_size=4),
    "mixer_s16_224": image("mixer_s16_224", img_size=64),
    "gmlp_ti16_224": image("gmlp_ti16_224", img_size=64),
    "maxvit_rmlp_pico_rw_256": image("maxvit_rmlp_pico_rw_256", img_size=64),
    "coatnet_pico_rw_224": image("coatnet_pico_rw_224", img_size=64),
    "levit_128s": image("levit_128s", 224),
    "xcit_nano_12_p16_224": image("xcit_nano_12_p16_224", img_size=64),
    "coat_lite_tiny": image("coat_lite_tiny", img_size=64),
    "efficientformer_l1": image("efficientformer_l1", 224),
    "efficientformerv2_s0": image("efficientformerv2_s0", 224),
    "resmlp_12_224": image("resmlp_12_224", 224),
    "cait_xxs24_224": image("cait_xxs24_224", img_size=64),
    "twins_pcpvt_small": image("twins_pcpvt_small", img_size=64),
    "twins_svt_small": image("twins_svt_small", img_size=64),
    "eva02_tiny_patch14_224": image("eva02_tiny_patch14_224", 56, img_size=56),
    "beit_base_patch16_224": image("beit_base_patch16_224", img_size=64, depth=2, embed_dim=64, num_heads=4),
    "visformer_tiny": image("visformer_tiny", img_size=64),
    "crossvit_tiny_240": image("crossvit_tiny_240", 240),
    "pit_ti_224": image("pit_ti_224", 224),
    "convit_tiny": image("convit_tiny", img_size=64),
    "volo_d1_224": image("volo_d1_224", img_size=64),
    "hiera_tiny_224": image("hiera_tiny_224", 224),
    "mvitv2_tiny": image("mvitv2_tiny", img_size=64),
    "sequencer2d_s": image("sequencer2d_s", img_size=64),
    "naflexvit": image("naflexvit_base_patch16_gap", depth=2, embed_dim=64, num_heads=4),
}
