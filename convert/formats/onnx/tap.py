"""Copies of ONNX files that runtimes run: with other outputs, or with open sizes of inputs."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tmconvert.formats.onnx.external_data import is_inside, location_of
from tmconvert.formats.onnx.messages import messages
from tmconvert.formats.onnx.model import read_whole_model


def tapped_onnx(path: Path, names: Sequence[str], folder: Path) -> Path:
    """Writes a copy of the file to ``folder``, with the values ``names`` as its outputs; returns its path.

    External data are linked, or else copied. Operators that only other outputs need are left out.
    Raises LoadError TM1001, TM1031 to TM1033.
    """
    model = read_whole_model(str(path), keeps_links=True)
    known = {output.name: output for output in model.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(known.get(name) or messages().ValueInfoProto(name=name) for name in names)
    return _written(model, path, folder)


def opened_onnx(path: Path, folder: Path) -> Path:
    """Writes a copy of the file to ``folder`` in which no value states its size; returns its path.

    Raises LoadError TM1001, TM1031 to TM1033.
    """
    model = read_whole_model(str(path), keeps_links=True)
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    del model.graph.value_info[:]
    return _written(model, path, folder)


def _written(model: Any, path: Path, folder: Path) -> Path:
    for location in {location_of(tensor) for tensor in model.graph.initializer}:
        if location is not None and is_inside(location):
            with contextlib.suppress(OSError):
                _link(path.parent / location, folder / location)
    tapped = folder / "tapped.onnx"
    tapped.write_bytes(model.SerializeToString())
    return tapped


def with_outputs(path: Path, names: Sequence[str]) -> tuple[bytes, list[str]]:
    """Returns the model with those of ``names`` that it computes as outputs, and these names.

    Raises LoadError TM1001, TM1031 to TM1033.
    """
    model = read_whole_model(str(path))
    made = {name for node in model.graph.node for name in node.output}
    present = {output.name for output in model.graph.output}
    found = [name for name in dict.fromkeys(names) if name in made]
    model.graph.output.extend(messages().ValueInfoProto(name=name) for name in found if name not in present)
    return model.SerializeToString(), found


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
