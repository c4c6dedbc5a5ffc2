"""``tmconvert samples``."""

from __future__ import annotations

from pathlib import Path

import click

from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json


@click.command("samples", cls=GroupedCommand, example="tmconvert samples samples")
@click.argument("folder", metavar="FOLDER", type=click.Path())
@declared_options("samples")
def command(folder: str, json: bool) -> None:
    """Copy small trained models and images to the new folder FOLDER, to try commands with.

    FOLDER/README.md describes them.
    """
    from tmconvert.inspection.samples import copy_samples

    files = copy_samples(Path(folder))
    if json:
        write_json({"folder": folder, "files": [str(path) for path in files]})
        return
    path = Path(folder)
    write(
        f"{len(files)} files in {folder}; try:",
        f"  tmconvert inspect {path / 'digits.tm'}",
        f"  tmconvert onnx {path / 'digits.tm'} digits.onnx",
        f"  tmconvert tflite {path / 'digits.tm'} digits.tflite --quantized --calibration "
        f"{path / 'images'} --std 1",
        f"  tmconvert compare {path / 'digits.tm'} digits.tflite",
    )
