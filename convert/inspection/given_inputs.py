"""Inputs of a run or a comparison, in each form in which callers pass them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.calibration.images import FORMATS, IMAGES, image, scale_pixels
from tmconvert.calibration.settings import ImageLayout, Settings
from tmconvert.conversion.example_text import is_example, parse_examples
from tmconvert.errors import UsageError
from tmconvert.formats.mapped_file import open_regular
from tmconvert.frontends.torch.request import Tracing
from tmconvert.ir.types import TensorType
from tmconvert.targets.written_model import TensorInfo

Inputs = Mapping[str, Any] | Sequence[Any] | np.ndarray | str | PathLike[str]
_CHANNELS = (1, 3, 4)  # of images


def given_inputs(
    inputs: Inputs | None, takes: Sequence[TensorInfo], settings: Settings | None = None
) -> Mapping[str, Any] | Sequence[Any] | str | PathLike[str]:
    """Returns arrays by name or in order, or the path of an .npz file.

    An image becomes the first of the inputs that a model ``takes``; a single array is the only one. Raises
    UsageError TM6003 for None, with the inputs that the model takes; TM6011, TM6015, TM6033.
    """
    if inputs is None:
        raise _missing(takes)
    if isinstance(inputs, (str, PathLike)):
        suffix = Path(inputs).suffix.lower()
        if suffix in IMAGES:
            return [image_array(Path(inputs), takes, settings or Settings())]
        text = str(inputs)
        return _parsed([text]) if suffix == ".npy" or is_example(text) else inputs
    if isinstance(inputs, (list, tuple)) and inputs and all(isinstance(each, str) for each in inputs):
        return _parsed(inputs)
    return inputs if isinstance(inputs, (Mapping, list, tuple)) else [inputs]


def traced_with(inputs: Inputs | None, tracing: Tracing) -> Tracing:
    """Returns the arguments of tracing with the inputs of a comparison as the example, if there is none."""
    is_file = isinstance(inputs, PathLike) or (isinstance(inputs, str) and not is_example(inputs))
    if inputs is None or is_file or tracing.has_inputs:
        return tracing
    given = given_inputs(inputs, ())
    if isinstance(given, Mapping):
        return tracing._replace(kwargs=given)
    assert not isinstance(given, (str, PathLike))
    return tracing._replace(args=tuple(given))


def _parsed(texts: Sequence[str]) -> Mapping[str, Any] | Sequence[Any]:
    in_order, by_name = parse_examples(texts)
    if in_order and by_name:
        raise UsageError("TM6003", "inputs are given both by name and in order")
    return by_name or list(in_order)


def _missing(takes: Sequence[TensorInfo]) -> UsageError:
    texts = " ".join(f"-i '{info.name}={_random_text(info)}'" for info in takes)
    return UsageError(
        "TM6003",
        "a run requires inputs",
        notes=[
            ("it takes", ", ".join(f"{info.name} {info.type_text}" for info in takes) or "no inputs"),
            ("help", f"pass an .npz file or an image, or random values: {texts}"),
        ],
    )


def _random_text(info: TensorInfo) -> str:
    """Returns the text of a random input; of a quantized one it has the real values."""
    dtype = "float32" if info.scale else info.dtype or "float32"
    return f"{dtype}[{','.join(map(str, info.example_shape))}]"


def image_array(path: Path, takes: Sequence[TensorInfo], settings: Settings) -> np.ndarray:
    """Returns an image as the input of a model, resized, with (pixel / 255 - mean) / std where these are set.

    Raises UsageError TM6033.
    """
    types = []
    for each in takes:
        types.append((each.name, TensorType(np.dtype(each.dtype or "float32"), each.example_shape)))
    layout: ImageLayout = "nhwc" if takes and is_channels_last(takes[0]) else "nchw"
    pixels = image(path, types, layout)
    _warn_of_stretching(path, pixels.shape[1:3] if layout == "nhwc" else pixels.shape[2:4])
    if takes_pixels(takes) and settings.scales:
        raise UsageError("TM6033", f"{takes[0].name} takes pixels as they are: omit mean and std")
    is_raw = takes[0].dtype == "uint8" and not settings.scales
    return pixels if is_raw else scale_pixels(pixels, settings._replace(layout=layout), str(path))


def _warn_of_stretching(path: Path, taken: Sequence[int]) -> None:
    """Logs a warning where an image has other proportions than the input."""
    from PIL import Image

    with open_regular(path) as file, Image.open(file, formats=FORMATS) as opened:
        width, height = opened.size
    if width * taken[0] != height * taken[1]:
        logging.getLogger("tmconvert").warning(
            "%s is stretched from %d x %d pixels to %d x %d", path, width, height, taken[1], taken[0]
        )


def takes_pixels(takes: Sequence[TensorInfo]) -> bool:
    """Whether the first input is an image of pixels from 0 to 255, as preprocessing in the file takes it."""
    return bool(takes) and takes[0].dtype == "uint8" and not takes[0].scale


def is_channels_last(info: TensorInfo) -> bool:
    """Whether an image has its channels last: by its layout, or where only the last size can be channels."""
    shape = info.shape or ()
    if info.layout or len(shape) != 4:
        return info.layout == "NHWC"
    return shape[1] not in _CHANNELS and shape[3] in _CHANNELS
