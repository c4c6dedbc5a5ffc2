"""What a conversion says of its calibration: files, images, and doubtful ranges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.calibration.images import image
from tmconvert.errors import UsageError
from tmconvert.ir.types import TensorType


@pytest.fixture(scope="module")
def model() -> tmconvert.TracedModule:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    return tmconvert.trace(net, torch.rand(1, 3, 6, 8))


@pytest.fixture
def images(tmp_path: Path) -> Path:
    from PIL import Image

    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        pixels = np.random.default_rng(number).integers(0, 256, (12, 12, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def notes(model: tmconvert.TracedModule, path: Path, data: object, **settings: object) -> list[str]:
    report = tmconvert.to_tflite(
        model, path, quantized=True, calibration=data, calibration_settings=settings, verify=False
    )
    return report.notes


def test_images_are_counted_and_described(model: tmconvert.TracedModule, images: Path) -> None:
    made = notes(model, images.parent / "o.tflite", images, std=[1.0])
    assert f"calibrated on 3 images of {images}: RGB, stretched to 6x8, (pixel / 255 - mean) / std" in made
    assert not any(note.startswith("warning") for note in made)
    made = notes(model, images.parent / "o.tflite", images, std=[1.0], resize="crop")
    assert any("RGB, scaled and cropped to 6x8" in note for note in made)


def test_a_doubtful_range_is_a_warning(model: tmconvert.TracedModule, images: Path) -> None:
    made = notes(model, images.parent / "o.tflite", images)
    assert any("pixels from 0 to 255" in note for note in made)
    (warning,) = [note for note in made if note.startswith("warning")]
    assert "input is between 0 and " in warning and "--mean and --std" in warning, warning


def test_arrays(model: tmconvert.TracedModule, tmp_path: Path) -> None:
    data = np.random.default_rng(0).random((4, 3, 6, 8), np.float32)
    np.savez(tmp_path / "x.npz", input=data)
    assert f"calibrated on {tmp_path / 'x.npz'}" in notes(model, tmp_path / "o.tflite", tmp_path / "x.npz")
    assert not any("calibrated on" in note for note in notes(model, tmp_path / "o.tflite", data))


def test_ways_to_resize(tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, 8:] = 255
    Image.fromarray(pixels).save(tmp_path / "half.png")
    inputs = [("x", TensorType(np.dtype("float32"), (1, 3, 8, 8)))]
    stretched, cropped, padded = (
        image(tmp_path / "half.png", inputs, "nchw", how)[0, 0]  # type: ignore[arg-type]
        for how in ("stretch", "crop", "pad")
    )
    assert stretched[:, 0].max() == 0 and stretched[:, -1].min() == 255
    assert cropped.shape == (8, 8) and cropped[0, 0] == 0 and cropped[0, -1] == 255
    assert padded[0].max() == 0 and padded[-1].max() == 0 and padded[4, -1] == 255
    with pytest.raises(UsageError, match="TM6032"):
        tmconvert.calibrate(tmp_path / "none.tm", np.zeros(1), resize="squash")
