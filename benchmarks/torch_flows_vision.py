"""What the rows of ``torch_flows/vision.models`` use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch_flow import Example, Flow
from torch_flow_images import OPEN, SIZES, Net, image
from torch_flow_makers import BATCH, found, made, with_variance_1
from torch_models_torchvision import with_spread_heads, with_statistics
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
