"""What samples of ops are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.symbolics.ops.harness import Const, normal
from tmconvert.symbolics.target_names import TARGETS


@dataclass(frozen=True)
class Sample:
    """Arguments of one call, the targets that can express it, and from and to which opset."""

    args: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = TARGETS
    onnx_since: int = 7
    onnx_to: int = 99

    def suits(self, target: str, version: int) -> bool:
        return target in self.targets and (target != "onnx" or self.onnx_since <= version <= self.onnx_to)


X = normal(0, 2, 3, 5, 7)
POSITIVE = np.abs(X) + np.float32(0.25)
CHANNELS = [Const(array) for array in (normal(1, 3), normal(2, 3), normal(3, 3), np.abs(normal(4, 3)) + 1)]


def rows(file: str, section: str, names: Mapping[str, Any]) -> dict[str, list[Sample]]:
    """Returns a table of the file ``*.rows`` beside a module: samples by op, one a line.

    A line is an op, " | " and a sample, or samples after ``*``, in the names of the module and this one. It
    goes on in indented lines.
    """
    text = Path(file).with_suffix(".rows").read_text(encoding="utf-8").replace("\n  ", " ")
    found: dict[str, list[Sample]] = {}
    for line in text.split(f"== {section}\n")[1].partition("\n== ")[0].splitlines():
        op, separator, sample = line.partition(" | ")
        if separator and not line.startswith("#"):
            found.setdefault(op, []).extend(eval(f"[{sample}]", {**globals(), **names}))
    return found
