"""Progress: stages and counted steps, reported to a function of the caller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.progress import begin, counter, reporting

DIGITS = Path(__file__).parent.parent / "samples" / "digits.tm"
IMAGES = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)
Heard = list[tuple[int, int, str]]


@pytest.fixture
def heard() -> Heard:
    return []


def stages(heard: Heard) -> list[str]:
    """The stages that began, in order."""
    return [stage for done, total, stage in heard if (done, total) == (0, 0)]


@pytest.mark.slow
def test_stages_of_conversions(heard: Heard, tmp_path: Path) -> None:
    def progress(done: int, total: int, stage: str) -> None:
        heard.append((done, total, stage))

    net = torch.nn.Sequential(torch.nn.Linear(3, 2)).eval()
    tmconvert.to_onnx(net, tmp_path / "o.onnx", example_inputs=[torch.ones(1, 3)], progress=progress)
    assert stages(heard) == ["import", "trace", "convert", "write", "verify"]
    heard.clear()
    tmconvert.to_target(
        DIGITS, "tflite", tmp_path / "o.tflite", quantized=True, calibration=IMAGES, progress=progress
    )
    assert stages(heard) == ["read", "calibrate", "convert", "write", "verify"]
    assert [each for each in heard if each[1]] == [(number, 3, "calibrate") for number in (1, 2, 3)]


def test_stages_of_a_trace(heard: Heard) -> None:
    def progress(done: int, total: int, stage: str) -> None:
        heard.append((done, total, stage))

    tmconvert.trace(torch.nn.ReLU(), torch.ones(2), progress=progress)
    assert stages(heard) == ["import", "trace"]


def test_layers_of_comparisons_are_counted(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    tmconvert.to_onnx(DIGITS, tmp_path / "o.onnx", verify=False)
    found = tmconvert.compare(
        DIGITS, tmp_path / "o.onnx", progress=lambda done, total: heard.append((done, total))
    )
    assert heard == [(number + 1, len(found.layers)) for number in range(len(found.layers))]


def test_errors_of_the_function_are_the_callers(tmp_path: Path) -> None:
    def progress(done: int, total: int, stage: str) -> None:
        if stage == "write":
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tmconvert.to_onnx(DIGITS, tmp_path / "o.onnx", progress=progress)
    assert not list(tmp_path.iterdir())


def test_the_innermost_function_is_called(heard: Heard) -> None:
    outer: list[Any] = []
    assert counter("verify") is None
    with reporting(lambda done, total, stage: outer.append(stage)):
        with reporting(lambda done, total, stage: heard.append((done, total, stage))), reporting(None):
            begin("read")
        begin("write")
    begin("trace")
    assert (stages(heard), outer) == (["read"], ["write"])


def test_functions_without_a_signature() -> None:
    with reporting(max):
        begin("read")
        count = counter("calibrate")
        assert count is not None
        assert count(1, 2) == 2
