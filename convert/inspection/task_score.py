"""The score of a file on the data of a task."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from tmconvert.inspection.compared_models import FileSide, SourceSide

Side = FileSide | SourceSide


class Score(NamedTuple):
    """The score of a file on ``samples``; ``others`` are further ones by name."""

    file: str
    value: float
    samples: int
    others: Mapping[str, float] = {}

    def to_json(self) -> dict[str, Any]:
        """Returns the fields; numbers that are not finite are null."""
        others = {name: _finite(value) for name, value in self.others.items()}
        return {**self._asdict(), "value": _finite(self.value), "others": others}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def model_files(path: str | PathLike[str]) -> list[str | PathLike[str]]:
    """Returns the model files of the folder of a package, one for each data type, else the path itself."""
    folder = Path(path)
    for each in (folder, folder / "onnx") if folder.is_dir() else ():
        for name in ("decoder_model_merged", "model"):
            found = sorted(each.glob(f"{name}*.onnx"), key=lambda file: (len(file.name), file.name))
            if found:
                return list(found)
    return [path]
