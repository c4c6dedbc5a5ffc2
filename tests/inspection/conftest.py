"""Written files of all kinds, made once for these tests."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import tmconvert
from tmconvert.conversion.report import Report


class Files(NamedTuple):
    """``paths`` are by kind: onnx, tflite, prototxt, half (float16), int8 and qdq; ``reports`` likewise."""

    model: tmconvert.TracedModule
    paths: dict[str, Path]
    reports: dict[str, Report]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    import torch

    from tests.inspection.network import Net

    folder = tmp_path_factory.mktemp("files")
    generator = torch.Generator().manual_seed(3)
    torch.manual_seed(5)
    model = tmconvert.trace(Net().eval(), torch.rand(1, 3, 12, 16, generator=generator))
    data = torch.rand(8, 3, 12, 16, generator=generator).numpy()
    model.save(folder / "net.tm")
    calibrated = tmconvert.calibrate(model, data, bias_correction=False, equalization=False)
    made = {
        "onnx": tmconvert.to_onnx(model, folder / "net.onnx", verify=False),
        "tflite": tmconvert.to_tflite(model, folder / "net.tflite", verify=False),
        "prototxt": tmconvert.to_caffe(model, folder / "net.prototxt", verify=False),
        "half": tmconvert.to_onnx(model, folder / "half.onnx", float_type="float16", verify=False),
        "int8": tmconvert.to_tflite(calibrated, folder / "int8.tflite", quantized=True, verify=False),
        "qdq": tmconvert.to_onnx(calibrated, folder / "qdq.onnx", quantized=True, verify=False),
    }
    return Files(model, {kind: report.paths[0] for kind, report in made.items()}, made)
