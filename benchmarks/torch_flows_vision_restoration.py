"""Images and volumes: monai, kornia, spandrel: name -> flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch_flow import Flow, sizes_of
from torch_flow_images import OPEN, VOLUME, image, pair, same
from torch_flow_makers import found, made


def first(outputs: Any) -> Any:
    return outputs[0]


class WithoutNoise(nn.Module):
    """A face restorer that adds its own noise, not new one at each call."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> Any:
        return self.module(x, return_rgb=False, randomize_noise=False)[0]


def spandrel(name: str, kind: str, size: int = 48, channels: int = 3, **settings: Any) -> Flow:
    return image(
        made(f"spandrel.architectures.{name}", kind, **settings), size, size, axes=OPEN, channels=channels
    )


def medical(name: str, *size: int, after: Callable[[Any], Any] = same, **settings: Any) -> Flow:
    axes = VOLUME if len(size) == 3 else OPEN
    return image(made("monai.networks.nets", name, **settings), *size, axes=axes, channels=1, after=after)


SIZES = sizes_of(__file__)
MODELS: dict[str, Flow] = {
    # monai
    "monai-unet3d": medical("UNet", 32, 32, 32, **SIZES["monai-unet3d"]),
    "monai-unetr": medical("UNETR", 32, 32, 32, **SIZES["monai-unetr"]),
    "monai-segresnet": medical("SegResNet", 32, 32, 32, in_channels=1, out_channels=2, init_filters=8),
    "monai-dynunet": medical(
        "DynUNet",
        32,
        32,
        32,
        spatial_dims=3,
        in_channels=1,
        out_channels=2,
        kernel_size=[3, 3, 3],
        strides=[1, 2, 2],
        upsample_kernel_size=[2, 2],
    ),
    "monai-swinunetr": medical("SwinUNETR", 64, 64, 64, **SIZES["monai-swinunetr"]),
    "monai-vnet": medical("VNet", 32, 32, 32, spatial_dims=3, in_channels=1, out_channels=2),
    "monai-attentionunet": medical("AttentionUnet", 64, 96, **SIZES["monai-attentionunet"]),
    "monai-autoencoder-kl": medical(
        "AutoencoderKL", 32, 32, after=lambda y: y[1], **SIZES["monai-autoencoder-kl"]
    ),
    "monai-vitautoenc": medical("ViTAutoEnc", 32, 32, 32, after=first, **SIZES["monai-vitautoenc"]),
    "monai-mednext": medical("MedNeXtS", 32, 32, 32, spatial_dims=3, in_channels=1, out_channels=2),
    # kornia
    "kornia-hardnet": image(made("kornia.feature", "HardNet", False), 32, 32, channels=1),
    "kornia-sosnet": image(made("kornia.feature", "SOSNet", False), 32, 32, channels=1),
    "kornia-disk-heatmap": image(lambda: made("kornia.feature", "DISK")().unet, 64, 96, axes=OPEN),
    "kornia-xfeat": image(made("kornia.feature", "XFeatModel"), 96, 128, axes=OPEN),
    "kornia-dexined": image(made("kornia.models.dexined", "DexiNed", pretrained=False), 96, 128, axes=OPEN),
    "kornia-loftr": pair(
        made("kornia.feature", "LoFTR", None),
        lambda m, a, b: m.backbone(torch.cat([a, b])),
        {0: "batch", 2: "height", 3: "width"},
        64,
        96,
        channels=1,
    ),
    "kornia-augment": image(
        lambda: nn.Sequential(
            made("kornia.filters", "GaussianBlur2d", (5, 5), (1.5, 1.5))(),
            made("kornia.filters", "Sobel")(),
            made(
                "kornia.enhance", "Normalize", torch.tensor([0.4, 0.4, 0.5]), torch.tensor([0.2, 0.3, 0.2])
            )(),
        ),
        48,
        64,
        axes=OPEN,
    ),
    "kornia-color": image(
        nn.Identity, 48, 64, axes=OPEN, after=lambda x: found("kornia.color", "rgb_to_lab")(x)
    ),
    # super-resolution and restoration
    "spandrel-esrgan": spandrel("ESRGAN", "ESRGAN", num_blocks=2),
    "spandrel-compact": spandrel("Compact", "Compact", num_conv=4),
    "spandrel-swinir": spandrel("SwinIR", "SwinIR", depths=[2], num_heads=[6], **SIZES["spandrel-swinir"]),
    "spandrel-hat": spandrel("HAT", "HAT", **SIZES["spandrel-hat"]),
    "spandrel-dat": spandrel(
        "DAT", "DAT", img_size=48, embed_dim=60, depth=[2], num_heads=[6], split_size=[8, 8], upscale=2
    ),
    "spandrel-nafnet": spandrel(
        "NAFNet", "NAFNet", width=16, middle_blk_num=1, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1]
    ),
    "spandrel-rcan": spandrel("RCAN", "RCAN", n_resgroups=1, n_resblocks=2),
    "spandrel-span": spandrel("SPAN", "SPAN", num_in_ch=3, num_out_ch=3),
    "spandrel-plksr": spandrel("PLKSR", "PLKSR", n_blocks=2),
    "spandrel-scunet": spandrel("SCUNet", "SCUNet", size=64, config=[2] * 7),
    "spandrel-uformer": spandrel("Uformer", "Uformer", size=128, img_size=128, depths=[1] * 9),
    "spandrel-omnisr": spandrel("OmniSR", "OmniSR", num_feat=32, res_num=1, up_scale=2),
    "spandrel-retinexformer": spandrel("RetinexFormer", "RetinexFormer", num_blocks=[1, 1, 1]),
    "spandrel-lama": pair(
        made("spandrel.architectures.LaMa", "LaMa", in_nc=4),
        lambda m, picture, noise: m(picture, (noise[:, :1] > 0.5).float()),
        OPEN,
        64,
        64,
    ),
    "spandrel-gfpgan": image(
        lambda: WithoutNoise(
            made("spandrel.architectures.GFPGAN", "GFPGAN", out_size=64, num_style_feat=64, narrow=0.5)()
        ),
        64,
        64,
    ),
}
