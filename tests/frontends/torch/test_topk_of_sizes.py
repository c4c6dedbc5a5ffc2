"""``topk`` of as many as a size says, and their indices, at other sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.targets.registry import runtime_for

COUNTS: dict[str, Callable[[int], int]] = {
    "min(5, n)": lambda n: min(5, n),
    "half": lambda n: (n + 1) // 2,
    "n": lambda n: n,
}
TARGETS: dict[str, Any] = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", COUNTS)
def test_topk(count: str, target: str, tmp_path: Path):
    def best(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = x.topk(COUNTS[count](x.shape[0]), 0)
        return values, indices

    path, example = tmp_path / f"o.{target}", (torch.rand(4, 3),)
    report = TARGETS[target](best, path, example_inputs=example, dynamic_shapes={"x": {0: "n"}})
    runtime = runtime_for(target, path)
    assert runtime is not None and report.verified
    for rows in (1, 4, 5, 11):
        x = torch.rand(rows, 3)
        found = runtime.run([path], {"x": x.numpy()}, [each["name"] for each in report.outputs])
        for each, wanted in zip(found, best(x), strict=True):
            np.testing.assert_array_equal(each, wanted.numpy())
