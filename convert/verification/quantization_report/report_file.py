"""Writes the report of an integer conversion as .html, .json or .txt, by the suffix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.errors import UsageError
from tmconvert.output.atomic import check_writable
from tmconvert.verification.quantization_report.page import page

if TYPE_CHECKING:
    from tmconvert.verification.noise import Noise
    from tmconvert.verification.report import Verification

SUFFIXES = (".html", ".json", ".txt")


def check_suffix(path: Path) -> None:
    """Raises UsageError TM6002 for another suffix."""
    if path.suffix.lower() not in SUFFIXES:
        help = [("help", f"use one of the suffixes {', '.join(SUFFIXES)}")]
        raise UsageError("TM6002", f"the report {path} has an unknown suffix", notes=help)


def check_report_file(path: Path) -> None:
    """Raises UsageError TM6002 for another suffix, WriteError TM5001 where it cannot be written."""
    check_suffix(path)
    check_writable(path)


def report_text(suffix: str, title: str, verification: Verification) -> str:
    """Returns the whole report: runtime and inputs, and each layer."""
    runtime, inputs, layers = verification.runtime, verification.inputs, verification.noise
    if suffix == ".json":
        about = {"model": title, "runtime": runtime, "inputs": inputs}
        return json.dumps({**about, "layers": [layer.to_json() for layer in layers]}, indent=2) + "\n"
    measured = f"{len(layers)} layers, measured in {runtime} on {inputs}."
    return page(title, measured, layers) if suffix == ".html" else f"{title}: {measured}\n\n{table(layers)}"


def table(layers: tuple[Noise, ...]) -> str:
    rows: list[tuple[str, ...]] = [("layer", "op", "local dB", "accumulated dB", "clipped", "range used")]
    for layer in layers:
        shares = (f"{layer.clipped:.3%}", f"{layer.used:.1%}") if layer.step else ("float", "float")
        rows.append((layer.name, layer.function, f"{layer.local:.1f}", f"{layer.whole:.1f}", *shares))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "".join(f"{line.rstrip()}\n" for line in lines)
