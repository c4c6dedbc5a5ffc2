"""Images: ultralytics, segmentation_models_pytorch, torchvision, timm, open_clip, monai, kornia, spandrel: name -> flow."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torchvision_ops import declare

BATCH = {0: "batch"}
OPEN = {0: "batch", 2: "height", 3: "width"}
SIZES = {"depth": (64, 32, 96), "texts": (1, 5, 2)}
VOLUME = {0: "batch", 2: "depth", 3: "height", 4: "width"}


class Net(nn.Module):
    """A module and what follows it, as it is wrapped for an export."""

    def __init__(self, module: nn.Module, after: Callable[[Any], Any]) -> None:
        super().__init__()
        self.module, self.after = module, after

    def forward(self, image: torch.Tensor) -> Any:
        return self.after(self.module(image))


def same(outputs: Any) -> Any:
    return outputs


def image(
    make: Callable[[], nn.Module],
    *size: int,
    axes: Mapping[int, str] = BATCH,
    channels: int = 3,
    after: Callable[[Any], Any] = same,
) -> Flow:
    """A model of images in [0, 1) of a height and a width (or a volume)."""

    def example() -> Example:
        declare()
        module = make().eval()
        return Net(module, after).eval(), (), {"image": torch.rand(2, channels, *size)}

    return Flow(example, {"image": axes}, SIZES)


def first(outputs: Any) -> Any:
    return outputs[0]


def last(outputs: Any) -> Any:
    return outputs[-1]


def found(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def made(module: str, name: str, *args: Any, **settings: Any) -> Callable[[], nn.Module]:
    """The function or class of a module, called when the model is needed."""
    return lambda: found(module, name)(*args, **settings)


def yolo(name: str, *, size: tuple[int, int] = (128, 160), end2end: bool | None = None) -> Flow:
    """A model of ultralytics as its own exporter prepares it: fused, its head set to export at any size."""

    def make() -> nn.Module:
        model = found("ultralytics", "YOLO")(name).model.fuse(verbose=False)
        for part in model.modules():
            if hasattr(part, "export"):
                part.export, part.format, part.dynamic = True, "onnx", True
            if end2end is not None and hasattr(part, "end2end"):
                part.end2end = end2end
        return model

    return image(make, *size, axes=OPEN)


def classifier(name: str) -> Flow:
    def make() -> nn.Module:
        model = found("ultralytics", "YOLO")(name).model.fuse(verbose=False)
        model.model[-1].export = True
        return model

    return image(make, 96, 128, axes=OPEN)


def smp(name: str, encoder: str = "resnet18", *, size: int = 96, **settings: Any) -> Flow:
    settings = {"encoder_weights": None, "classes": 3, **settings}
    return image(made("segmentation_models_pytorch", name, encoder, **settings), size, size + 32, axes=OPEN)


def segmentation(name: str) -> Flow:
    settings = {"weights": None, "weights_backbone": None, "num_classes": 5}
    return image(
        made("torchvision.models.segmentation", name, **settings),
        96,
        128,
        axes=OPEN,
        after=lambda y: y["out"],
    )


class Detector(nn.Module):
    """A detector of torchvision: images in a list, boxes and scores in a dict; the first image's are the outputs."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, image: torch.Tensor) -> Any:
        return self.module([image])[0]


def detection(name: str, **settings: Any) -> Flow:
    """One image at its own size: the detector resizes it."""

    def make() -> Example:
        declare()
        kind = found("torchvision.models.detection", name)
        settings.setdefault("min_size", 96)
        given = {"weights": None, "weights_backbone": None, "num_classes": 4, "max_size": 160}
        return Detector(kind(**given, **settings)).eval(), (), {"image": torch.rand(3, 96, 128)}

    return Flow(make)


def timm(name: str, size: int = 224, axes: Mapping[int, str] = BATCH, **settings: Any) -> Flow:
    return image(made("timm", "create_model", name, **settings), size, size, axes=axes)


class Clip(nn.Module):
    """Probabilities of texts for images, from both towers of open_clip."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: torch.Tensor, text: torch.Tensor) -> Any:
        images = self.model.encode_image(image, normalize=True)
        texts = self.model.encode_text(text, normalize=True)
        return (100.0 * images @ texts.T).softmax(dim=-1), images, texts


def clip(name: str) -> Flow:
    def make() -> Example:
        declare()
        model = found("open_clip", "create_model")(name, pretrained=None, force_image_size=None)
        size = model.visual.image_size
        size = size if isinstance(size, int) else size[0]
        for tower in (model.visual, getattr(model, "text", model)):
            _shorten(tower)
        length = model.context_length
        text = torch.randint(1, 400, (3, length))
        return Clip(model).eval(), (), {"image": torch.rand(2, 3, size, size), "text": text}

    return Flow(make, {"image": {0: "batch"}, "text": {0: "texts"}}, SIZES)


def _shorten(tower: Any) -> None:
    """Keeps two layers of a transformer."""
    blocks = getattr(getattr(tower, "transformer", None), "resblocks", None)
    if blocks is not None:
        del blocks[2:]


def spandrel(name: str, kind: str, size: int = 48, channels: int = 3, **settings: Any) -> Flow:
    return image(
        made(f"spandrel.architectures.{name}", kind, **settings), size, size, axes=OPEN, channels=channels
    )


def medical(name: str, *size: int, after: Callable[[Any], Any] = same, **settings: Any) -> Flow:
    axes = VOLUME if len(size) == 3 else OPEN
    return image(made("monai.networks.nets", name, **settings), *size, axes=axes, channels=1, after=after)


def hard_boxes(outputs: Any) -> Any:
    """What people write behind a detector: the boxes of one class, suppressed, at most 20."""
    import torchvision

    boxes, scores = outputs[0, :4].T, outputs[0, 4:].amax(0)
    centers, sizes = boxes[:, :2], boxes[:, 2:]
    corners = torch.cat([centers - sizes / 2, centers + sizes / 2], 1)
    kept = torchvision.ops.nms(corners, scores, 0.5)[:20]
    return corners[kept], scores[kept]


def detector_with_nms() -> Flow:
    inner = yolo("yolov8n.yaml")

    def make() -> Example:
        module, args, kwargs = inner()
        return Net(module, hard_boxes).eval(), args, {"image": kwargs["image"][:1]}

    return Flow(make, {"image": {2: "height", 3: "width"}})


class Photo(nn.Module):
    """Bytes of an image in, a class and its probability out: what an application would otherwise do itself."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

    def forward(self, photo: torch.Tensor) -> Any:
        x = photo.permute(0, 3, 1, 2).float() / 255
        x = nn.functional.interpolate(x, size=(224, 224), mode="bilinear", antialias=False)
        scores = self.model((x - self.mean) / self.std).softmax(1)
        best, label = scores.max(1)
        return scores, best, label


def photo(name: str) -> Flow:
    def make() -> Example:
        model = found("timm", "create_model")(name)
        return Photo(model).eval(), (), {"photo": torch.randint(0, 256, (2, 120, 160, 3), dtype=torch.uint8)}

    return Flow(make, {"photo": {0: "batch", 1: "height", 2: "width"}})


class Masks(nn.Module):
    """A map of classes and their shares of the image from the bytes of an image."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, photo: torch.Tensor) -> Any:
        x = photo.permute(0, 3, 1, 2).to(torch.float32).sub(127.5).div(127.5)
        labels = self.model(x).argmax(1)
        shares = nn.functional.one_hot(labels, 3).float().mean((1, 2))
        return labels.to(torch.uint8), shares


def masks() -> Flow:
    def make() -> Example:
        declare()
        model = found("segmentation_models_pytorch", "FPN")("resnet18", encoder_weights=None, classes=3)
        return Masks(model).eval(), (), {"photo": torch.randint(0, 256, (2, 96, 128, 3), dtype=torch.uint8)}

    return Flow(make, {"photo": {0: "batch", 1: "height", 2: "width"}})


class Pair(nn.Module):
    """A function of two images."""

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.call = module, call

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> Any:
        return self.call(self.module, left, right)


def pair(
    make: Callable[[], nn.Module],
    call: Callable[..., Any],
    axes: Mapping[int, str],
    *size: int,
    channels: int = 3,
) -> Flow:
    def example() -> Example:
        declare()
        given = {name: torch.rand(2, channels, *size) for name in ("left", "right")}
        return Pair(make(), call).eval(), (), given

    return Flow(example, dict.fromkeys(("left", "right"), axes))


MODELS: dict[str, Flow] = {
    # ultralytics
    "yolov8n-detect": yolo("yolov8n.yaml"),
    "yolov5n-detect": yolo("yolov5n.yaml"),
    "yolov3-tiny": yolo("yolov3-tiny.yaml"),
    "yolov9t-detect": yolo("yolov9t.yaml"),
    "yolov10n-end2end": yolo("yolov10n.yaml"),
    "yolo11n-detect": yolo("yolo11n.yaml"),
    "yolo11n-segment": yolo("yolo11n-seg.yaml"),
    "yolo11n-pose": yolo("yolo11n-pose.yaml"),
    "yolo11n-obb": yolo("yolo11n-obb.yaml"),
    "yolo11n-classify": classifier("yolo11n-cls.yaml"),
    "yolo12n-detect": yolo("yolo12n.yaml"),
    "yolo26n-end2end": yolo("yolo26n.yaml"),
    "yolo26n-segment": yolo("yolo26n-seg.yaml"),
    "yolo26n-pose": yolo("yolo26n-pose.yaml"),
    "yolo26n-obb": yolo("yolo26n-obb.yaml"),
    "yolov8n-ghost-p2": yolo("yolov8-ghost-p2.yaml"),
    "rtdetr-resnet50": image(
        made("ultralytics.nn.tasks", "RTDETRDetectionModel", "rtdetr-resnet50.yaml", verbose=False),
        160,
        160,
        after=first,
    ),  # noqa: E501
    "yolov8n-nms": detector_with_nms(),
    # segmentation_models_pytorch
    "smp-unet": smp("Unet"),
    "smp-unetplusplus": smp("UnetPlusPlus"),
    "smp-manet": smp("MAnet"),
    "smp-linknet-mobilenet": smp("Linknet", "mobilenet_v2"),
    "smp-fpn-efficientnet": smp("FPN", "efficientnet-b0"),
    "smp-pspnet": smp("PSPNet"),
    "smp-pan": smp("PAN", size=128),
    "smp-deeplabv3": smp("DeepLabV3", size=128),
    "smp-deeplabv3plus-timm": smp("DeepLabV3Plus", "tu-mobilenetv3_small_100", size=128),
    "smp-upernet": smp("UPerNet"),
    "smp-segformer-mit": smp("Segformer", "mit_b0"),
    "smp-dpt": image(
        made(
            "segmentation_models_pytorch", "DPT", "tu-vit_tiny_patch16_224", encoder_weights=None, classes=3
        ),
        224,
        224,
    ),
    "smp-unet-scse": smp("Unet", "timm-regnetx_002", decoder_attention_type="scse"),
    "smp-fpn-masks": masks(),
    # torchvision
    "deeplabv3-resnet50": segmentation("deeplabv3_resnet50"),
    "lraspp-mobilenet": segmentation("lraspp_mobilenet_v3_large"),
    "fcn-resnet50": segmentation("fcn_resnet50"),
    "fasterrcnn-mobilenet": detection("fasterrcnn_mobilenet_v3_large_320_fpn"),
    "maskrcnn-resnet50": detection("maskrcnn_resnet50_fpn", box_detections_per_img=10),
    "keypointrcnn-resnet50": detection("keypointrcnn_resnet50_fpn", box_detections_per_img=10),
    "retinanet-resnet50": detection("retinanet_resnet50_fpn_v2", detections_per_img=20),
    "fcos-resnet50": detection("fcos_resnet50_fpn", detections_per_img=20),
    "raft-small": pair(
        made("torchvision.models.optical_flow", "raft_small"),
        lambda m, a, b: m(a, b, num_flow_updates=2)[-1],
        {0: "batch"},
        128,
        160,
    ),
    "video-r3d": image(
        made("torchvision.models.video", "r3d_18"), 8, 64, 64, axes={0: "batch", 3: "height", 4: "width"}
    ),
    "video-swin3d": image(made("torchvision.models.video", "swin3d_t"), 8, 64, 64),
    "vgg-gram-style": image(
        lambda: made("torchvision.models", "vgg11")().features,
        64,
        96,
        axes=OPEN,
        after=lambda y: torch.einsum("bchw,bdhw->bcd", y, y) / y.shape[2] / y.shape[3],
    ),
    # timm
    "timm-efficientvit": timm("efficientvit_b0.r224_in1k", axes=OPEN),
    "timm-fastvit": timm("fastvit_t8", 256, axes=OPEN),
    "timm-mobilenetv4-hybrid": timm("mobilenetv4_hybrid_medium", axes=OPEN),
    "timm-repvit": timm("repvit_m0_9", axes=OPEN),
    "timm-hiera": timm("hiera_tiny_224"),
    "timm-vit-rope": timm("vit_base_patch16_rope_mixed_224", depth=2),
    "timm-eva02": timm("eva02_tiny_patch14_224", depth=2),
    "timm-vit-dynamic": timm("vit_tiny_patch16_224", axes=OPEN, depth=2, dynamic_img_size=True),
    "timm-swinv2": timm("swinv2_tiny_window8_256", 256, depths=(1, 1, 2, 1)),
    "timm-siglip-map": timm("vit_base_patch16_siglip_224", depth=2),
    "timm-features": image(made("timm", "create_model", "resnet18", features_only=True), 96, 128, axes=OPEN),
    "timm-photo-resnet": photo("resnet18"),
    "timm-photo-convnext": photo("convnext_atto"),
    "timm-starnet": timm("starnet_s1", axes=OPEN),
    "timm-focalnet": timm("focalnet_tiny_srf", axes=OPEN),
    # open_clip
    "clip-vit-b-32": clip("ViT-B-32"),
    "clip-siglip": clip("ViT-B-16-SigLIP"),
    "clip-rn50": clip("RN50"),
    "clip-coca": clip("coca_ViT-B-32"),
    # monai
    "monai-unet3d": medical(
        "UNet",
        32,
        32,
        32,
        spatial_dims=3,
        in_channels=1,
        out_channels=2,
        channels=(8, 16, 32),
        strides=(2, 2),
    ),
    "monai-unetr": medical(
        "UNETR",
        32,
        32,
        32,
        in_channels=1,
        out_channels=2,
        img_size=32,
        hidden_size=96,
        mlp_dim=192,
        num_heads=4,
    ),
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
    "monai-swinunetr": medical(
        "SwinUNETR", 64, 64, 64, in_channels=1, out_channels=2, feature_size=12, depths=(1, 1, 1, 1)
    ),
    "monai-vnet": medical("VNet", 32, 32, 32, spatial_dims=3, in_channels=1, out_channels=2),
    "monai-attentionunet": medical(
        "AttentionUnet",
        64,
        96,
        spatial_dims=2,
        in_channels=1,
        out_channels=2,
        channels=(8, 16, 32),
        strides=(2, 2),
    ),
    "monai-autoencoder-kl": medical(
        "AutoencoderKL",
        32,
        32,
        spatial_dims=2,
        in_channels=1,
        out_channels=1,
        num_res_blocks=(1, 1),
        channels=(32, 64),
        attention_levels=(False, True),
        latent_channels=4,
        norm_num_groups=8,
        after=lambda y: y[1],
    ),
    "monai-vitautoenc": medical(
        "ViTAutoEnc",
        32,
        32,
        32,
        in_channels=1,
        img_size=(32, 32, 32),
        patch_size=(8, 8, 8),
        num_layers=2,
        after=first,
    ),
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
    "spandrel-swinir": spandrel(
        "SwinIR",
        "SwinIR",
        img_size=48,
        embed_dim=60,
        depths=[2],
        num_heads=[6],
        upscale=2,
        upsampler="pixelshuffle",
    ),  # noqa: E501
    "spandrel-hat": spandrel(
        "HAT", "HAT", img_size=48, embed_dim=60, depths=(2,), num_heads=(6,), window_size=8
    ),
    "spandrel-dat": spandrel(
        "DAT", "DAT", img_size=48, embed_dim=60, depth=[2], num_heads=[6], split_size=[8, 8], upscale=2
    ),  # noqa: E501
    "spandrel-nafnet": spandrel(
        "NAFNet", "NAFNet", width=16, middle_blk_num=1, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1]
    ),  # noqa: E501
    "spandrel-rcan": spandrel("RCAN", "RCAN", n_resgroups=1, n_resblocks=2),
    "spandrel-span": spandrel("SPAN", "SPAN", num_in_ch=3, num_out_ch=3),
    "spandrel-plksr": spandrel("PLKSR", "PLKSR", n_blocks=2),
    "spandrel-scunet": spandrel("SCUNet", "SCUNet", size=64, config=[2] * 7),
    "spandrel-uformer": spandrel("Uformer", "Uformer", size=128, img_size=128, depths=[1] * 9),
    "spandrel-omnisr": spandrel("OmniSR", "OmniSR", num_feat=32, res_num=1, up_scale=2),
    "spandrel-retinexformer": spandrel("RetinexFormer", "RetinexFormer", num_blocks=[1, 1, 1]),
    "spandrel-lama": image(made("spandrel.architectures.LaMa", "LaMa"), 64, 64, axes=OPEN, channels=4),
    "spandrel-gfpgan": image(made("spandrel.architectures.GFPGAN", "GFPGANv1Clean"), 512, 512),
}
