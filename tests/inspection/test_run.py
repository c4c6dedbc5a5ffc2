"""``tmconvert.run`` and ``tmconvert bench`` on written files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter
from PIL import Image

import tmconvert
from tests.cli.runner import run
from tests.inspection.conftest import Files
from tests.inspection.network import Net
from tmconvert.errors import LoadError, UsageError
from tmconvert.inspection import bench
from tmconvert.inspection.bench_process import _State

LIMITS = {"onnx": 1e-5, "tflite": 1e-5, "prototxt": 1e-5, "half": 5e-3, "int8": 0.03, "qdq": 0.03}


def image() -> np.ndarray:
    return np.random.default_rng(2).random((1, 3, 12, 16), np.float32)


@pytest.mark.parametrize("kind", LIMITS)
def test_files_run_in_their_runtimes(kind: str, files: Files) -> None:
    expected = files.model(image())
    name = files.reports[kind].outputs[0]["name"]
    forms = [[image()], {"image": image()}, [image()[0]]]
    if files.paths[kind].suffix == ".tflite":
        forms.append([image().transpose(0, 2, 3, 1)])
    for given in forms:
        made = tmconvert.run(files.paths[kind], given)
        assert list(made) == [name] and made[name].dtype == (np.float16 if kind == "half" else np.float32)
        np.testing.assert_allclose(made[name], expected, atol=LIMITS[kind])


OTHERS = {
    "half_inside": (".onnx", {"float_type": "float16", "io_type": "float32"}),
    "weights": (".onnx", {"weights": "int8"}),
    "opened": (".onnx", {}),
    "half_weights": (".tflite", {"weights": "float16"}),
    "opened_lite": (".tflite", {}),
    "int16": (".tflite", {"quantized": True, "activations": "int16"}),
}


def by_hand(path: Path, x: np.ndarray) -> np.ndarray:
    """What the API of the file's runtime returns, with everything that a user has to do around it."""
    if path.suffix == ".onnx":
        session = onnxruntime.InferenceSession(path)
        half = session.get_inputs()[0].type == "tensor(float16)"
        return np.asarray(session.run(None, {"image": x.astype(np.float16) if half else x})[0])
    if path.suffix == ".prototxt":
        net = pytest.importorskip("cv2").dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))
        net.setInput(x)
        return np.asarray(net.forward())
    interpreter = Interpreter(model_path=str(path))
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    x = x.transpose(0, 2, 3, 1)
    interpreter.resize_tensor_input(given["index"], x.shape)
    interpreter.allocate_tensors()
    if given["dtype"] != np.float32:
        (scale, zero), limits = given["quantization"], np.iinfo(given["dtype"])
        x = np.clip(np.rint(x / scale) + zero, limits.min, limits.max)
    interpreter.set_tensor(given["index"], x.astype(given["dtype"]))
    interpreter.invoke()
    result = interpreter.get_tensor(made["index"])
    scale, zero = made["quantization"]
    return result if made["dtype"] == np.float32 else (result.astype(np.float32) - zero) * np.float32(scale)


@pytest.mark.parametrize("kind", [*LIMITS, *OTHERS])
def test_runs_as_the_runtime_itself(kind: str, files: Files, tmp_path: Path) -> None:
    """Twelve files: floats, float16, integers of 8 and 16 bits, open sizes."""
    x = image()
    if kind in LIMITS:
        path = files.paths[kind]
    else:
        suffix, options = OTHERS[kind]
        path, model = tmp_path / f"net{suffix}", files.model
        if "quantized" in options:
            data = np.random.default_rng(1).random((4, 3, 12, 16), np.float32)
            model = tmconvert.calibrate(model, data, bias_correction=False, equalization=False)
        if kind.startswith("opened"):
            axes = {"image": {0: "batch"}}
            model = tmconvert.trace(Net().eval(), torch.rand(2, 3, 12, 16), dynamic_shapes=axes)
            x = np.concatenate([x, x[:, :, ::-1], x * 0.5])
        convert = {".onnx": tmconvert.to_onnx, ".tflite": tmconvert.to_tflite}[suffix]
        convert(model, path, verify=False, **options)
    expected = by_hand(path, x)
    (made,) = tmconvert.run(path, [x]).values()
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=2e-3 if kind == "half" else 1e-6)


@pytest.mark.parametrize("kind", ["onnx", "tflite", "int8", "prototxt"])
def test_watched_tensors(kind: str, files: Files) -> None:
    (name,) = [each for each in tmconvert.run(files.model, [image()], watch=["mean*"]) if "mean" in each]
    expected = tmconvert.run(files.model, [image()], watch=[name])[name]
    made = tmconvert.run(files.paths[kind], [image()], watch=[name])[name]
    np.testing.assert_allclose(made.reshape(expected.shape), expected, atol=LIMITS[kind])
    with pytest.raises(UsageError, match="did you mean"):
        tmconvert.run(files.paths[kind], [image()], watch=[f"{name}x"])
    with pytest.raises(UsageError, match="valid names: "):
        tmconvert.run(files.paths[kind], [image()], watch=["zzz*"])


def test_inputs_that_do_not_fit(files: Files) -> None:
    for given in ([np.zeros((1, 3, 9, 16), np.float32)], [], {"x": image()}):
        with pytest.raises(UsageError, match=r"TM6003.*takes image float32\[1,3,12,16\]"):
            tmconvert.run(files.paths["onnx"], given)


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_images_with_channels_last(suffix: str, files: Files, tmp_path: Path) -> None:

    pixels = np.random.default_rng(4).integers(0, 256, (12, 16, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    path = tmp_path / f"pixels.{suffix}"
    convert = getattr(tmconvert, f"to_{suffix}")
    report = convert(files.model, path, preprocess="nhwc, uint8, std=1", verify=False)
    assert report.fed_inputs[0].tensor.layout == tmconvert.inspect(path).inputs[0].layout == "NHWC"
    (made,) = tmconvert.run(path, tmp_path / "a.png").values()
    (expected,) = tmconvert.run(files.paths[suffix], tmp_path / "a.png", std=[1]).values()
    np.testing.assert_allclose(made, expected, atol=1e-5)
    with pytest.raises(UsageError, match="image takes pixels as they are: omit mean and std"):
        tmconvert.run(path, tmp_path / "a.png", std=[1])


def test_images(files: Files, tmp_path: Path) -> None:

    pixels = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    scaled = (pixels.transpose(2, 0, 1)[None] / np.float32(255) - np.float32(0.25)) / np.float32(0.5)
    expected = files.model(scaled)
    for path in (files.paths["onnx"], files.paths["tflite"], files.paths["onnx"].with_name("net.tm")):
        (made,) = tmconvert.run(path, tmp_path / "a.png", mean=[0.25], std=[0.5]).values()
        np.testing.assert_allclose(made, expected, atol=1e-5)
    arguments = ("-i", tmp_path / "a.png", "--mean", "0.25", "--std", "0.5", "-o", tmp_path / "y.npz")
    outcome = run("run", files.paths["tflite"], *arguments)
    assert outcome.status == 0 and outcome.stdout.endswith("  float32[1,5]\n")
    with np.load(tmp_path / "y.npz") as arrays:
        np.testing.assert_allclose(arrays[arrays.files[0]], expected, atol=1e-5)


def test_every_form_of_inputs(files: Files, tmp_path: Path) -> None:
    x, path = image(), files.paths["onnx"]
    (expected,) = tmconvert.run(path, {"image": x}).values()
    np.save(tmp_path / "x.npy", x)
    for model in (path, files.model):
        for given in (x, torch.from_numpy(x), [torch.from_numpy(x)], tmp_path / "x.npy"):
            (made,) = tmconvert.run(model, given).values()
            np.testing.assert_allclose(made, expected, atol=1e-5)
    texts = ("float32[1,3,12,16]", "image=float32[1,3,12,16]", ["float32[1,3,12,16]"])
    made = [tmconvert.run(path, text)["linear_out"] for text in texts]
    random = np.random.default_rng(0).standard_normal((1, 3, 12, 16)).astype(np.float32)
    (wanted,) = tmconvert.run(path, random).values()
    assert all(np.array_equal(each, wanted) for each in made)


def test_a_run_without_inputs_shows_those_of_the_model(files: Files) -> None:
    for model in (files.paths["int8"], files.model):
        with pytest.raises(UsageError) as caught:
            tmconvert.run(model)
        error = caught.value
        assert error.code == "TM6003" and dict(error.notes)["it takes"].startswith("image ")
        shape = "1,12,16,3" if model != files.model else "1,3,12,16"
        assert dict(error.notes)["help"].endswith(f"-i 'image=float32[{shape}]'")
    with pytest.raises(UsageError, match="both by name and in order"):
        tmconvert.run(files.paths["onnx"], ["float32[1,3,12,16]", "image=float32[1,3,12,16]"])


def test_pixels_that_a_file_takes_as_they_are_are_not_explained(files: Files, tmp_path: Path) -> None:
    path, picture = tmp_path / "net.onnx", tmp_path / "x.png"
    Image.fromarray(np.full((12, 16, 3), 90, np.uint8)).save(picture)
    tmconvert.to_onnx(files.model, path, preprocess="rgb, nhwc, uint8, std=1", verify=False)
    assert run("run", path, "-i", picture).stderr == ""
    said = "pixels from 0 to 255; with --mean or --std: (pixel / 255 - mean) / std\n"
    assert run("run", files.paths["onnx"], "-i", picture).stderr == said


def test_values_outside_of_the_range_of_an_integer_input(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    tmconvert.run(files.paths["int8"], [image()])
    assert caplog.messages == []
    tmconvert.run(files.paths["int8"], [image() * 255])
    (said,) = caplog.messages
    assert "% of the values of image are outside of its range, 0 to " in said


@pytest.mark.parametrize(("width", "height", "count"), [(32, 24, 0), (16, 12, 0), (24, 24, 1), (100, 3, 1)])
def test_a_stretched_image_is_reported(
    files: Files, tmp_path: Path, caplog: pytest.LogCaptureFixture, width: int, height: int, count: int
) -> None:
    Image.new("RGB", (width, height)).save(tmp_path / "x.png")
    for kind in ("onnx", "tflite"):
        caplog.clear()
        tmconvert.run(files.paths[kind], tmp_path / "x.png", std=[1])
        said = [
            each for each in caplog.messages if f"stretched from {width} x {height} pixels to 16 x 12" in each
        ]
        assert len(said) == count


@pytest.mark.slow
def test_bench(files: Files) -> None:
    paths = [files.paths[kind] for kind in ("onnx", "tflite", "prototxt")]
    start = time.perf_counter()
    found = tmconvert.bench(*paths, seconds=0.05)
    elapsed = (time.perf_counter() - start) * 1e3
    assert [each.path for each in found] == paths and found[0].ratio == 1
    for each in found:
        assert each.best <= each.low <= each.median <= each.high and each.runs >= 10
        assert each.ratio > 0
        # milliseconds: all runs together took 50 or more, a few of them much longer than others
        assert each.median * each.runs > 0.5 and each.best * each.runs <= elapsed


def test_ratio_of_bench_bears_disturbed_turns_and_processes(files: Files, tmp_path: Path) -> None:
    """It is 1.5 though two processes of five, and two turns of five in the others, give something else."""
    first, second = (bench._Timed(files.paths[kind], 1, {}, tmp_path / kind) for kind in ("onnx", "tflite"))
    for process in range(5):
        clock = 1 + process  # both files of a turn meet it
        for factor in (2.0, 2.0, 2.0, 2.0, 2.0) if process < 2 else (1.5, 9.0, 1.5, 0.1, 1.5):
            first.turns.append([clock * 1_000, clock * 1_000, 9_000_000])
            second.turns.append([int(clock * 1_000 * factor)] * 2 + [70_000_000])
        for timed in (first, second):
            timed.starts.append(5 * process)
    assert bench._result(second, first, 1).ratio == 1.5
    assert bench._result(first, first, 1).ratio == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not bind processes")
def test_bench_binds_a_turn_to_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    state, bound = _State(), []
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: bound.append((process, cores)))
    state._call = lambda: None
    assert len(state.run(3, core=1)["times"]) == 3 and bound == [(0, [1])]
    state.run(1)
    assert len(bound) == 1


@pytest.mark.slow
def test_bench_of_other_files(files: Files, tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(files.paths["onnx"].read_bytes()[:-40])
    with pytest.raises(LoadError, match="TM1009"):
        tmconvert.bench(files.paths["onnx"].with_name("net.tm"))
    with pytest.raises(LoadError, match="TM1009"):
        tmconvert.bench(tmp_path / "broken.onnx")
    outcome = run("bench", files.paths["onnx"], "--seconds", "0.01", "--json")
    assert outcome.json["files"][0]["unit"] == "ms" and outcome.json["files"][0]["ratio"] == 1
    assert run("bench", files.paths["onnx"], "--seconds", "0").status == 2
