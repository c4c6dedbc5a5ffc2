"""Files of fixed sizes whose batch is made dynamic, or whose images get other sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import tmconvert
from tests.frontends.onnx.models import of_nodes
from tmconvert.errors import TmconvertError, UsageError, VerificationError

runtime = pytest.importorskip("onnxruntime")
RNG = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def network(*, ends: list[int]) -> Any:
    """Returns a convolution, windows of its result, a class token, and a reshape to ``ends``."""
    make = helper.make_node
    nodes = [
        make("Conv", ["image", "k"], ["c"], kernel_shape=[3, 3], pads=[1] * 4),
        make("Reshape", ["c", "split"], ["s"]),
        make("Transpose", ["s"], ["t"], perm=[0, 2, 4, 3, 5, 1]),
        make("Reshape", ["t", "windows"], ["w"]),
        make("MatMul", ["w", "m"], ["p"]),
        make("Reshape", ["p", "back"], ["b"]),
        make("Concat", ["token", "b"], ["j"], axis=1),
        make("ReduceMean", ["j"], ["r"], axes=[1], keepdims=1),
        make("Reshape", ["r", "ends"], ["y"]),
    ]
    stored = {
        "k": weights(4, 3, 3, 3),
        "split": np.array([1, 4, 4, 2, 4, 2]),
        "windows": np.array([16, 4, 4]),
        "m": weights(4, 4),
        "back": np.array([1, 64, 4]),
        "token": weights(1, 1, 4),
        "ends": np.array(ends),
    }
    return of_nodes(nodes, {"image": [1, 3, 8, 8]}, ["y"], stored)


def by_parts(path: Path, x: np.ndarray) -> np.ndarray:
    session = runtime.InferenceSession(str(path))
    return np.concatenate([session.run(None, {"image": part})[0] for part in np.split(x, len(x))])


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("ends", [[1, 4], [1, -1], [0, 4]], ids=str)
def test_a_batch_is_opened(ends: list[int], target: str, tmp_path: Path) -> None:
    path, made = tmp_path / "net.onnx", tmp_path / f"made.{target}"
    onnx.save(network(ends=ends), path)
    report = getattr(tmconvert, f"to_{target}")(path, made, dynamic_shapes={"image": {0: "N"}})
    assert report.verified
    x = weights(5, 3, 8, 8)
    found = tmconvert.run(made, {"image": x})["y"]
    np.testing.assert_allclose(found, by_parts(path, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_stored_sizes_of_other_operators_follow_a_batch_of_two(target: str, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Resize", ["image", "", "", "sizes"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["m"], axes=[3], keepdims=1),
        helper.make_node("Expand", ["m", "wide"], ["y"]),
    ]
    stored = {"sizes": np.array([2, 3, 8, 8]), "wide": np.array([2, 3, 8, 5])}
    path, made = tmp_path / "net.onnx", tmp_path / f"made.{target}"
    onnx.save(of_nodes(nodes, {"image": [2, 3, 4, 4]}, ["y"], stored), path)
    options = {"io_layout": "source"} if target == "tflite" else {}
    assert getattr(tmconvert, f"to_{target}")(
        path, made, dynamic_shapes={"image": {0: "N"}}, **options
    ).verified
    x, session = weights(6, 3, 4, 4), runtime.InferenceSession(path)
    wanted = np.concatenate([session.run(None, {"image": part})[0] for part in np.split(x, 3)])
    np.testing.assert_allclose(tmconvert.run(made, {"image": x})["y"], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stored", ["Add", "Concat"])
def test_stored_operands_of_two_images_are_refused_by_name(stored: str, tmp_path: Path) -> None:
    options = {"axis": 1} if stored == "Concat" else {}
    nodes, path = [helper.make_node(stored, ["x", "c"], ["y"], **options)], tmp_path / "net.onnx"
    onnx.save(of_nodes(nodes, {"x": [2, 3]}, ["y"], {"c": weights(2, 3)}), path)
    with pytest.raises(TmconvertError, match=rf"N cannot stay dynamic: y \(onnx.{stored}\) requires N == 2"):
        tmconvert.to_onnx(path, tmp_path / "made.onnx", dynamic_shapes={"x": {0: "N"}})


def test_another_batch_and_a_file_of_tflite(tmp_path: Path) -> None:
    path, x = tmp_path / "net.onnx", weights(4, 3, 8, 8)
    onnx.save(network(ends=[1, -1]), path)
    assert tmconvert.to_onnx(path, tmp_path / "four.onnx", input_shapes={"image": x.shape}).verified
    found = tmconvert.run(tmp_path / "four.onnx", {"image": x})["y"]
    np.testing.assert_allclose(found, by_parts(path, x), rtol=1e-4, atol=1e-5)
    assert tmconvert.to_tflite(path, tmp_path / "one.tflite").verified
    opened = tmp_path / "opened.onnx"
    assert tmconvert.to_onnx(tmp_path / "one.tflite", opened, dynamic_shapes={"image": {0: "N"}}).verified
    image = np.moveaxis(x, 1, 3)
    np.testing.assert_allclose(tmconvert.run(opened, {"image": image})["y"], found, rtol=1e-4, atol=1e-5)


def test_other_sizes_of_images_are_compared_with_the_source(tmp_path: Path) -> None:
    make = helper.make_node
    nodes = [
        make("Conv", ["image", "k"], ["c"], kernel_shape=[3, 3], strides=[2, 2]),
        make("GlobalAveragePool", ["c"], ["p"]),
        make("Flatten", ["p"], ["y"]),
    ]
    path = tmp_path / "net.onnx"
    model = of_nodes(nodes, {"image": [1, 3, 16, 16]}, ["y"], {"k": weights(4, 3, 3, 3)})
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    for shape in ([4, 3, 24, 20], [1, 3, 24, 20]):
        assert tmconvert.to_onnx(path, tmp_path / "made.onnx", input_shapes={"image": shape}).verified
    module = tmconvert.load(path)
    (found,) = module.original.run([weights(2, 3, 20, 24)])
    assert found.shape == (2, 4)
    with pytest.raises(UsageError, match="must have 4 axes"):
        tmconvert.to_onnx(path, tmp_path / "made.onnx", input_shapes={"image": [3, 16, 16]})


@pytest.mark.parametrize("batch", [1, 2])
def test_a_model_that_mixes_its_batch_is_refused(batch: int, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Mul", ["image", "image"], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["m"], axes=[0], keepdims=1),
        helper.make_node("Sub", ["s", "half"], ["h"]),
        helper.make_node("Mul", ["h", "m"], ["y"]),
    ]
    path = tmp_path / "net.onnx"
    onnx.save(of_nodes(nodes, {"image": [batch, 4]}, ["y"], {"half": np.float32(0.5)}), path)
    with pytest.raises(VerificationError, match="differ from those of its source"):
        tmconvert.to_onnx(path, tmp_path / "made.onnx", dynamic_shapes={"image": {0: "N"}})


def test_sizes_that_do_not_fit_name_the_operator(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(network(ends=[1, 4]), path)
    with pytest.raises(TmconvertError, match="Reshape"):
        tmconvert.to_onnx(path, tmp_path / "made.onnx", input_shapes={"image": [1, 3, 10, 10]})
