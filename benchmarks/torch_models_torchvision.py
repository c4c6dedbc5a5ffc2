"""Families of ``torchvision`` with random weights, on small images: name -> (module, args, kwargs)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

Example = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]

MODELS: dict[str, Callable[[], Example]] = {}


def image(size: int, batch: int = 1) -> torch.Tensor:
    return torch.rand(batch, 3, size, size)


def _made(path: str, *args: Any, **options: Any) -> torch.nn.Module:
    from torchvision_ops import declare

    declare()
    import torchvision

    torch.manual_seed(0)
    made = torchvision.models
    for part in path.split("."):
        made = getattr(made, part)
    return made(*args, weights=None, **options).eval()


def _classifier(name: str, size: int, **options: Any) -> Example:
    return _made(name, num_classes=10, **options), (image(size, 2),), {}


_SIZES = {
    **dict.fromkeys(
        ["resnet18", "resnext50_32x4d", "wide_resnet50_2", "regnet_x_400mf", "regnet_y_400mf"], 64
    ),
    **dict.fromkeys(["mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "mnasnet0_5"], 64),
    **dict.fromkeys(["efficientnet_b0", "efficientnet_v2_s", "shufflenet_v2_x0_5", "densenet121"], 64),
    **dict.fromkeys(["squeezenet1_0", "squeezenet1_1", "vgg11_bn", "alexnet", "convnext_tiny"], 96),
    **dict.fromkeys(["swin_t", "swin_v2_t"], 64),
}
for _name, _size in _SIZES.items():
    MODELS[_name] = partial(_classifier, _name, _size)
MODELS["vit_b_16"] = partial(_classifier, "vit_b_16", 64, image_size=64)
MODELS["maxvit_t"] = partial(_classifier, "maxvit_t", 224)
MODELS["googlenet"] = partial(_classifier, "googlenet", 64, aux_logits=False, init_weights=True)
MODELS["inception_v3"] = partial(_classifier, "inception_v3", 96, aux_logits=False, init_weights=True)


def _segmenter(name: str) -> Example:
    return _made(f"segmentation.{name}", num_classes=5, weights_backbone=None), (image(65, 2),), {}


for _name in ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50"):
    MODELS[_name] = partial(_segmenter, _name)


def _clip(name: str, frames: int, size: int, **options: Any) -> Example:
    model = _made(f"video.{name}", num_classes=10, **options)
    return model, (torch.rand(1, 3, frames, size, size),), {}


MODELS["r3d_18"] = partial(_clip, "r3d_18", 4, 32)
MODELS["s3d"] = partial(_clip, "s3d", 16, 224)
MODELS["swin3d_t"] = partial(_clip, "swin3d_t", 4, 32)
MODELS["mvit_v1_b"] = partial(_clip, "mvit_v1_b", 16, 224)


class Flow(torch.nn.Module):
    """The last of two estimates of the motion between two images."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        return self.model(before, after, num_flow_updates=2)[-1]


def _flow() -> Example:
    return Flow(_made("optical_flow.raft_small")), (image(128), image(128)), {}


MODELS["raft_small"] = _flow


# the deviation of what a layer says: boxes are moved by a part of their size
HEADS = {
    **dict.fromkeys(("cls_logits", "cls_score", "mask_fcn_logits", "kps_score_lowres"), 1.0),
    **dict.fromkeys(("bbox_pred", "bbox_reg"), 0.1),
}


class Detector(torch.nn.Module):
    """A detector of one image, which gives boxes, labels and scores."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return self.model([x])[0]


def with_statistics(backbone: torch.nn.Module) -> None:
    """Gives the norms the statistics of an image: else all scores are equal, and their order is by chance."""
    for module in backbone.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        backbone.train()(torch.rand(2, 3, 320, 320))
    backbone.eval()


def with_spread_heads(model: torch.nn.Module, x: torch.Tensor) -> None:
    """Gives what the heads say the deviations of ``HEADS``, one after the other.

    Small weights make scores as good as equal, large ones boxes as large as the image.
    """
    for name, module in model.named_modules():
        deviation = HEADS.get(name.rpartition(".")[2])
        if deviation:
            made: list[torch.Tensor] = []
            hook = module.register_forward_hook(lambda _, given, result, made=made: made.append(result))
            with torch.no_grad():
                model([x])
            hook.remove()
            module.weight.data *= deviation / torch.cat([each.flatten() for each in made]).std()


def _detector(name: str, **options: Any) -> Example:
    options = {"weights_backbone": None, "num_classes": 5, "min_size": 64, "max_size": 96, **options}
    model, x = _made(f"detection.{name}", **options), torch.rand(3, 64, 80)
    with_statistics(model.backbone)
    with_spread_heads(model, x)
    return Detector(model), (x,), {}


MODELS["fasterrcnn_mobilenet_v3"] = partial(
    _detector, "fasterrcnn_mobilenet_v3_large_320_fpn", box_score_thresh=0.1, rpn_post_nms_top_n_test=30
)
# scores that random weights give some boxes: at lower ones many are equal, and their order is by chance
for _name, _classes, _least in (("maskrcnn", 5, 0.01), ("keypointrcnn", 2, 0.0)):
    MODELS[f"{_name}_resnet50"] = partial(
        _detector,
        f"{_name}_resnet50_fpn",
        num_classes=_classes,
        box_score_thresh=_least,
        box_detections_per_img=4,
        rpn_post_nms_top_n_test=20,
    )
FEW = {"score_thresh": 0.01, "topk_candidates": 60, "detections_per_img": 20}
for _name in ("retinanet", "fcos"):
    MODELS[f"{_name}_resnet50"] = partial(_detector, f"{_name}_resnet50_fpn", **FEW)


def _ssd(name: str) -> Example:
    model = _made(f"detection.{name}", weights_backbone=None, num_classes=5, **FEW)
    with_statistics(model.backbone)
    return Detector(model), (torch.rand(3, 64, 80),), {}


MODELS["ssdlite320_mobilenet_v3"] = partial(_ssd, "ssdlite320_mobilenet_v3_large")
