"""Layers of SSD and of networks with regions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.caffe.layer_calls import LayerCall, LayerTable

LAYERS = LayerTable()
MOST_BOXES = 1 << 22
_SAME = 1e-6  # aspect ratios that differ by less are one


@LAYERS.layer("ROIPooling")
def roi_pooling(layer: LayerCall) -> Any:
    parameters = layer.parameters
    size = [parameters.pooled_h, parameters.pooled_w]
    boxes = layer.reshaped(layer.bottoms[1], [math.prod(layer.shapes[1]) // 5, 5])
    return layer.g.call("torchvision::roi_pool", layer.x, boxes, size, parameters.spatial_scale)


@LAYERS.layer("PriorBox")
def prior_box(layer: LayerCall) -> Any:
    """Boxes around each place of a feature map [1, 2, boxes * 4], and their variances: constants.

    Source: the fork of Caffe with SSD (weiliu89/caffe, branch ssd, prior_box_layer.cpp).
    """
    _check_fields(layer)
    (_, _, rows, columns), (_, _, height, width) = layer.shapes
    parameters = layer.parameters
    image = np.array([_image_size(parameters, "w", width), _image_size(parameters, "h", height)])
    steps = np.array(
        [_step(parameters, "w") or image[0] / columns, _step(parameters, "h") or image[1] / rows]
    )
    sizes = np.array(_box_sizes(parameters), np.float32)
    if rows * columns * len(sizes) > MOST_BOXES:
        raise Refusal(f"PriorBox makes {rows * columns * len(sizes)} boxes")
    places = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), -1)
    centres = ((places + parameters.offset) * steps)[:, :, None, :]
    boxes = np.concatenate([centres - sizes / 2, centres + sizes / 2], -1) / np.tile(image, 2)
    if parameters.clip:
        boxes = boxes.clip(0, 1)
    flat = boxes.reshape(1, 1, -1).astype(np.float32)
    variances = np.array(list(parameters.variance) or [0.1], np.float32)
    if len(variances) not in (1, 4):
        raise Refusal(f"PriorBox has {len(variances)} variances, not 4")
    spread = np.tile(variances, flat.size // len(variances)).reshape(1, 1, -1)
    return layer.g.constant(np.concatenate([flat, spread], 1))


def _check_fields(layer: LayerCall) -> None:
    parameters = layer.parameters
    if any(len(shape) != 4 for shape in layer.shapes) or len(layer.shapes) != 2:
        raise Refusal("PriorBox needs a feature map and an image, of four axes each")
    for name in ("offset_h", "offset_w", "width", "height"):
        if len(getattr(parameters, name)):
            raise Refusal(f"PriorBox has the field {name}, which OpenCV alone defines")
    if not parameters.min_size or any(size <= 0 for size in parameters.min_size):
        raise Refusal("PriorBox needs min_size")
    if len(parameters.max_size) not in (0, len(parameters.min_size)):
        raise Refusal("PriorBox needs as many of max_size as of min_size")


def _image_size(parameters: Any, axis: str, extent: int) -> int:
    return int(getattr(parameters, f"img_{axis}") or parameters.img_size or extent)


def _step(parameters: Any, axis: str) -> float:
    return float(getattr(parameters, f"step_{axis}") or parameters.step)


def _box_sizes(parameters: Any) -> list[tuple[float, float]]:
    """Returns width and height of the boxes around one place, in order."""
    ratios = [1.0]
    for given in parameters.aspect_ratio:
        if all(abs(given - ratio) >= _SAME for ratio in ratios):
            ratios += [given, 1 / given] if parameters.flip else [given]
    sizes = []
    for number, least in enumerate(parameters.min_size):
        sizes.append((least, least))
        if parameters.max_size:
            sizes.append((math.sqrt(least * parameters.max_size[number]),) * 2)
        for ratio in ratios[1:]:
            sizes.append((least * math.sqrt(ratio), least / math.sqrt(ratio)))
    return sizes
