"""Reads reports of quantization noise and comparisons of models, as commands write them in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tmconvert.errors import UsageError
from tmconvert.errors.values import checked_path
from tmconvert.formats.mapped_file import read_regular

MOST = 2  # runs that the page compares
EQUAL = 999.0  # dB, of tensors without a difference
# the lower limits of the levels of heat in dB, by the type that limits the precision
LEVELS = {"float32": [120, 90, 60, 30], "float16": [60, 50, 40, 30], "integers": [40, 30, 20, 10]}


def read_reports(paths: Sequence[str | PathLike[str]]) -> list[Mapping[str, Any]]:
    """Returns the reports in JSON files. Raises UsageError TM6002."""
    if len(paths) > MOST:
        raise UsageError("TM6002", f"a page compares {MOST} reports, got {len(paths)}")
    return [_report(checked_path(path)) for path in paths]


def _report(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError("TM6002", f"cannot read the report {path}: {error}") from error
    if _is_comparison(found):
        return _of_comparison(found)
    if not _is_report(found):
        raise UsageError(
            "TM6002",
            f"{path} is not a report of quantization noise or a comparison",
            notes=[
                (
                    "help",
                    "write one with --report FILE.json of a conversion with --quantized, or with "
                    "`tmconvert compare A B --json > FILE.json`",
                )
            ],
        )
    return {"model": path.name, **found}


def _is_comparison(found: Any) -> bool:
    if not isinstance(found, Mapping) or found.get("kind") not in LEVELS:
        return False
    layers = found.get("layers")
    return isinstance(layers, list) and all(
        isinstance(layer, Mapping)
        and isinstance(layer.get("name"), str)
        and isinstance(layer.get("function"), str)
        and isinstance(layer.get("accumulated"), Mapping)
        and isinstance(layer.get("local"), Mapping | None)
        for layer in layers
    )


def _of_comparison(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the differences of a comparison in the form of a report."""
    layers = [
        {
            "name": layer["name"],
            "op": layer["function"],
            "local_db": _decibels(layer["local"]),
            "accumulated_db": _decibels(layer["accumulated"]),
        }
        for layer in found["layers"]
    ]
    about = {"model": str(found.get("suspect", "")), "inputs": f"compared with {found.get('first', '')}"}
    return {**about, "layers": layers, "levels": LEVELS[found["kind"]]}


def _decibels(difference: Mapping[str, Any] | None) -> float | None:
    """Returns the ratio of signal to noise; a large one for equal tensors, None for what was not compared."""
    if difference is None:
        return None
    ratio = difference.get("decibels")
    return float(ratio) if isinstance(ratio, (int, float)) else EQUAL


def _is_report(found: Any) -> bool:
    if not isinstance(found, Mapping):
        return False
    layers = found.get("layers")
    return isinstance(layers, list) and all(
        isinstance(layer, Mapping) and isinstance(layer.get("name"), str) and isinstance(layer.get("op"), str)
        for layer in layers
    )
