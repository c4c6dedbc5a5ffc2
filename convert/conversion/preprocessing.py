"""Preprocessing of images in the model: a description of an input, and the operators that it stands for.

``"image: rgb, nhwc, uint8, mean=0.485,0.456,0.406, std=0.229,0.224,0.225, resize=480x640"`` describes the
images that the written file takes. Its operators convert them to what the model takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from tmconvert.errors import UsageError

LAYOUTS, COLOURS, TYPES = ("nhwc", "nchw"), ("rgb", "bgr"), ("uint8", "float32")
EXAMPLE = "rgb, nhwc, uint8, mean=0.485,0.456,0.406, std=0.229,0.224,0.225"
_SIZE = re.compile(r"(\d+)x(\d+)")


class ImageInput(NamedTuple):
    """Images as the file takes them.

    ``name`` is the argument of the model, empty for its only input. ``colours`` is the order of the channels
    of the images, ``model_colours`` that of the model. Values are (pixel / 255 - mean) / std, per channel in
    the order of the model; the pixel if neither is given. ``size`` is height and width of the images, which
    are resized (bilinear) to those of the model; None for images of the model's size.
    """

    name: str = ""
    colours: str = "rgb"
    model_colours: str = "rgb"
    layout: str = "nchw"
    dtype: str = "float32"
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    size: tuple[int, int] | None = None

    @property
    def scales(self) -> bool:
        return bool(self.mean or self.std)

    def __str__(self) -> str:
        """Returns the description, which ``parse_image_input`` reads."""
        parts = [self.colours, self.layout, self.dtype]
        if self.model_colours != self.colours:
            parts.append(f"model={self.model_colours}")
        for key, numbers in (("mean", self.mean), ("std", self.std)):
            if numbers:
                parts.append(f"{key}={','.join(map(str, numbers))}")
        if self.size is not None:
            parts.append(f"resize={self.size[0]}x{self.size[1]}")
        return f"{self.name}: {', '.join(parts)}" if self.name else ", ".join(parts)


class Preprocessing(NamedTuple):
    """Operators before ``images`` of a model, and softmax and argmax after its only output."""

    images: tuple[ImageInput, ...] = ()
    softmax: bool = False
    argmax: bool = False

    @classmethod
    def of(cls, given: Any, softmax: bool = False, argmax: bool = False) -> Preprocessing:
        """Returns the preprocessing for a description, or a list of them. Raises UsageError TM6002."""
        texts = [] if given is None else [given] if isinstance(given, str) else list(given)
        images = tuple(map(parse_image_input, texts))
        names = [each.name for each in images]
        if len(set(names)) < len(names):
            _refuse(f"preprocess describes the input {next(n for n in names if names.count(n) > 1)!r} twice")
        return cls(images, bool(softmax), bool(argmax))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Preprocessing:
        """Reads the options that a file stores."""
        return cls.of(stored.get("preprocess"), stored.get("softmax", False), stored.get("argmax", False))

    def to_json(self) -> dict[str, object]:
        """Returns the options that differ from the defaults."""
        given = {"preprocess": list(map(str, self.images)), "softmax": self.softmax, "argmax": self.argmax}
        return {name: value for name, value in given.items() if value}


def parse_image_input(text: str) -> ImageInput:
    """Reads a description of images. Raises UsageError TM6002.

    >>> parse_image_input("image: bgr, nhwc, uint8, std=1, resize=480x640").size
    (480, 640)
    """
    if not isinstance(text, str):
        _refuse(f"preprocess must be a description such as {EXAMPLE!r}, got {type(text).__name__}")
    name, colon, rest = text.rpartition(":")
    found: dict[str, Any] = {"name": name.strip()} if colon else {}
    lists: dict[str, list[str]] = {}
    last = ""
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (each.strip() for each in part.partition("="))
        if equals and key in ("mean", "std"):
            last = key
            lists[key] = value.split()
        elif last and not equals and _is_number(part):
            lists[last] += part.split()
        else:
            last = ""
            found |= _word(key, value, bool(equals))
    for key, numbers in lists.items():
        found[key] = _numbers(key, numbers)
    return ImageInput(**found)


def _word(key: str, value: str, has_value: bool) -> dict[str, Any]:
    for field, words in (("layout", LAYOUTS), ("colours", COLOURS), ("dtype", TYPES)):
        if key in words and not has_value:
            return {field: key}
    if key == "model" and value in COLOURS:
        return {"model_colours": value}
    size = _SIZE.fullmatch(value) if key == "resize" else None
    if size is not None and all(0 < int(each) < 1 << 16 for each in size.groups()):
        return {"size": (int(size[1]), int(size[2]))}
    shown = f"{key}={value}" if has_value else key
    known = ", ".join((*COLOURS, *LAYOUTS, *TYPES, "model=rgb|bgr", "mean=...", "std=...", "resize=HxW"))
    grey = "; images of one channel need no order of colours" if key.lower() in ("grey", "gray") else ""
    _refuse(f"preprocess has the unknown word {shown!r}", f"use {known}{grey}")


def _is_number(text: str) -> bool:
    try:
        return all(math.isfinite(float(each)) for each in text.split())
    except ValueError:
        return False


def _numbers(key: str, texts: Sequence[str]) -> tuple[float, ...]:
    if not texts or not all(map(_is_number, texts)):
        _refuse(f"{key} of preprocess must be finite numbers, got {' '.join(texts)!r}")
    numbers = tuple(map(float, texts))
    if key == "std" and any(number <= 0 for number in numbers):
        _refuse(f"std of preprocess must be positive, got {' '.join(texts)!r}")
    return numbers


def _refuse(message: str, help: str = f"an example: {EXAMPLE}") -> NoReturn:
    raise UsageError("TM6002", message, notes=[("help", help)])
