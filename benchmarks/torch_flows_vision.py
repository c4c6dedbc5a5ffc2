"""Images: ultralytics, segmentation_models_pytorch, torchvision, timm, open_clip: name -> flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torch_flow_images import OPEN, SIZES, Net, image, pair
from torch_flow_makers import BATCH, found, made, with_variance_1
from torch_models_torchvision import FEW, with_spread_heads, with_statistics
from torchvision_ops import declare


def first(outputs: Any) -> Any:
    return outputs[0]


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
    """A detector of torchvision, for one image: images come in a list, and boxes in dicts."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, image: torch.Tensor) -> Any:
        return self.module([image])[0]


def detection(name: str, **settings: Any) -> Flow:
    """One image at its own size: the detector resizes it. Its scores differ by more than rounding."""

    def make() -> Example:
        declare()
        kind = found("torchvision.models.detection", name)
        given = {"weights": None, "weights_backbone": None, "num_classes": 4, "min_size": 96, "max_size": 160}
        model, image = kind(**{**given, **settings}).eval(), torch.rand(3, 96, 128)
        with_statistics(model.backbone)
        with_spread_heads(model, image)
        return Detector(model).eval(), (), {"image": image}

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


def hard_boxes(outputs: Any) -> Any:
    """What people write behind a detector: the boxes of one class, suppressed, at most 20."""
    import torchvision

    boxes, scores = outputs[0, :4].T, outputs[0, 4:].amax(0)
    centers, sizes = boxes[:, :2], boxes[:, 2:]
    corners = torch.cat([centers - sizes / 2, centers + sizes / 2], 1)
    kept = torchvision.ops.nms(corners, scores, 0.5)[:20]
    return corners[kept], scores[kept]


def detector_with_nms() -> Flow:
    """A detector whose scores are neither equal nor so small that runtimes round them to 0."""
    inner = yolo("yolov8n.yaml")

    def make() -> Example:
        module, args, kwargs = inner()
        return module, args, {"image": kwargs["image"][:1]}

    spread = with_variance_1(Flow(make))

    def made_of_spread() -> Example:
        module, args, kwargs = spread()
        for part in module.modules():
            if isinstance(part, nn.Conv2d) and part.bias is not None:
                nn.init.zeros_(part.bias)
        return Net(module, hard_boxes).eval(), args, kwargs

    return Flow(made_of_spread, {"image": {2: "height", 3: "width"}})


class Photo(nn.Module):
    """From the bytes of an image to a class and its probability, with all preprocessing."""

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


FEW_BOXES = {"box_detections_per_img": 4, "rpn_post_nms_top_n_test": 20}
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
    ),
    "yolov8n-nms": detector_with_nms(),
    # segmentation_models_pytorch
    "smp-unet": smp("Unet"),
    "smp-unetplusplus": smp("UnetPlusPlus"),
    "smp-manet": smp("MAnet"),
    "smp-linknet-mobilenet": smp("Linknet", "mobilenet_v2"),
    "smp-fpn-efficientnet": smp("FPN", "efficientnet-b0"),
    "smp-pspnet": smp("PSPNet"),
    "smp-pan": replace(
        smp("PAN", size=128), sizes={**SIZES, "height": (160, 128, 256), "width": (128, 192, 320)}
    ),
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
    "fasterrcnn-mobilenet": detection(
        "fasterrcnn_mobilenet_v3_large_320_fpn", box_score_thresh=0.1, rpn_post_nms_top_n_test=30
    ),
    "maskrcnn-resnet50": detection("maskrcnn_resnet50_fpn", box_score_thresh=0.01, **FEW_BOXES),
    "keypointrcnn-resnet50": detection(
        "keypointrcnn_resnet50_fpn", num_classes=2, box_score_thresh=0.0, **FEW_BOXES
    ),
    "retinanet-resnet50": detection("retinanet_resnet50_fpn_v2", **FEW),
    "fcos-resnet50": detection("fcos_resnet50_fpn", **FEW),
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
}
