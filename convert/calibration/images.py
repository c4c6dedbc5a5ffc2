"""Reads images as inputs of models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.calibration.settings import ImageLayout, Resize, Settings
from tmconvert.calibration.unfit import unfit
from tmconvert.errors import UsageError
from tmconvert.formats.mapped_file import open_regular
from tmconvert.ir.types import TensorType

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp"})
# What Pillow may decode, whatever a file is called. It would start Ghostscript for PostScript, a program that
# runs programs; the data of a stranger is a usual thing to calibrate on.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # of Pillow, by channels


def image(
    path: Path, inputs: Sequence[tuple[str, TensorType]], layout: ImageLayout, resize: Resize = "stretch"
) -> np.ndarray:
    """Returns the image as uint8, resized to the input, in its layout. Raises UsageError TM6033."""
    try:
        from PIL import Image
    except ImportError as error:
        raise unfit("reading images requires Pillow, which is not installed", "pip install pillow") from error
    takes = ", ".join(f"{name} {type_}" for name, type_ in inputs)
    type_ = inputs[0][1]
    if len(inputs) > 1 or len(type_.shape) != 4:
        raise unfit(f"{path} is an image, but the model takes {takes}", "pass .npy or .npz files")
    is_last = layout == "nhwc"
    channels = type_.shape[3 if is_last else 1]
    height, width = type_.shape[1:3] if is_last else type_.shape[2:4]
    if channels not in _MODES:
        other = "nchw" if is_last else "nhwc"
        has_others = type_.shape[1 if is_last else 3] in _MODES
        help = f"use --layout {other} if the input has that layout" if has_others else "pass .npy files"
        raise unfit(f"{path} is an image, but {takes} has {channels} channels in {layout}", help)
    try:
        with open_regular(path) as file, Image.open(file, formats=FORMATS) as opened:
            if opened.mode.startswith(("I", "F")):
                raise unfit(f"the pixels of {path} have more than 8 bits", "pass .npy files")
            read = _resize(opened.convert(_MODES[channels]), (width, height), resize)
    except UsageError:
        raise
    except Exception as error:  # decoders raise many kinds for a damaged file
        if "identify" not in str(error):
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise unfit(f"{path} cannot be read: {reason}", "") from error
        read_are = f"{', '.join(FORMATS[:-1])} and {FORMATS[-1]}"
        reason = "it is damaged, or not an image in a supported format"
        raise unfit(f"{path} cannot be read: {reason}", f"supported formats are {read_are}") from error
    array = np.asarray(read).reshape(height, width, channels)
    return np.ascontiguousarray((array if is_last else array.transpose(2, 0, 1))[None])


def _resize(picture: Any, size: tuple[int, int], resize: Resize) -> Any:
    """Returns a picture of Pillow in another size, with both sides stretched, or cropped or padded."""
    if resize == "stretch":
        return picture.resize(size)
    from PIL import ImageOps

    if resize == "crop":
        return ImageOps.fit(picture, size)
    return ImageOps.pad(picture, size)


def scale_pixels(pixels: np.ndarray, settings: Settings, name: str) -> np.ndarray:
    """Returns (pixels / 255 - mean) / std of rank 4, or the pixels if neither is given; float32."""
    array = pixels.astype(np.float32)
    if not settings.scales:
        return array
    axis = 3 if settings.layout == "nhwc" else 1
    shape = tuple(-1 if each == axis else 1 for each in range(4))
    mean = np.array(settings.mean if len(settings.mean) else (0,), np.float32)
    std = np.array(settings.std if len(settings.std) else (1,), np.float32)
    for option, numbers in (("mean", mean), ("std", std)):
        if len(numbers) not in (1, pixels.shape[axis]):
            channels = f"{pixels.shape[axis]} channels"
            raise unfit(
                (f"{option} has {len(numbers)} values, but {name} has {channels} channels"),
                ("pass one value per channel"),
            )
    return (array / np.float32(255) - mean.reshape(shape)) / std.reshape(shape)
