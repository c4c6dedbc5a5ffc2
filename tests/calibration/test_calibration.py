"""Calibration: float models get grids from data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.calibration.data import Samples
from tmconvert.calibration.settings import Settings
from tmconvert.errors import UsageError
from tmconvert.ir import TensorNode
from tmconvert.ir.types import TensorType

SAMPLES = Path(__file__).parents[2] / "samples"
DIGITS = SAMPLES / "digits.tm"


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    found = np.load(SAMPLES / "digits_test.npz")["images"]
    return (found[:, None] / 16).astype(np.float32)


@pytest.fixture(scope="module")
def float_outputs(images: np.ndarray) -> np.ndarray:
    module = tmconvert.load(DIGITS)
    return np.concatenate([module(image[None]) for image in images[50:60]])


def ratio(signal: np.ndarray, actual: np.ndarray) -> float:
    return float(10 * np.log10(np.sum(signal**2.0) / np.sum((signal - actual) ** 2.0)))


def in_onnxruntime(path: Path, images: np.ndarray) -> np.ndarray:
    session = pytest.importorskip("onnxruntime").InferenceSession(path)
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: image[None]})[0] for image in images])


# ---- what comes out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({}, 37.5),
        ({"bias_correction": False}, 34),
        ({"method": "minmax"}, 37),
        ({"method": "percentile"}, 33),
        ({"method": "entropy"}, 20),
        ({"per_channel": False}, 34),
    ],
    ids=str,
)
def test_the_integer_model_is_near_the_float_model(
    options: dict[str, Any], least: float, images: np.ndarray, float_outputs: np.ndarray, tmp_path: Path
) -> None:
    made = tmconvert.calibrate(DIGITS, {"x": images[:50]}, **options)
    report = tmconvert.to_onnx(made, tmp_path / "m.onnx", quantized=True)
    assert report.verified
    assert ratio(float_outputs, in_onnxruntime(tmp_path / "m.onnx", images[50:60])) > least


@pytest.mark.slow
def test_saved_and_written_as_tflite(images: np.ndarray, tmp_path: Path) -> None:
    made = tmconvert.calibrate(DIGITS, images[:8, :, None])
    made.save(tmp_path / "m.tm")
    again = tmconvert.load(tmp_path / "m.tm")
    assert again.parameter_count() == made.parameter_count() > 30_000
    report = tmconvert.to_tflite(again, tmp_path / "m.tflite", quantized=True)
    assert report.verified
    assert made.parameter_count() <= report.parameters < 1.02 * made.parameter_count()  # it has tables, too


@pytest.mark.slow
def test_averages_with_a_grid_of_their_own_are_rounded_once(images: np.ndarray, tmp_path: Path) -> None:
    made = tmconvert.calibrate(DIGITS, {"x": images[:8]})
    report = tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True)
    assert report.verified
    assert not any("requantized to another scale" in note for note in report.notes)


def test_without_bias_correction_the_float_model_is_exact(
    images: np.ndarray, float_outputs: np.ndarray, tmp_path: Path
) -> None:
    made = tmconvert.calibrate(DIGITS, {"x": images[:4]}, bias_correction=False)
    tmconvert.to_onnx(made, tmp_path / "m.onnx")
    np.testing.assert_allclose(in_onnxruntime(tmp_path / "m.onnx", images[50:60]), float_outputs, atol=1e-4)


@pytest.mark.slow
def test_corrected_biases_do_not_depend_on_the_kernels_of_blas(tmp_path: Path) -> None:
    """NumPy's BLAS takes them by the processor, and each adds in an order of its own."""
    call = (
        "import sys, numpy, tmconvert\n"
        "model, images, out = sys.argv[1:]\n"
        "data = numpy.load(images)['images'][:4, None].astype('float32')\n"
        "tmconvert.to_onnx(model, out, calibration=data, qparams=out + '.json', verify=False)\n"
    )
    made, others = [], {key: each for key, each in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    for kernels in ("", "Prescott"):  # this processor's own, and those for SSE 3
        path = tmp_path / f"{kernels or 'own'}.onnx"
        command = [sys.executable, "-c", call, DIGITS, SAMPLES / "digits_test.npz", path]
        chosen = {"OPENBLAS_CORETYPE": kernels} if kernels else {}
        subprocess.run(command, env=others | chosen, check=True)
        made.append(path.read_bytes())
    assert len(set(made)) == 1


def test_a_rule_keeps_a_layer_in_float(images: np.ndarray) -> None:
    made = tmconvert.calibrate(DIGITS, {"x": images[:4]}, rules={"classifier": "float"})
    assert made.graph is not None
    grids = {
        node.name: node.qparams
        for expr in made.graph
        for node in expr.outputs
        if isinstance(node, TensorNode)
    }
    assert grids["classifier_out"] is None
    assert grids["avg_pool_out"] is not None
    assert not any(hasattr(made.tensors[name], "qparams") for name in made.tensors if "classifier" in name)


@pytest.mark.parametrize("io_type", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("pattern", ["*", "classifier", "residual*", "stem*", "mix", "depthwise*"])
def test_layers_in_int16_beside_int8(pattern: str, io_type: str, images: np.ndarray, tmp_path: Path) -> None:
    made = tmconvert.calibrate(DIGITS, {"x": images[:8]}, rules={pattern: "int16x8"})
    report = tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True, io_type=io_type)
    assert report.verified
    assert " operators in int16" in report.notes[0]
    assert not any("operators kept in float" in note for note in report.notes)


@pytest.mark.parametrize("pattern", ["stem.*", "stem.conv", "mix.*"])
def test_a_rule_for_a_layer_is_one_for_the_clamp_behind_it(
    pattern: str, images: np.ndarray, tmp_path: Path
) -> None:
    """The convolution's own result is no tensor of the file: the ReLU of the module around it is."""
    made = tmconvert.calibrate(DIGITS, {"x": images[:8]}, rules={pattern: "int16x8"})
    report = tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True)
    assert " operators in int16" in report.notes[0]


def noise(made: tmconvert.TracedModule, images: np.ndarray, wanted: np.ndarray, path: Path) -> float:
    """Of the numbers that a file gives, to their size, in dB."""
    from tests.targets.tflite.test_integer_kernels import litert

    tmconvert.to_tflite(made, path, quantized=True, io_type="float32")
    runner = litert.Interpreter(str(path)).get_signature_runner()
    (name,) = runner.get_input_details()
    found = [next(iter(runner(**{name: image[None].transpose(0, 2, 3, 1)}).values())) for image in images]
    return float(10 * np.log10(np.mean((np.concatenate(found) - wanted) ** 2) / np.mean(wanted**2)))


@pytest.mark.slow
def test_more_bits_cost_nothing(images: np.ndarray, tmp_path: Path) -> None:
    """What a layer in int8 takes of one in int16 has the scale that was measured, not that of int16."""
    held, fed = images[50:], {"x": images[:50]}  # of ten images the noise differs by 1 dB between processors
    source = tmconvert.load(DIGITS)
    wanted = np.concatenate([source(image[None]) for image in held])
    plain = noise(tmconvert.calibrate(DIGITS, fed), held, wanted, tmp_path / "m.tflite")
    for pattern in ("stem", "residual", "mix", "classifier"):
        made = tmconvert.calibrate(DIGITS, fed, rules={pattern: "int16x8"})
        assert noise(made, held, wanted, tmp_path / "m.tflite") <= plain + 1, pattern
    made = tmconvert.calibrate(DIGITS, fed, rules={"*": "int16x8"})
    assert noise(made, held, wanted, tmp_path / "m.tflite") <= plain - 3


# ---- the command


@pytest.mark.slow
def test_the_command_tells_what_it_did(images: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=images[:4])
    outcome = run("calibrate", DIGITS, "-d", tmp_path / "d.npz", "-o", tmp_path / "q.tm", "--json")
    assert outcome.status == 0
    assert outcome.json["tensors"] == 10
    assert outcome.json["weights"] == 7
    outcome = run("calibrate", DIGITS, "-d", tmp_path / "d.npz", "-o", tmp_path / "q.tm")
    assert "scales for 10 tensors and 7 weights, 34.8 k parameters" in outcome.stdout
    outcome = run("tflite", tmp_path / "q.tm", tmp_path / "q.tflite", "--quantized", "--json")
    assert json.loads(outcome.stdout)["verification"]


def test_progress_counts_the_samples(images: np.ndarray) -> None:
    heard: list[tuple[int, int]] = []
    tmconvert.calibrate(DIGITS, {"x": images[:3]}, progress=lambda *each: heard.append(each))
    assert heard == [(1, 3), (2, 3), (3, 3)]


# ---- data

TYPE = TensorType(np.dtype(np.float32), (1, 3, 4, 6))


def samples(data: Any, *types: TensorType, **pixels: Any) -> list[list[np.ndarray]]:
    inputs = [(name, type_) for name, type_ in zip("xyz", types or (TYPE,), strict=False)]
    return list(Samples(data, inputs, Settings.of(pixels)))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_members_of_npz_are_read_row_by_row(save: Any, order: Any, tmp_path: Path) -> None:
    array = np.arange(5 * 72, dtype=np.float32).reshape(5, 3, 4, 6)
    save(tmp_path / "d.npz", x=np.array(array, order=order))
    found = samples(tmp_path / "d.npz")
    np.testing.assert_array_equal(np.concatenate([sample[0] for sample in found]), array)


def test_many_samples_take_the_memory_of_one(tmp_path: Path) -> None:
    many = np.zeros((400, 3, 64, 64), np.float32)
    np.savez_compressed(tmp_path / "d.npz", x=many)
    data = Samples(tmp_path / "d.npz", [("x", TensorType(np.dtype(np.float32), (1, 3, 64, 64)))])
    tracemalloc.start()
    count = sum(1 for _ in data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 400 == len(data)
    assert peak < 20 * many[0].nbytes


def test_arrays_of_several_inputs_go_by_name(tmp_path: Path) -> None:
    vector = TensorType(np.dtype(np.float32), (1, 2))
    np.savez(tmp_path / "d.npz", y=np.ones((2, 2), np.float32), x=np.zeros((2, 3, 4, 6), np.uint8))
    found = samples(tmp_path / "d.npz", TYPE, vector)
    assert [[part.shape for part in sample] for sample in found] == [[(1, 3, 4, 6), (1, 2)]] * 2
    assert found[0][0].dtype == np.float32


def test_a_folder_has_one_sample_a_file(tmp_path: Path) -> None:
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.full((3, 4, 6), number, np.float32))
    assert [sample[0][0, 0, 0, 0] for sample in samples(tmp_path)] == [0, 1, 2]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_images_are_scaled_and_laid_out(layout: str, dtype: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[..., 0], pixels[..., 2] = 255, 51
    image.fromarray(pixels).save(tmp_path / "a.png")
    shape = (1, 3, 4, 6) if layout == "nchw" else (1, 4, 6, 3)
    type_ = TensorType(np.dtype(dtype), shape)
    plain = samples(tmp_path, type_, layout=layout)[0][0]
    assert plain.dtype == dtype
    first = plain[0, :, 0, 0] if layout == "nchw" else plain[0, 0, 0]
    assert first.tolist() == [255, 0, 51]
    if dtype == "float32":
        scaled = samples(tmp_path, type_, layout=layout, mean=(0.5, 0.5, 0), std=(0.5, 0.5, 2))[0][0]
        first = scaled[0, :, 0, 0] if layout == "nchw" else scaled[0, 0, 0]
        np.testing.assert_allclose(first, [1, -1, 0.1], atol=1e-6)


# ---- what cannot be had is one error


def save_pickle(path: Path) -> None:
    np.save(path, np.array([{}], object), allow_pickle=True)


def save_truncated(path: Path) -> None:
    np.savez(path, x=np.zeros((50, 1, 8, 8), np.float32))
    path.write_bytes(path.read_bytes()[:3000])


def save_member(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", content)


BAD_DATA = {
    "no.npz": (lambda path: None, "no.npz does not exist"),
    "empty": (Path.mkdir, "has no .npy, .npz or image file"),
    "shape.npy": (
        lambda p: np.save(p, np.zeros((2, 1, 9, 8), "f4")),
        "shape [2, 1, 9, 8], but the model takes",
    ),
    "names.npz": (
        lambda p: np.savez(p, a=np.zeros(1), b=np.zeros(1)),
        "names.npz has a, b, but the model takes x",
    ),
    "type.npy": (
        lambda p: np.save(p, np.zeros((1, 1, 8, 8), "c8")),
        "has the dtype complex64, but the model takes",
    ),
    "nan.npy": (
        lambda p: np.save(p, np.full((1, 1, 8, 8), np.nan, "f4")),
        "x has NaN or infinity in sample 1 of",
    ),
    "pickle.npy": (save_pickle, "it holds Python objects, which would have to be unpickled"),
    "pickle.npz": (lambda p: np.savez(p, x=np.array([{}], object)), "which would have to be unpickled"),
    "short.npz": (save_truncated, "short.npz cannot be read: "),
    "text.npy": (lambda p: p.write_text("no array"), "text.npy cannot be read: "),
    "nothing.npz": (lambda p: np.savez(p), "nothing.npz has no arrays, but the model takes x"),
    "empty.npz": (lambda p: p.write_bytes(b""), "empty.npz cannot be read: File is not a zip file"),
    "channels.npz": (
        lambda p: np.savez(p, x=np.zeros((2, 8, 8, 1), "f4")),
        "the data has channels last, but the model has channels first: transpose(0, 3, 1, 2) converts it",
    ),
    "notes.txt": (lambda p: p.write_text("hello"), "notes.txt is not an .npz or .npy file or an image"),
    "header.npz": (
        lambda p: save_member(p, np.lib.format.magic(1, 0) + b"\x76\0" + b"(" * 117 + b"\n"),
        "header.npz cannot be read: ",
    ),
    "brackets.npy": (
        lambda p: p.write_bytes(np.lib.format.magic(1, 0) + b"\x76\0" + b"{" * 117 + b"\n"),
        "brackets.npy cannot be read: ",
    ),
    "many.npz": (
        lambda p: np.savez_compressed(p, x=np.zeros((250_000, 1, 8, 8), np.uint8)),
        "many.npz has 250000 samples in",
    ),
    "none.npy": (
        lambda p: np.save(p, np.zeros((0, 1, 8, 8), "f4")),
        "shape [0, 1, 8, 8], but the model takes",
    ),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_data_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    make, text = BAD_DATA[name]
    make(tmp_path / name)
    outcome = run("calibrate", DIGITS, "-d", tmp_path / name, "-o", tmp_path / "q.tm")
    assert outcome.status != 0
    assert outcome.stderr.startswith("error[TM6033]: ")
    assert outcome.stderr.count("error[") == 1
    assert text in " ".join(outcome.stderr.split())
    assert not (tmp_path / "q.tm").exists()


BAD_IMAGES = {
    "short.png": (lambda image, p: p.write_bytes(made(image, p, "RGB")[:500]), "short.png cannot be read: "),
    "empty.png": (
        lambda image, p: p.write_bytes(b""),
        "supported formats are PNG, JPEG, BMP, GIF, WEBP, TIFF and PPM",
    ),
    "deep.png": (lambda image, p: made(image, p, "I;16"), "the pixels of"),
}


def made(image: Any, path: Path, mode: str) -> bytes:
    (image.effect_noise((64, 64), 50).convert(mode) if mode == "RGB" else image.new(mode, (9, 9))).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("name", BAD_IMAGES)
def test_images_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    make, text = BAD_IMAGES[name]
    make(pytest.importorskip("PIL.Image"), tmp_path / name)
    with pytest.raises(UsageError, match="TM6033") as raised:
        samples(tmp_path)
    assert text in str(raised.value)


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\nshowpage\n"
GHOSTSCRIPT = '#!/bin/sh\necho 10.0\ntouch "$(dirname "$0")/started"\n'


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_postscript_under_another_name_starts_no_program(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    tools, data = tmp_path / "tools", tmp_path / "data"
    tools.mkdir()
    data.mkdir()
    (tools / "gs").write_text(GHOSTSCRIPT)
    (tools / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    (data / name).write_bytes(POSTSCRIPT)
    outcome = run("calibrate", DIGITS, "-d", data, "-o", tmp_path / "q.tm")
    assert (outcome.status, (tools / "started").exists()) == (2, False)
    assert "not an image in a supported format" in outcome.stderr


@pytest.mark.parametrize("format", ["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM"])
def test_images_of_each_format(format: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (6, 4), (90, 90, 90)).save(tmp_path / "a.png", format=format)
    ((found,),) = samples(tmp_path)
    assert abs(found - 90).max() <= 2


@pytest.mark.parametrize(("data", "shown"), [(None, "None"), (3, "int (3)")])
def test_what_is_no_data(data: Any, shown: str) -> None:
    with pytest.raises(UsageError, match=f"data must be a path, .* got {re.escape(shown)}"):
        tmconvert.calibrate(DIGITS, data)


@pytest.mark.parametrize(
    ("shape", "options", "text"),
    [
        ((1, 3, 4, 6), {"mean": (0.5, 0.5)}, "mean has 2 values, but x in"),
        ((1, 3, 4, 6), {"layout": "nhwc"}, "has 6 channels in nhwc"),
        ((1, 5, 4, 6), {}, "has 5 channels in nchw"),
        (
            (2, 3, 4, 6),
            {},
            "the model has batch size 2: pass as many samples, or build the model with batch size 1",
        ),
        ((1, 30), {}, "is an image, but the model takes x f32[1,30]"),
    ],
)
def test_images_for_another_input(
    shape: tuple[int, ...], options: dict[str, Any], text: str, tmp_path: Path
) -> None:
    made(pytest.importorskip("PIL.Image"), tmp_path / "a.png", "RGB")
    with pytest.raises(UsageError, match="TM6033") as raised:
        samples(tmp_path, TensorType(np.dtype(np.float32), shape), **options)
    assert text in str(raised.value)


def test_folders_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    np.save(tmp_path / "cat" / "0.npy", np.zeros((3, 4, 6), np.float32))
    np.save(tmp_path / "1.NPY", np.ones((3, 4, 6), np.float32))
    (tmp_path / "1.NPY.npy").rename(tmp_path / "1.NPY")
    assert [sample[0].max() for sample in samples(tmp_path)] == [1, 0]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_arrays_of_uint8_are_pixels(layout: str) -> None:
    shape = (2, 3, 4, 6) if layout == "nchw" else (2, 4, 6, 3)
    pixels = np.full(shape, 51, np.uint8)
    type_ = TensorType(np.dtype(np.float32), (1, *shape[1:]))
    assert samples({"x": pixels}, type_)[0][0].max() == 51
    found = samples({"x": pixels}, type_, layout=layout, mean=(0.2, 0.1, 0), std=(2,))
    first = found[1][0][0, :, 0, 0] if layout == "nchw" else found[1][0][0, 0, 0]
    np.testing.assert_allclose(first, [0, 0.05, 0.1], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_mean_and_std_are_not_passed_over(dtype: str) -> None:
    data = {"x": np.zeros((1, 3, 4, 6), dtype)}
    with pytest.raises(
        UsageError, match="mean and std apply to images, or arrays of uint8, for float inputs"
    ):
        samples(data, TensorType(np.dtype(dtype), (1, 3, 4, 6)), mean=(0.5,))


def test_what_is_left_over_of_a_batch(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((7, 3, 4, 6), np.float32))
    assert len(samples(tmp_path / "d.npz", TensorType(np.dtype(np.float32), (4, 3, 4, 6)))) == 1


def test_several_inputs(tmp_path: Path) -> None:
    types = TYPE, TensorType(np.dtype(np.int64), (1, 2))
    images, numbers = np.zeros((2, 3, 4, 6), np.float32), np.zeros((2, 2), np.int32)
    np.savez(tmp_path / "d.npz", in0=images, in1=numbers)
    assert len(samples(tmp_path / "d.npz", *types)) == 2
    for data, text in (
        ({"x": images}, "a sample has x, but the model takes x f32[1,3,4,6], y i64[1,2]"),
        ({"x": images, "y": numbers[:1]}, "the data has different numbers of samples: 2 of x, 1 of y"),
        ([images[:1]], "but the model takes x f32[1,3,4,6], y i64[1,2]"),
        (iter([]), "the data can be iterated only once"),
    ):
        with pytest.raises(UsageError, match="TM6033") as raised:
            samples(data, *types)
        assert text in str(raised.value)


def test_a_sample_on_which_the_model_cannot_run(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    layers = torch.nn.Sequential(torch.nn.Embedding(10, 4), torch.nn.Linear(4, 2)).eval()
    model = tmconvert.trace(layers, torch.zeros(1, 3, dtype=torch.int64))
    good = np.zeros((1, 3), np.int64)
    with pytest.raises(UsageError, match="TM6033") as raised:
        tmconvert.calibrate(model, [good, good + 10])
    assert "the model cannot be run on sample 2: indices element out of data bounds, idx=10" in str(
        raised.value
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "median"}, "unknown calibration method 'median'"),
        ({"rules": {"classifier": "int4"}}, "the rule classifier=int4 has the unknown type 'int4'"),
        ({"rules": {"haed.*": "float"}}, "the rule haed.* matches no module and no tensor"),
        ({"rules": {"clasifier": "float"}}, "similar names: classifier"),
        (
            {"rules": {"*": "float"}},
            "the model has no tensor to measure: the rules keep all of it in float",
        ),
    ],
)
def test_settings_that_fit_nothing(options: dict[str, Any], text: str, images: np.ndarray) -> None:
    with pytest.raises(UsageError, match="TM6032") as raised:
        tmconvert.calibrate(DIGITS, {"x": images[:1]}, **options)
    assert text in str(raised.value)


def test_a_model_with_scales_is_not_measured_again(images: np.ndarray) -> None:
    made = tmconvert.calibrate(DIGITS, {"x": images[:1]})
    with pytest.raises(UsageError, match="it has scales already"):
        tmconvert.calibrate(made, {"x": images[:1]})


def test_a_calibration_goes_with_quantized(tmp_path: Path) -> None:
    outcome = run("tflite", DIGITS, tmp_path / "o.tflite", "--calibration", tmp_path)
    assert outcome.status != 0
    assert "calibration requires quantized, or qparams" in outcome.stderr


def test_a_sample_has_an_array_for_each_input() -> None:
    with pytest.raises(UsageError, match="a sample has 2 arrays, but the model takes x f32"):
        samples([[np.zeros((1, 3, 4, 6)), np.zeros(1)]])


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_whole_numbers_become_integers_of_a_grid(target: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Bytes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3)

        def forward(self, x: Any) -> Any:
            return self.conv(x.float() / 255)

    pixels = np.random.default_rng(0).integers(0, 255, (3, 3, 6, 6), np.uint8)
    model = tmconvert.trace(Bytes().eval(), torch.from_numpy(pixels[:1]))
    convert = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}[target]
    report = convert(model, tmp_path / "m", quantized=True, calibration=pixels)
    assert report.verified and report.inputs[0]["dtype"] == "uint8"
    assert not any("in float" in note for note in report.notes)


def test_a_function_makes_the_samples() -> None:
    def made() -> Iterator[list[np.ndarray]]:
        random = np.random.default_rng(0)
        return ([random.random((1, 1, 8, 8)).astype(np.float32)] for _ in range(4))

    tm = tmconvert.load(DIGITS)
    by_list, by_function = (tmconvert.calibrate(tm, data) for data in (list(made()), made))
    listed, made_by_function = (
        [node.qparams for node in each.graph.nodes().type(TensorNode)] for each in (by_list, by_function)
    )
    assert listed == made_by_function
    with pytest.raises(UsageError, match=r"TM6033.*failed: ZeroDivisionError"):
        tmconvert.calibrate(tm, lambda: 1 / 0)
    with pytest.raises(UsageError, match=r"(?s)TM6033.*only once.*the function that makes"):
        tmconvert.calibrate(tm, made())
