"""A model with open sizes is calibrated at the sizes of the data."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import tmconvert
from tests.frontends.onnx.models import of_nodes
from tmconvert.errors import UsageError

RNG = np.random.default_rng(0)


def data(*shape: int) -> np.ndarray:
    return RNG.random(shape, np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    made = tmp_path_factory.mktemp("sizes") / "net.onnx"
    weights = {"w": RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)}
    onnx.save(of_nodes(nodes, {"x": ["batch", 3, "h", "w"]}, ["y"], weights), str(made))
    return made


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        (data(5, 3, 12, 9), [1, 3, 12, 9]),  # five samples
        (data(4, 3, 12, 9), [2, 3, 12, 9]),  # two batches of the example's size
        ([{"x": data(1, 3, 12, 9)}, {"x": data(1, 3, 12, 9)}], [1, 3, 12, 9]),
        ([data(3, 12, 9)], [1, 3, 12, 9]),
        (data(2, 3, 64, 64), [2, 3, 64, 64]),  # the example
    ],
)
def test_the_model_is_measured_at_the_sizes_of_the_data_and_stays_open(path, given, sizes):
    made = tmconvert.calibrate(path, given)
    assert list(made.graph.inputs[1].shape) == sizes
    assert sorted(made.dynamic_shapes["x"]) == [0, 2, 3]


def test_the_integer_file_is_right_at_other_sizes(path, tmp_path):
    report = tmconvert.to_tflite(path, tmp_path / "y.tflite", quantized=True, calibration=data(3, 3, 12, 9))
    assert report.verified
    assert report.inputs[0]["shape"] == ["batch", "h", "w", 3]
    assert any("calibrated at h=12, w=9, batch=1" in note for note in report.notes)


def test_samples_of_several_sizes_are_refused_with_the_sizes_of_the_first(path):
    with pytest.raises(UsageError, match=r"\[1, 3, 13, 9\]") as caught:
        tmconvert.calibrate(path, [data(1, 3, 12, 9), data(1, 3, 13, 9)])
    assert "the first sample has h=12, w=9, batch=1: crop, pad or resize" in str(caught.value)


def test_channels_last_data_is_recognized_at_any_size(path):
    with pytest.raises(UsageError, match="channels last"):
        tmconvert.calibrate(path, data(4, 12, 9, 3))
