"""Preprocessing in the model: descriptions, and files against the float pipeline around the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tmconvert
from tests.cli.runner import run
from tmconvert.conversion.preprocessing import ImageInput, Preprocessing, parse_image_input
from tmconvert.errors import UsageError

SAMPLES = Path(__file__).parents[2] / "samples"
MODEL = SAMPLES / "digits.tm"
IMAGES = np.load(SAMPLES / "digits_test.npz")["images"][:16].astype(np.uint8)[..., None]
DIGITS = "rgb, nhwc, uint8, std=0.0627450980392157"  # pixels of the digits end at 16
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
IMAGENET = "mean=0.485,0.456,0.406, std=0.229 0.224 0.225"
FLOAT, STEPS = 1e-5, 1.001


class Net(torch.nn.Module):
    """The first layers of a MobileNet: a convolution with or without padding, and a depthwise one."""

    def __init__(self, padding: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(3, 8, 3, stride=2, padding=padding)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.relu6(self.depthwise(torch.nn.functional.relu6(self.first(x))))
        return self.head(x.mean((2, 3)))


def outputs(path: Path, image: np.ndarray) -> np.ndarray:
    """What the runtime of the file computes."""
    if path.suffix == ".onnx":
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, {session.get_inputs()[0].name: image})[0])
    if path.suffix == ".prototxt":
        net = pytest.importorskip("cv2").dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))
        net.setInput(image.astype(np.float32))
        return np.asarray(net.forward())
    interpreter = litert.Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert given["dtype"] == image.dtype
    interpreter.set_tensor(given["index"], image)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(made["index"]))


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def convert(suffix: str, model: Any, path: Path, **options: Any) -> Path:
    made = path / f"m{suffix}"
    to = {".onnx": tmconvert.to_onnx, ".tflite": tmconvert.to_tflite, ".prototxt": tmconvert.to_caffe}
    report = to[suffix](model, made, **options)
    assert report.verified
    return made


@pytest.mark.parametrize("suffix", [".onnx", ".tflite", ".prototxt"])
def test_the_digits_take_pixels(suffix: str, tmp_path: Path) -> None:
    path = convert(suffix, MODEL, tmp_path, preprocess=DIGITS, softmax=True)
    model = tmconvert.load(MODEL)
    for image in IMAGES[:4]:
        expected = softmax(model(image.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(16)))
        assert np.abs(outputs(path, image[None]) - expected).max() < FLOAT


@pytest.mark.parametrize("suffix", [".onnx", ".tflite", ".prototxt"])
@pytest.mark.parametrize(
    ("text", "padding"),
    [
        (f"rgb, nhwc, uint8, {IMAGENET}", 1),
        (f"bgr, nhwc, uint8, {IMAGENET}", 0),
        (f"rgb, nchw, uint8, {IMAGENET}, resize=20x28", 1),
    ],
)
def test_images_of_three_colours(suffix: str, text: str, padding: int, tmp_path: Path) -> None:
    net, described = Net(padding).eval(), parse_image_input(text)
    path = convert(suffix, net, tmp_path, preprocess=text, example_inputs=torch.ones(1, 3, 16, 24))
    height, width = described.size or (16, 24)
    image = np.random.default_rng(0).integers(0, 256, (1, height, width, 3)).astype(np.uint8)
    x = torch.from_numpy(image).permute(0, 3, 1, 2).float()
    if described.size is not None:
        x = torch.nn.functional.interpolate(x, (16, 24), mode="bilinear")
    x = x.flip(1) if described.colours == "bgr" else x
    x = (x / 255 - torch.tensor(MEAN).reshape(1, 3, 1, 1)) / torch.tensor(STD).reshape(1, 3, 1, 1)
    with torch.no_grad():
        expected = net(x).numpy()
    given = image if described.layout == "nhwc" else np.ascontiguousarray(image.transpose(0, 3, 1, 2))
    assert np.abs(outputs(path, given) - expected).max() < FLOAT * max(1, np.abs(expected).max())


def types(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def test_the_factor_is_folded_and_the_sum_where_nothing_is_padded(tmp_path: Path) -> None:
    example = {"example_inputs": torch.ones(1, 3, 16, 24), "preprocess": f"nhwc, uint8, {IMAGENET}"}
    padded = types(convert(".onnx", Net(1).eval(), tmp_path, **example))
    assert (padded.count("Mul"), padded[:4]) == (0, ["Cast", "Transpose", "Add", "Conv"])
    plain = types(convert(".onnx", Net(0).eval(), tmp_path, **example))
    assert (plain.count("Mul"), plain[:3]) == (0, ["Cast", "Transpose", "Conv"])


def step_of(path: Path) -> tuple[float, int]:
    """The scale and the zero point of the output; of an ONNX file the output itself is dequantized."""
    if path.suffix == ".tflite":
        return litert.Interpreter(model_path=str(path)).get_output_details()[0]["quantization"]
    graph = onnx.load(path).graph
    name = next(node.input[1] for node in graph.node if node.output[0] == graph.output[0].name)
    (scale,) = (onnx.numpy_helper.to_array(each) for each in graph.initializer if each.name == name)
    return float(scale), 0


def real_outputs(path: Path, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """The outputs for each input, from their steps."""
    scale, zero = step_of(path)
    factor = scale if path.suffix == ".tflite" else 1.0
    return np.array([(outputs(path, each).astype(np.float64) - zero) * factor for each in inputs])


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".onnx", ".tflite"])
def test_integers_of_the_digits_are_those_of_the_pipeline(suffix: str, tmp_path: Path) -> None:
    """The same integers as those of the quantized model, with the normalization before it.

    Its input has the scale for which the normalized pixels are integers: 1/16. The distance of both from the
    float model is that of eight bits, more than a step of the output.
    """
    data, pixels = {"x": IMAGES}, IMAGES.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(16)
    options = {"softmax": True, "quantized": True}
    path = convert(suffix, MODEL, tmp_path, preprocess=DIGITS, calibration=data, **options)
    (tmp_path / "around").mkdir()
    around = convert(
        *(suffix, MODEL, tmp_path / "around"),
        **options,
        calibration={"x": pixels},
        input_qparams={"x": ("quint8", 1 / 16, 0)},
    )
    given = [image[None] for image in IMAGES[:8]]
    found = real_outputs(path, given)
    if suffix == ".tflite":
        wanted = real_outputs(around, [(image.astype(np.int16) - 128).astype(np.int8) for image in given])
    else:
        wanted = real_outputs(around, [image[None] for image in pixels[:8]])
    scale = step_of(path)[0]
    assert np.abs(found - wanted).max() < scale * 1e-3
    model = tmconvert.load(MODEL)
    expected = np.array([softmax(model(image[None])) for image in pixels[:8]])
    assert (expected.argmax(-1) == found.argmax(-1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".onnx", ".tflite"])
@pytest.mark.parametrize(
    ("padding", "mean", "std"), [(1, MEAN, STD), (0, MEAN, STD), (1, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))]
)
def test_integers_of_a_mobilenet_are_within_a_step_of_the_pipeline(
    padding: int, mean: tuple[float, ...], std: tuple[float, ...], suffix: str, tmp_path: Path
) -> None:
    """Of the float model, too: with three layers eight bits are that exact."""
    net, random = Net(padding).eval(), np.random.default_rng(0)
    smooth = np.kron(random.integers(0, 256, (16, 4, 6, 3)), np.ones((1, 4, 4, 1)))
    images = np.clip(smooth + random.normal(0, 20, smooth.shape), 0, 255).astype(np.uint8)
    x = images.transpose(0, 3, 1, 2) / 255 - np.reshape(mean, (1, 3, 1, 1))
    x = (x / np.reshape(std, (1, 3, 1, 1))).astype(np.float32)
    model = tmconvert.trace(net, torch.ones(1, 3, 16, 24))
    text = f"rgb, nhwc, uint8, mean={','.join(map(str, mean))}, std={','.join(map(str, std))}"
    path = convert(suffix, model, tmp_path, preprocess=text, quantized=True, calibration={"x": images})
    (tmp_path / "around").mkdir()
    io_type = {"io_type": "float32"} if suffix == ".tflite" else {}
    around = convert(suffix, model, tmp_path / "around", quantized=True, calibration={"x": x}, **io_type)
    given = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if suffix == ".tflite" else x
    found = real_outputs(path, [image[None] for image in images])
    wanted = np.array([outputs(around, each[None]) for each in given])
    with torch.no_grad():
        expected = net(torch.from_numpy(x)).numpy()[:, None]
    scale = step_of(path)[0]
    assert np.abs(found - wanted).max() < STEPS * scale
    assert np.abs(found - expected).max() < STEPS * scale


def test_an_integer_file_has_integers_throughout(tmp_path: Path) -> None:
    path = convert(
        ".tflite", MODEL, tmp_path, preprocess=DIGITS, argmax=True, quantized=True, calibration={"x": IMAGES}
    )
    interpreter = litert.Interpreter(model_path=str(path))
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert (given["dtype"], given["quantization"]) == (np.uint8, (1.0, 0))
    assert made["dtype"] == np.int32
    assert not [each for each in interpreter.get_tensor_details() if each["dtype"] == np.float32]
    labels = np.load(SAMPLES / "digits_test.npz")["labels"][:16]
    found = [int(outputs(path, image[None])[0]) for image in IMAGES]
    assert np.mean(np.array(found) == labels) > 0.9


@pytest.mark.parametrize("suffix", [".onnx", ".tflite"])
def test_a_file_is_verified_by_the_description_that_it_stores(suffix: str, tmp_path: Path) -> None:
    path = convert(suffix, MODEL, tmp_path, preprocess=DIGITS, softmax=True)
    assert tmconvert.verify(MODEL, path).max_error < FLOAT
    if suffix == ".onnx":
        stored = {each.key: each.value for each in onnx.load(path).metadata_props}
        options = json.loads(stored["tmconvert.options"])
        assert options["preprocess"] == [DIGITS]
        assert options["softmax"] is True


def test_open_batches_stay_open(tmp_path: Path) -> None:
    model = tmconvert.trace(Net().eval(), torch.ones(2, 3, 16, 24), dynamic_shapes={"x": {0: "batch"}})
    path = convert(".onnx", model, tmp_path, preprocess=f"nhwc, uint8, {IMAGENET}")
    assert outputs(path, np.zeros((5, 16, 24, 3), np.uint8)).shape == (5, 5)


def test_the_command_calibrates_on_the_same_images(tmp_path: Path) -> None:
    outcome = run(
        *("tflite", MODEL, tmp_path / "m.tflite", "--quantized", "--calibration", SAMPLES / "images"),
        *("--preprocess", DIGITS, "--softmax", "--json"),
    )
    assert outcome.status == 0, outcome.stderr
    assert outcome.json["inputs"][0]["dtype"] == "uint8"
    assert outcome.json["inputs"][0]["shape"] == [1, 8, 8, 1]


def test_a_description_is_read_and_written() -> None:
    text = "image: bgr, nhwc, uint8, model=rgb, mean=0.5, 0.25,0.125, std=1, resize=480x640"
    found = parse_image_input(text)
    assert found == ImageInput("image", "bgr", "rgb", "nhwc", "uint8", (0.5, 0.25, 0.125), (1.0,), (480, 640))
    assert parse_image_input(str(found)) == found
    assert Preprocessing.from_json(Preprocessing.of([text], softmax=True).to_json()) == Preprocessing(
        (found,), softmax=True
    )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("hwc", "preprocess has the unknown word 'hwc'"),
        ("resize=0x4", "preprocess has the unknown word 'resize=0x4'"),
        ("gray", "images of one channel need no order of colours"),
        ("mean=a", "mean of preprocess must be finite numbers"),
        ("std=0", "std of preprocess must be positive"),
        ("y: nhwc", "the model has no input 'y'"),
        ("mean=1,2,3", "mean of preprocess has 3 values, but the input has 1 channels"),
        ("bgr", "has 1 channels: rgb and bgr apply to three"),
        (["x: nhwc", "x: nchw"], "describes the input 'x' twice"),
    ],
)
def test_descriptions_that_cannot_be(texts: str | Sequence[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        tmconvert.to_onnx(MODEL, tmp_path / "m.onnx", preprocess=texts)
    assert message in error.value.render()
    assert not list(tmp_path.iterdir())


def test_a_normalization_is_not_described_twice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="apply to images that the model does not normalize"):
        tmconvert.to_onnx(
            MODEL,
            tmp_path / "m.onnx",
            quantized=True,
            preprocess=DIGITS,
            calibration={"x": IMAGES},
            calibration_settings={"std": [1.0]},
        )
