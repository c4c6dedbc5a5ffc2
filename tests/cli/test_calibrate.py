"""``tmconvert calibrate``, and conversions that calibrate first: the same options, the same result."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tests.models import corpus
from tmconvert.errors import UnsupportedError, UsageError

SAMPLES = Path(__file__).parents[2] / "samples"
DIGITS = SAMPLES / "digits.tm"
SETTINGS: dict[tuple[str, ...], dict[str, Any]] = {
    ("--method", "minmax"): {"method": "minmax"},
    ("--per-tensor",): {"per_channel": False},
    ("--no-bias-correction",): {"bias_correction": False},
    ("--no-equalization",): {"equalization": False},
    ("--rule", "*=float", "--rule", "stem*=int8"): {"rules": {"*": "float", "stem*": "int8"}},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "d.npz"
    images = np.load(SAMPLES / "digits_test.npz")["images"][:6, None] / np.float32(16)
    np.savez(path, x=images.astype(np.float32))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "options"),
    [*zip(cycle(["onnx", "tflite"]), SETTINGS)],  # no setting is of one target
)
def test_in_one_go_as_in_two_steps(target: str, options: tuple[str, ...], data: Path, tmp_path: Path) -> None:
    one, two, api = (tmp_path / f"{name}.{target}" for name in ("one", "two", "api"))
    assert run("calibrate", DIGITS, "-d", data, "-o", tmp_path / "q.tm", *options).status == 0
    assert run(target, tmp_path / "q.tm", two, "--quantized").status == 0
    outcome = run(target, DIGITS, one, "--quantized", "--calibration", data, *options)
    assert outcome.status == 0, outcome.stderr
    convert = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}[target]
    convert(DIGITS, api, quantized=True, calibration=data, calibration_settings=SETTINGS[options])
    assert one.read_bytes() == api.read_bytes()
    # which compares each tensor, its scales and its integers
    for path in (one, two):
        assert run("verify", tmp_path / "q.tm", path).status == 0
    assert run("verify", DIGITS, one, "--calibration", data).status == 0


@pytest.mark.slow
def test_verification_needs_the_data_or_the_scales(data: Path, tmp_path: Path) -> None:
    file, cut = tmp_path / "m.tflite", ("--outputs", "depthwise_out", "--rename", "x=image")
    assert run("tflite", DIGITS, file, "--quantized", "--calibration", data, *cut).status == 0
    outcome = run("verify", DIGITS, file)
    assert outcome.status == 2
    assert outcome.stderr.startswith("error[TM6030]: the scales of the file were measured on data")
    assert run("verify", DIGITS, file, "--calibration", data).status == 0
    other = tmp_path / "other.npz"
    np.savez(other, x=np.full((2, 1, 8, 8), 0.25, np.float32))
    outcome = run("verify", DIGITS, file, "--calibration", other)
    assert outcome.status == 1 and outcome.stderr.startswith("error[TM4001]")
    plain = tmp_path / "p.onnx"
    assert run("onnx", DIGITS, plain).status == 0
    outcome = run("verify", DIGITS, plain, "--calibration", data)
    assert outcome.status == 2 and "the file was written without calibration" in outcome.stderr


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_parameters_beside_a_float_model(target: str, data: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "m", tmp_path / "q.json"
    outcome = run(target, DIGITS, out, "--qparams", file, "--calibration", data, "--no-bias-correction")
    assert outcome.status == 0, outcome.stderr
    assert "quantization parameters of " in outcome.stderr
    assert {each["is_weight"] for each in json.loads(file.read_text()).values()} == {True, False}
    assert run("params", "check", file, out).status == 0


@pytest.mark.parametrize(
    "told",
    [{"settings": 5}, {"settings": {"rules": 7}}, {"boundary": 5}, {"boundary": {"inputs": 7}}, [1]],
    ids=str,
)
def test_what_a_damaged_file_tells(told: Any, data: Path, tmp_path: Path) -> None:
    onnx, path = pytest.importorskip("onnx"), tmp_path / "m.onnx"
    tmconvert.to_onnx(DIGITS, path, quantized=True, calibration=data)
    model = onnx.load(path)
    (options,) = [each for each in model.metadata_props if each.key == "tmconvert.options"]
    options.value = json.dumps({**json.loads(options.value), "calibration": told})
    onnx.save(model, path)
    outcome = run("verify", DIGITS, path, "--calibration", data)
    assert outcome.status == 2 and outcome.stderr.startswith("error[TM60")


def test_a_module_of_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    code = "import torch\ndef make():\n    return torch.nn.Conv2d(3, 4, 3).eval()\n"
    (tmp_path / "some_net.py").write_text(code)
    np.savez(tmp_path / "d.npz", input=np.ones((2, 3, 8, 8), np.float32))
    monkeypatch.chdir(tmp_path)
    outcome = run(
        *("calibrate", "some_net:make", "-d", "d.npz", "-o", "q.tm", "--input", "float32[1,3,8,8]"),
    )
    assert outcome.status == 0, outcome.stderr
    assert run("tflite", "q.tm", "q.tflite", "--quantized").status == 0
    images = np.ones((2, 3, 8, 8), np.float32)
    made = tmconvert.calibrate(torch.nn.Conv2d(3, 4, 3), images, example_inputs=[images[:1]])
    assert made.graph is not None and made.graph.inputs[1].qparams is not None  # type: ignore[union-attr]
    outcome = run("calibrate", DIGITS, "-d", "d.npz", "-o", "q2.tm", "--input", "float32[1,1,8,8]")
    assert outcome.status == 2 and "TM6016" in outcome.stderr


def test_what_cannot_be_written_ends_it_at_once(data: Path, tmp_path: Path) -> None:
    missing, model = tmp_path / "no", tmp_path / "m.tm"
    model.write_bytes(DIGITS.read_bytes())
    for arguments, code in (
        (("calibrate", model, "-d", data, "-o", model), "TM6013"),
        (("calibrate", model, "-d", data, "-o", missing / "q.tm"), "TM5001"),
        (("onnx", model, missing / "q.onnx", "--quantized", "--calibration", data), "TM5001"),
        (("onnx", model, tmp_path / "o", "--quantized", "--report", missing / "r.html"), "TM5001"),
    ):
        outcome = run(*arguments)
        assert outcome.stderr.startswith(f"error[{code}]"), outcome.stderr
    assert sorted(tmp_path.iterdir()) == [model]
    assert model.read_bytes() == DIGITS.read_bytes()


def test_images_are_scaled(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.load(SAMPLES / "digits_test.npz")["images"][0].astype(np.uint8) * 15
    folder = tmp_path / "images"
    folder.mkdir()
    image.fromarray(pixels).save(folder / "a.png")
    scaled = ("--mean", "0", "--std", "0.9375")
    outcome = run(
        *("onnx", DIGITS, tmp_path / "m.onnx", "--calibration", folder, *scaled),
        *("--qparams", tmp_path / "q.json"),
    )
    assert outcome.status == 0, outcome.stderr
    assert json.loads((tmp_path / "q.json").read_text())["x"]["scale"] == pytest.approx(1 / 255, rel=0.01)


def test_a_shape_and_a_cut_are_calibrated_as_converted(data: Path, tmp_path: Path) -> None:
    larger = tmp_path / "l.npz"
    np.savez(larger, x=np.random.default_rng(0).random((3, 1, 16, 16), np.float32))
    options = ("--input-shape", "x=1,1,16,16", "--outputs", "depthwise_out", "--rename", "x=image")
    outcome = run(
        *("tflite", DIGITS, tmp_path / "m.tflite", "--quantized", "--calibration", larger, *options, "--json")
    )
    assert outcome.status == 0, outcome.stderr
    (given,), (made,) = outcome.json["inputs"], outcome.json["outputs"]
    assert (given["name"], given["shape"]) == ("image", [1, 16, 16, 1])
    assert made["name"] == "depthwise_out"


def test_a_grid_that_is_given_stays(data: Path, tmp_path: Path) -> None:
    grid = ("--input-type", "quint8", "--input-scale", "0.125", "--input-zero-point", "7")
    file = tmp_path / "q.json"
    outcome = run("onnx", DIGITS, tmp_path / "m.onnx", "--calibration", data, "--qparams", file, *grid)
    assert outcome.status == 0, outcome.stderr
    found = json.loads(file.read_text())["x"]
    assert (found["dtype"], found["scale"], found["zero_point"]) == ("uint8", 0.125, 7)


def test_what_there_is_to_tell(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((2, 1, 8, 8), np.float32))
    outcome = run("calibrate", DIGITS, "-d", tmp_path / "d.npz", "-o", tmp_path / "q.tm")
    assert outcome.stderr == "x is 0 in all samples, so that its range cannot be measured\n"
    outcome = run("onnx", tmp_path / "q.tm", tmp_path / "m.onnx", "--quantized")
    assert "x is 0 in all samples" in outcome.stderr


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_open_sizes_stay_open(target: str, steps: int, data: Path, tmp_path: Path) -> None:
    file, made, dynamic = tmp_path / "m", tmp_path / "q.tm", ("--dynamic", "x:0=batch")
    np.savez(tmp_path / "two.npz", x=np.load(data)["x"].repeat(2, 0))
    if steps == 1:
        outcome = run(target, DIGITS, file, "--quantized", "--calibration", data, *dynamic, "--json")
    else:
        assert run("calibrate", DIGITS, "-d", data, "-o", made, *dynamic).status == 0
        outcome = run(target, made, file, "--quantized", "--json")
    assert outcome.status == 0, outcome.stderr
    assert outcome.json["inputs"][0]["shape"][0] == "batch"
    if target == "onnx":
        session = pytest.importorskip("onnxruntime").InferenceSession(file)
        assert session.run(None, {"x": np.load(data)["x"]})[0].shape == (6, 10)


@pytest.mark.parametrize("is_baked", [False, True])
def test_sizes_from_which_numbers_follow_are_fixed(is_baked: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return self.linear(x) / (x.shape[0] if is_baked else 2)

    model = tmconvert.trace(Net().eval(), torch.zeros(3, 4), dynamic_shapes={"x": {0: "batch"}})
    if is_baked:
        with pytest.raises(UnsupportedError, match="constants of the calibrated model depend on it"):
            tmconvert.calibrate(model, np.ones((6, 4), np.float32))
        return
    made = tmconvert.calibrate(model, np.ones((6, 4), np.float32))
    report = tmconvert.to_onnx(made, tmp_path / "m.onnx", quantized=True)
    assert report.inputs[0]["shape"] == ["batch", 4]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("tflite", "--calibration", "{data}"), "calibration requires quantized, or qparams"),
        (("onnx", "--calibration", "{data}"), "calibration requires quantized, or qparams"),
        (("onnx", "--quantized", "--method", "mse"), "method passed without data"),
        (("onnx", "--quantized", "--per-tensor", "--mean", "1"), "mean, per_channel passed without data"),
        (("onnx", "--quantized", "--calibration", "{data}", "--rule", "head"), "write PATTERN=TYPE"),
        (
            ("onnx", "--quantized", "--calibration", "{data}", "--rule", "a=int4"),
            "the rule a=int4 has the unknown type",
        ),
        (("onnx", "--quantized", "--calibration", "{data}", "--mean", "a"), "'a' must be numbers, such as"),
        (("onnx", "--quantized", "--calibration", "{data}", "--std", "0"), "std must be positive, got [0.0]"),
        (("tflite", "--quantized", "--calibration", "{data}", "--method", "best"), "'best' is not one of"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_does_not_go_together(arguments: tuple[str, ...], text: str, data: Path, tmp_path: Path) -> None:
    target, *options = (each.replace("{data}", str(data)) for each in arguments)
    outcome = run(target, DIGITS, tmp_path / "m", *options)
    assert outcome.status == 2
    assert text in " ".join(outcome.stderr.split())
    assert not any(tmp_path.iterdir())


def test_a_trained_model_is_not_measured(data: Path, tmp_path: Path) -> None:
    model = corpus.model("qat_small_ema")
    outcome = run("onnx", model, tmp_path / "m.onnx", "--quantized", "--calibration", data)
    assert outcome.status == 2
    assert "it has scales already" in outcome.stderr
    assert "without calibration" in outcome.stderr


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"rules": ["head.*"]}, "rules must be a dict by pattern, got list (['head.*'])"),
        ({"per_channel": "no"}, "per_channel must be True or False, got str ('no')"),
        ({"mean": "half"}, "mean must be a list of numbers, got str ('half')"),
        ({"std": 0.5}, "std must be a list of numbers, got float (0.5)"),
        ("minmax", "calibration_settings must be a dict by name, got str ('minmax')"),
    ],
    ids=str,
)
def test_settings_of_another_kind(settings: Any, text: str, data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="TM6032") as raised:
        tmconvert.to_onnx(
            DIGITS, tmp_path / "m", quantized=True, calibration=data, calibration_settings=settings
        )
    assert text in str(raised.value)


@pytest.mark.parametrize("name", ["metod", "data"])
def test_a_setting_that_there_is_not(name: str, data: Path, tmp_path: Path) -> None:
    settings = {name: "minmax"}
    with pytest.raises(UsageError, match=f"'{name}' is not a calibration setting"):
        tmconvert.to_onnx(
            DIGITS, tmp_path / "m.onnx", quantized=True, calibration=data, calibration_settings=settings
        )
