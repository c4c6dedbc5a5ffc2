"""Reads reports of quantization noise, which conversions write as JSON, for the page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tmconvert.errors import UsageError
from tmconvert.errors.values import checked_path

MOST = 2  # runs that the page compares


def read_reports(paths: Sequence[str | PathLike[str]]) -> list[Mapping[str, Any]]:
    """Returns the reports in JSON files. Raises UsageError TM6002."""
    if len(paths) > MOST:
        raise UsageError("TM6002", f"a page compares {MOST} reports, got {len(paths)}")
    return [_report(checked_path(path)) for path in paths]


def _report(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError("TM6002", f"cannot read the report {path}: {error}") from error
    if not _is_report(found):
        raise UsageError(
            "TM6002",
            f"{path} is not a report of quantization noise",
            notes=[("help", "write one with --report FILE.json of a conversion with --quantized")],
        )
    return {"model": path.name, **found}


def _is_report(found: Any) -> bool:
    if not isinstance(found, Mapping):
        return False
    layers = found.get("layers")
    return isinstance(layers, list) and all(
        isinstance(layer, Mapping) and isinstance(layer.get("name"), str) and isinstance(layer.get("op"), str)
        for layer in layers
    )
