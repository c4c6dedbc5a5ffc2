"""The report of an integer conversion as text and JSON; the page is of ``tmconvert.viewer``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert.errors import UsageError
from tmconvert.output.atomic import check_writable

if TYPE_CHECKING:
    from tmconvert.verification.noise import Noise
    from tmconvert.verification.verify import Verification

SUFFIXES = (".html", ".json", ".txt")
NODE_DATA = ".nodes.json"


def check_suffix(path: Path) -> None:
    """Raises UsageError TM6002 for another suffix."""
    if path.suffix.lower() not in SUFFIXES:
        help = [("help", f"use one of the suffixes {', '.join(SUFFIXES)}")]
        raise UsageError("TM6002", f"the report {path} has an unknown suffix", notes=help)


def check_report_file(path: Path) -> None:
    """Raises UsageError TM6002 for another suffix, WriteError TM5001 where it cannot be written."""
    check_suffix(path)
    check_writable(path)


def json_text(record: Mapping[str, Any]) -> str:
    """Returns a report as JSON text; lists of numbers are on one line."""
    layers = ",\n".join(f"    {json.dumps(layer)}" for layer in record["layers"])
    others = json.dumps({key: value for key, value in record.items() if key != "layers"}, indent=2)
    return f'{others[:-2]},\n  "layers": [\n{layers}\n  ]\n}}\n'


def node_data(record: Mapping[str, Any]) -> str:
    """Returns the accumulated noise in dB as node data of Model Explorer, by the tensors of the layers."""
    layers = [each for each in record["layers"] if each["accumulated_db"] is not None]
    colours = [{"stop": 0, "bgColor": "#d73027"}, {"stop": 1, "bgColor": "#ffffff"}]
    results = {each["name"]: {"value": each["accumulated_db"]} for each in layers}
    return json.dumps({"name": "signal-to-noise ratio in dB", "results": results, "gradient": colours})


def plain_text(title: str, verification: Verification) -> str:
    """Returns a report as text: runtime and inputs, and a table of the layers."""
    layers = verification.noise
    measured = f"{len(layers)} layers, measured in {verification.runtime} on {verification.inputs}."
    return f"{title}: {measured}\n\n{table(layers)}"


def table(layers: tuple[Noise, ...]) -> str:
    rows: list[tuple[str, ...]] = [("layer", "op", "local dB", "accumulated dB", "clipped", "range used")]
    for layer in layers:
        shares = (f"{layer.clipped:.3%}", f"{layer.used:.1%}") if layer.step else ("float", "float")
        rows.append((layer.name, layer.function, f"{layer.local:.1f}", f"{layer.whole:.1f}", *shares))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "".join(f"{line.rstrip()}\n" for line in lines)
