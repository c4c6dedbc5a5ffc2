"""MediaPipe's transposed convolution with a bias, and TensorFlow's postprocessing of detections."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import tmconvert
from tests.frontends.tflite import raw
from tmconvert.errors import LoadError, UnsupportedError

RNG = np.random.default_rng(0)


def transposed(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, padding: int, stride: int) -> np.ndarray:
    """Computes the operator as its source says: each element of ``x`` adds a window to the result."""
    sizes, begins = [], []
    for extent, window in zip(x.shape[1:3], weights.shape[1:3], strict=True):
        lost = max(0, window - (extent - 1) % stride - 1) if padding == 1 else 0
        sizes.append(stride * (extent - 1) + window - lost)
        begins.append(lost // 2)
    made = np.zeros((x.shape[0], *sizes, len(bias))) + bias
    for row, column in np.ndindex(*x.shape[1:3]):
        for down, right in np.ndindex(*weights.shape[1:3]):
            y, z = row * stride - begins[0] + down, column * stride - begins[1] + right
            if 0 <= y < sizes[0] and 0 <= z < sizes[1]:
                made[:, y, z] += x[:, row, column] @ weights[:, down, right].T
    return made.astype(np.float32)


def network(path: Any, options: bytes, window: int = 3, name: str = "Convolution2DTransposeBias") -> Any:
    weights = RNG.standard_normal((5, window, window, 4)).astype(np.float32)
    bias = RNG.standard_normal(5).astype(np.float32)
    tensors = [
        raw.Tensor("x", "float32", (2, 6, 7, 4)),
        raw.Tensor("w", "float32", weights.shape, weights),
        raw.Tensor("b", "float32", bias.shape, bias),
        raw.Tensor("y", "float32", (2, 1, 1, 5)),
    ]
    raw.saved(path, tensors, [raw.Operator(name, [0, 1, 2], [3], options)], ([0], [3]))
    return path, weights, bias


@pytest.mark.parametrize("window", [2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [1, 2])
def test_a_transposed_convolution_with_a_bias(padding: int, stride: int, window: int, tmp_path: Any) -> None:
    options = struct.pack("<3i", padding, stride, stride)
    path, weights, bias = network(tmp_path / "net.tflite", options, window)
    x = RNG.standard_normal((2, 6, 7, 4)).astype(np.float32)
    expected = transposed(x, weights, bias, padding, stride)
    module = tmconvert.load(path)
    np.testing.assert_allclose(module(x), expected, rtol=1e-4, atol=1e-4)
    for target in ("onnx", "tflite"):
        convert = getattr(tmconvert, f"to_{target}")
        assert convert(module, tmp_path / f"made.{target}").verification is not None


@pytest.mark.parametrize("options", [b"", struct.pack("<3i", 1, 0, 2), struct.pack("<3i", 7, 2, 2)])
def test_damaged_options(options: bytes, tmp_path: Any) -> None:
    with pytest.raises(LoadError, match=r"(?s)TM1041.*options"):
        tmconvert.load(network(tmp_path / "net.tflite", options)[0])


def test_another_custom_operator_is_refused(tmp_path: Any) -> None:
    path, _, _ = network(tmp_path / "net.tflite", b"\x01", name="TransformLandmarks")
    with pytest.raises(UnsupportedError, match=r"TM2003.*custom\.TransformLandmarks"):
        tmconvert.to_onnx(path, tmp_path / "net.onnx")


BOXES, CLASSES, MOST = 40, 3, 10
OPTIONS = {"max_detections": MOST, "max_classes_per_detection": 1, "num_classes": CLASSES} | {
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.4,
    "use_regular_nms": False,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def detections(path: Any, **options: Any) -> Any:
    rng = np.random.default_rng(0)
    anchors = np.concatenate([rng.random((BOXES, 2)), rng.random((BOXES, 2)) * 0.3 + 0.1], 1)
    shapes = {"b": (1, BOXES, 4), "s": (1, BOXES, CLASSES + 1), "a": (BOXES, 4)}
    shapes |= {"boxes": (1, MOST, 4), "classes": (1, MOST), "scores": (1, MOST), "count": (1,)}
    tensors = [raw.Tensor(name, "float32", shape) for name, shape in shapes.items()]
    tensors[2].data = anchors.astype(np.float32)
    packed = bytes(flexbuffers.Dumps(OPTIONS | options))
    post = raw.Operator("TFLite_Detection_PostProcess", [0, 1, 2], [3, 4, 5, 6], packed)
    return raw.saved(path, tensors, [post], ([0, 1], [3, 4, 5, 6]))


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_postprocessing_of_detections(target: str, tmp_path: Any) -> None:
    source, made = detections(tmp_path / "net.tflite"), tmp_path / f"made.{target}"
    assert getattr(tmconvert, f"to_{target}")(source, made).verified
    for largest in (0.25, 0.31, 1.0):  # no box, some, and as many as are kept at most
        rng = np.random.default_rng(5)
        feeds = {
            "b": 3 * rng.standard_normal((1, BOXES, 4)),
            "s": rng.random((1, BOXES, CLASSES + 1)) * largest,
        }
        feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
        expected, found = (list(tmconvert.run(path, feeds).values()) for path in (source, made))
        assert found[3] == expected[3] == {0.25: 0, 0.31: 2, 1.0: MOST}[largest]
        for one, other in zip(found[:3], expected[:3], strict=True):  # LiteRT leaves the rest as it was
            np.testing.assert_allclose(
                one[:, : int(found[3][0])], other[:, : int(found[3][0])], rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("options", [{"use_regular_nms": True}, {"max_classes_per_detection": 2}], ids=str)
def test_suppression_of_each_class_is_refused(options: dict[str, Any], tmp_path: Any) -> None:
    with pytest.raises(UnsupportedError, match="suppression of each class"):
        tmconvert.to_onnx(detections(tmp_path / "net.tflite", **options), tmp_path / "net.onnx")


@pytest.mark.parametrize("options", [b"", b"\xff" * 9, bytes(flexbuffers.Dumps({"num_classes": 3}))], ids=str)
def test_damaged_flexbuffers(options: bytes, tmp_path: Any) -> None:
    with pytest.raises(LoadError, match=r"(?s)TM1041.*not valid"):
        tmconvert.load(network(tmp_path / "net.tflite", options, name="TFLite_Detection_PostProcess")[0])
