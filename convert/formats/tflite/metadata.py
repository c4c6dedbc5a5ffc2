"""Reads the metadata of a TFLite file without its other tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.tflite.faults import damaged
from tmconvert.formats.tflite.flatbuffer import Flatbuffer
from tmconvert.formats.tflite.model_metadata import ENTRY, described, metadata_of
from tmconvert.formats.tflite.records import content_of

_LAYOUT, _OPTIONS = "tmconvert.layout", "tmconvert.options"


def tflite_layouts(path: Path) -> tuple[list[bool], list[bool]] | None:
    """Returns which inputs and outputs are channels-last, from the file's metadata; None without it.

    Raises LoadError TM1001 or TM1041.
    """
    layouts = _entry(path, _LAYOUT)
    if layouts is None:
        return None
    inputs, outputs = layouts.get("inputs"), layouts.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise damaged(str(path), f"its metadata {_LAYOUT} has no lists of inputs and outputs")
    return [layout == "nhwc" for layout in inputs], [layout == "nhwc" for layout in outputs]


def tflite_options(path: Path) -> Mapping[str, Any]:
    """Returns the options of the conversion that wrote the file, from its metadata; empty without them.

    Raises LoadError TM1001 or TM1041.
    """
    return _entry(path, _OPTIONS) or {}


def tflite_metadata(path: Path) -> dict[str, str]:
    """Returns what the file states to its users, as texts by key. Raises LoadError TM1001 or TM1041."""
    content = buffer_named(path, ENTRY)
    return {**metadata_of(str(path)), **({} if content is None else described(content))}


def _entry(path: Path, key: str) -> dict[str, Any] | None:
    """Returns a JSON object of the metadata; None without it."""
    content = buffer_named(path, key)
    if content is None:
        return None
    try:
        found = json.loads(bytes(content))
    except (ValueError, RecursionError) as error:
        raise damaged(str(path), f"its metadata {key} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise damaged(str(path), f"its metadata {key} is not a JSON object")
    return found


def buffer_named(path: Path, key: str) -> memoryview | None:
    """Returns the buffer of an entry of the metadata; None without it."""
    root = Flatbuffer(map_file(str(path)), lambda cause: damaged(str(path), cause)).root()
    number = next((entry.integer(1, "uint32") for entry in root.tables(6) if entry.text(0) == key), None)
    buffers = [] if number is None else root.tables(4)
    return content_of(buffers[number]) if number is not None and number < len(buffers) else None
