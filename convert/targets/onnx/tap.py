"""Makes values of an ONNX file outputs."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx


def tapped_onnx(path: Path, names: Sequence[str], folder: Path) -> Path:
    """Writes a copy of the file to ``folder``, with the values ``names`` as its outputs; returns its path.

    External data are linked, or else copied. Operators that only other outputs need are left out.
    """
    model = onnx.load(path, load_external_data=False)
    known = {output.name: output for output in model.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(
        known.get(name) or onnx.helper.make_empty_tensor_value_info(name) for name in names
    )
    for location in set(_locations(model.graph)):
        with contextlib.suppress(OSError):
            _link(path.parent / location, folder / location)
    tapped = folder / "tapped.onnx"
    tapped.write_bytes(model.SerializeToString())
    return tapped


def _locations(graph: Any) -> Iterator[str]:
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            name = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
            is_within = name and not os.path.isabs(name) and ".." not in Path(name).parts  # noqa: PTH117
            if is_within:
                yield name


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
