"""Conversions with ``min_sqnr``, whose files are run by the runtimes themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import tmconvert
import tmconvert.errors
from tests.cli.runner import run

ort = pytest.importorskip("onnxruntime")
GOAL = 30.0
# the logarithm of energies over six decades, as of a spectrum, and a small network after it
TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
sound (float[1,4,16,16] x) => (float[1,3] y)
<float[4] power = {1.0, 0.1, 0.01, 0.001}, float[1] least = {1e-8}>
{
    shape = Constant<value = int64[4] {1, 4, 1, 1}>()
    gain = Reshape(power, shape)
    louder = Mul(x, gain)
    energy = Mul(louder, louder)
    above = Add(energy, least)
    spectrum_log = Log(above)
    conv_out = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(spectrum_log, kernel)
    relu_out = Relu(conv_out)
    mean = GlobalAveragePool(relu_out)
    flat = Flatten(mean)
    y = Gemm(flat, weight, bias)
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    made = onnx.parser.parse_model(TEXT)
    for name, shape in (("kernel", (8, 4, 3, 3)), ("weight", (8, 3)), ("bias", (3,))):
        array = random.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path = tmp_path_factory.mktemp("sound") / "sound.onnx"
    onnx.save(made, path)
    return path


@pytest.fixture(scope="module")
def samples() -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(1)
    loud = 10.0 ** random.uniform(-2, 0, (24, 1, 1, 1, 1))
    return [{"x": x.astype(np.float32)} for x in loud * random.standard_normal((24, 1, 4, 16, 16))]


def ratio(path: Path, model: Path, samples: list[dict[str, np.ndarray]]) -> float:
    """Returns the signal-to-noise ratio in dB of a file in its runtime, against the model in ONNX Runtime."""
    source = ort.InferenceSession(model)
    expected = np.stack([source.run(None, sample)[0] for sample in samples])
    actual = np.stack([run_file(path, sample["x"]) for sample in samples])
    return float(10 * np.log10(np.sum(expected**2) / np.sum((expected - actual) ** 2)))


def run_file(path: Path, x: np.ndarray) -> np.ndarray:
    if path.suffix == ".onnx":
        return np.asarray(ort.InferenceSession(path).run(None, {"x": x})[0])
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(str(path))
    interpreter.allocate_tensors()
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    scale, zero = given["quantization"]
    if scale:
        ends = np.iinfo(given["dtype"])
        x = np.clip(np.round(x / scale) + zero, ends.min, ends.max).astype(given["dtype"])
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    y, (scale, zero) = interpreter.get_tensor(result["index"]), result["quantization"]
    return (y.astype(np.float32) - zero) * scale if scale else y


def has_integers(path: Path) -> bool:
    if path.suffix == ".onnx":
        return "QuantizeLinear" in [node.op_type for node in onnx.load(path).graph.node]
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(str(path))
    return np.int8 in [each["dtype"] for each in interpreter.get_tensor_details()]


def convert(target: str, model: Any, path: Path, **options: Any) -> Any:
    layout = {"io_layout": "source"} if target == "tflite" else {}
    return getattr(tmconvert, f"to_{target}")(model, path, quantized=True, **layout, **options)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_the_ratio_is_reached(target: str, model: Path, samples: Any, tmp_path: Path) -> None:
    path = tmp_path / f"found.{target}"
    plain = convert(target, model, tmp_path / f"plain.{target}", calibration=samples)
    assert "warning: integers are too coarse for some layers" in "\n".join(plain.notes)
    assert ratio(plain.paths[0], model, samples) < 20
    report = convert(target, model, path, calibration=samples, min_sqnr=GOAL)
    assert ratio(path, model, samples) >= GOAL
    assert report.verified
    assert has_integers(path)
    (note,) = [note for note in report.notes if note.startswith(f"found for --min-sqnr {GOAL:g}: ")]
    assert note.endswith(", on the 24 samples of the data passed)")
    found = [note for note in report.notes if note.startswith("  --rule '")]
    assert f": {len(found)} rule" in note
    assert not any("too coarse" in each for each in report.notes)
    rules = dict(part.split("'")[1].split("=") for part in found)
    again = tmp_path / f"again.{target}"
    convert(target, model, again, calibration=samples, rules=rules)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_rules_of_the_user_stay(model: Path, samples: Any, tmp_path: Path) -> None:
    given = {"y": "float", "spectrum_log": "int8"}
    report = convert(
        "tflite", model, tmp_path / "m.tflite", calibration=samples, min_sqnr=5, rules={"y": "float"}
    )
    assert report.outputs[0]["dtype"] == "float32"
    with pytest.raises(tmconvert.errors.UsageError, match="no rules were found"):
        convert("tflite", model, tmp_path / "m.tflite", calibration=samples, min_sqnr=60, rules=given)


@pytest.mark.slow
def test_a_module_is_traced_once(samples: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Sound(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Conv2d(4, 3, 3)
            self.runs = 0

        def forward(self, x: Any) -> Any:
            self.runs += 1
            return self.body(torch.log((x * 1e-2) ** 2 + 1e-8)).relu()

    torch.manual_seed(0)
    net = Sound().eval()
    inputs = [torch.from_numpy(samples[0]["x"])]
    convert("tflite", net, tmp_path / "once.tflite", calibration=samples, example_inputs=inputs)
    once, net.runs = net.runs, 0
    report = convert(
        "tflite", net, tmp_path / "m.tflite", calibration=samples, example_inputs=inputs, min_sqnr=25
    )
    assert net.runs == once
    assert report.verification.decibels > 24


@pytest.mark.slow
def test_the_command(model: Path, samples: Any, tmp_path: Path) -> None:
    data, out = tmp_path / "d.npz", tmp_path / "m.tflite"
    np.savez(data, x=np.concatenate([sample["x"] for sample in samples]))
    given = ("--quantized", "--calibration", data, "--min-sqnr")
    outcome = run("tflite", model, out, *given, "30", "-v")
    assert outcome.status == 0, outcome.stderr
    lines = " ".join(outcome.stderr.split())
    assert "conversion 1, with 0 rules: " in lines
    assert f"on the 24 samples of {data})" in lines
    outcome = run("tflite", model, tmp_path / "n.tflite", *given, "200")
    assert outcome.status == 2
    assert "no rules were found with which every output has 200 dB, in" in " ".join(outcome.stderr.split())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["d.npz", "m.tflite"]


def test_what_the_ratio_requires(model: Path, samples: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    with pytest.raises(
        tmconvert.errors.UsageError, match="min_sqnr is 30, but applies only with calibration"
    ):
        tmconvert.to_tflite(model, path, min_sqnr=30, quantized=True)
    with pytest.raises(tmconvert.errors.UsageError, match="min_sqnr requires quantized and verification"):
        convert("tflite", model, path, calibration=samples, min_sqnr=30, verify=False)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--min-sqnr", "30", "--try-rules"), "try_rules and min_sqnr both find rules"),
        (("--report-data", "{data}"), "--report-data requires --report or --min-sqnr"),
    ],
)
def test_options_that_exclude_or_require_others(
    options: tuple[str, ...], text: str, model: Path, samples: Any, tmp_path: Path
) -> None:
    data = tmp_path / "d.npz"
    np.savez(data, x=samples[0]["x"])
    given = [option.format(data=data) for option in options]
    outcome = run("tflite", model, tmp_path / "m.tflite", "--quantized", "--calibration", data, *given)
    assert outcome.status == 2
    assert text in " ".join(outcome.stderr.split())


@pytest.mark.slow
def test_the_ratio_is_measured_on_the_data_of_the_report(model: Path, samples: Any, tmp_path: Path) -> None:
    report = convert(
        "tflite",
        model,
        tmp_path / "m.tflite",
        calibration=samples[:8],
        report_data=samples[8:11],
        min_sqnr=GOAL,
    )
    (note,) = [note for note in report.notes if note.startswith("found for --min-sqnr ")]
    assert note.endswith(", on the 3 samples of the data passed)")
    assert ratio(tmp_path / "m.tflite", model, samples[8:11]) >= GOAL


@pytest.mark.parametrize("wrong", [0, -3, float("nan"), float("inf"), "30", True])
def test_a_ratio_is_a_positive_number(wrong: Any, model: Path, tmp_path: Path) -> None:
    with pytest.raises(tmconvert.errors.UsageError, match="min_sqnr must be a positive number"):
        tmconvert.to_onnx(model, tmp_path / "m.onnx", min_sqnr=wrong)


CLAMPS = """
<ir_version: 8, opset_import: ["" : 17]>
clamps (float[1,8] input) => (float[1,4] y, int64[1] k)
<float low = {-1.0}, float high = {6.0}>
{
    a = MatMul(input, weight)
    r = Relu(a)
    q = Clip(a, low, high)
    sum = Add(r, q)
    y = Softmax(sum)
    k = ArgMax<axis = 1, keepdims = 0>(y)
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_two_clamps_of_a_tensor_and_an_array_as_data(target: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    made = onnx.parser.parse_model(CLAMPS)
    weight = random.standard_normal((8, 4)).astype(np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(weight, "weight"))
    onnx.save(made, tmp_path / "clamps.onnx")
    data = random.standard_normal((40, 8)).astype(np.float32)
    outcomes = []
    for wanted in (20.0, 41.0, 200.0):
        try:
            report = convert(
                target, tmp_path / "clamps.onnx", tmp_path / f"m.{target}", calibration=data, min_sqnr=wanted
            )
            outcomes.append(report.verified)
        except tmconvert.errors.UsageError as error:
            outcomes.append(False)
            assert f"no rules were found with which every output has {wanted:g} dB" in str(error)
            if target == "tflite":
                assert "int16x8 for all layers is refused: " in str(error)
    assert (outcomes[0], outcomes[-1]) == (True, False)


@pytest.mark.slow
def test_a_ratio_below_that_of_the_warning(model: Path, samples: Any, tmp_path: Path) -> None:
    report = convert("tflite", model, tmp_path / "m.tflite", calibration=samples, min_sqnr=3)
    assert "too coarse" not in "\n".join(report.notes)


def test_rules_for_inputs(model: Path, samples: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    report = convert("tflite", model, path, calibration=samples, rules={"x": "int16x8", "louder": "int16x8"})
    assert report.inputs[0]["dtype"] == "int16"
    with pytest.raises(tmconvert.errors.UsageError, match="the rule x has no effect: x is an input"):
        convert("tflite", model, path, calibration=samples, rules={"x": "float"})
