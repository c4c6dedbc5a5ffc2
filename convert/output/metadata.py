"""Metadata of written files: about their source, equal in every run, and what a user states about a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tmconvert.ir import TracedModule

OPTIONS, SIZE_RANGES = "tmconvert.options", "tmconvert.size_ranges"
SOURCE = "tmconvert.source"
OWN = "tmconvert."  # keys of our own metadata begin with it


class ImageInput(NamedTuple):
    """An input that takes images of pixels from 0 to 255 after (pixel - mean) / std, one or per channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


class Annotations(NamedTuple):
    """Statements of a user about a model, for the programs that use its file.

    ``metadata`` are texts by key; ``labels`` those of classes, in order; ``images`` are inputs by name.
    ``is_given`` separates metadata of the call from those that the source has.
    """

    metadata: Mapping[str, str] = {}
    labels: tuple[str, ...] = ()
    images: Mapping[str, ImageInput] = {}
    is_given: bool = False


def metadata(
    module: TracedModule,
    layouts: tuple[Sequence[bool], Sequence[bool]] | None,
    options: Mapping[str, object],
    ranges: Sequence[str] = (),
) -> dict[str, str]:
    """Returns metadata as key -> text.

    ``layouts`` are which inputs and outputs are stored channels-last, for targets that have the choice, as
    ``tmconvert.layout``. ``options`` are those of the conversion that shape the file, as ``OPTIONS``;
    ``ranges`` are those of dynamic sizes in which it is right.
    """
    entries = {SOURCE: module.producer or "unknown"}
    chosen = {name: value for name, value in options.items() if value}
    entries[OPTIONS] = json.dumps(chosen, sort_keys=True)
    if ranges:
        entries[SIZE_RANGES] = json.dumps(list(ranges))
    if digest := source_sha256(module):
        entries["tmconvert.source_sha256"] = digest
    if layouts is not None:
        inputs, outputs = ([_order(nhwc) for nhwc in each] for each in layouts)
        entries["tmconvert.layout"] = json.dumps({"inputs": inputs, "outputs": outputs})
    return entries


def _order(nhwc: bool) -> str:
    return "nhwc" if nhwc else "source"


def source_sha256(module: TracedModule) -> str | None:
    """Returns the SHA-256 of the original model in hexadecimal; None when it is not known."""
    if module.source_sha256 or not module.source_file:
        return module.source_sha256 or None
    with suppress(OSError):
        return _file_sha256(Path(module.source_file))
    return None


def _file_sha256(path: Path) -> str:
    import hashlib

    digest, block = hashlib.sha256(), memoryview(bytearray(1 << 18))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()
