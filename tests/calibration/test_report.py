"""What a conversion to integers tells of its layers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.verification.noise import Noise, energies_of
from tmconvert.verification.quantization_report.report_file import table
from tmconvert.viewer.written_file import written_graph

SAMPLES = Path(__file__).parents[2] / "samples"
LAYERS = (
    Noise("conv_out", "conv2d", 41.5, 40.25, 0.0, 0.93, 0.01),
    Noise("a<b>&", "relu", float("inf"), 38.0, 0.0125, 1.0, 0.02),
    Noise("log_out", "log", 120.0, 35.5, 0.0, 1.0, 0.0),
)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images = np.load(SAMPLES / "digits_test.npz")["images"][:8, None] / np.float32(16)
    path = tmp_path_factory.mktemp("calibrated") / "q.tm"
    tmconvert.calibrate(SAMPLES / "digits.tm", {"x": images.astype(np.float32)}).save(path)
    return path


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_each_form_has_every_layer(target: str, calibrated: Path, tmp_path: Path) -> None:
    found = {}
    for suffix in ("html", "json", "txt"):
        report = tmp_path / f"r.{suffix}"
        outcome = run(
            target, calibrated, tmp_path / f"m.{target}", "--quantized", "--report", report, "--json"
        )
        assert outcome.status == 0, outcome.stderr
        found[suffix] = report.read_text()
    layers = json.loads(found["json"])["layers"]
    assert outcome.json["verification"]["layers"] == layers
    assert {"linear", "conv2d", "relu"} <= {layer["op"] for layer in layers}
    for layer in layers:
        assert layer["name"] in found["txt"]
        assert layer["name"] in found["html"]
        assert 0 <= layer["clipped"] < 0.2
        assert 0 < layer["range_used"] <= 1
    assert layers[-1]["accumulated_db"] > 20
    assert layers[-1]["local_db"] > layers[-1]["accumulated_db"]


DATA = ("--quantized", "--calibration", "{data}")
MEASURED = {
    DATA: "4 of the 7 samples of {data}",
    (*DATA, "--report-data", "{more}"): "the samples of {more}",
    ("--quantized", "--report-data", "{more}"): "the samples of {more}",
    ("--quantized",): "random inputs",
}


@pytest.mark.slow
def test_the_ratio_of_an_output_is_that_of_the_file_and_the_model(tmp_path: Path) -> None:
    """Calibration corrects biases, so that the file is closer to the model than to the corrected one."""
    runtime = pytest.importorskip("ai_edge_litert.interpreter")
    images = np.load(SAMPLES / "digits_test.npz")["images"][:40, None] / np.float32(16)
    path, data = tmp_path / "m.tflite", {"x": images.astype(np.float32)}
    options = {"quantized": True, "io_layout": "source", "calibration": data, "report_data": data}
    report = tmconvert.to_tflite(SAMPLES / "digits.tm", path, **options)
    unfused = runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = runtime.Interpreter(str(path), experimental_op_resolver_type=unfused)
    interpreter.allocate_tensors()
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    signal = noise = 0.0
    for x in data["x"]:
        scale, zero = given["quantization"]
        interpreter.set_tensor(
            given["index"], np.clip(np.round(x / scale) + zero, -128, 127).astype("i1")[None]
        )
        interpreter.invoke()
        scale, zero = result["quantization"]
        actual = (interpreter.get_tensor(result["index"]).astype(np.float32) - zero) * scale
        expected = tmconvert.run(SAMPLES / "digits.tm", {"x": x[None]})["classifier_out"]
        signal, noise = signal + np.sum(expected**2), noise + np.sum((expected - actual) ** 2)
    assert report.verification is not None
    assert report.verification.decibels == pytest.approx(10 * np.log10(signal / noise), abs=0.02)


@pytest.mark.parametrize("options", MEASURED, ids=" ".join)
@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_the_report_says_what_was_measured(
    target: str, options: tuple[str, ...], calibrated: Path, tmp_path: Path
) -> None:
    images = np.load(SAMPLES / "digits_test.npz")["images"][:7, None] / np.float32(16)
    files = {"data": tmp_path / "d.npz", "more": tmp_path / "more.npz"}
    for path in files.values():
        np.savez(path, x=images.astype(np.float32))
    source = SAMPLES / "digits.tm" if "--calibration" in options else calibrated
    given = [option.format(**files) for option in options]
    report = tmp_path / "r.json"
    outcome = run(target, source, tmp_path / "m", *given, "--report", report)
    assert outcome.status == 0, outcome.stderr
    document = json.loads(report.read_text())
    assert document["inputs"] == MEASURED[options].format(**files)
    assert document["runtime"].startswith(("ONNX Runtime", "LiteRT"))
    assert f"against the float model, on {document['inputs']}" in outcome.stderr


def test_more_samples_are_added_up(calibrated: Path, tmp_path: Path) -> None:
    images = np.load(SAMPLES / "digits_test.npz")["images"][:3, None] / np.float32(16)
    images = images.astype(np.float32)
    found = [
        tmconvert.to_tflite(calibrated, tmp_path / "m", quantized=True, report_data={"x": part})
        for part in (images[:1], images[1:], images)
    ]
    one, two, three = (report.verification.noise[-1] for report in found if report.verification)
    assert one.whole != two.whole
    assert min(one.whole, two.whole) < three.whole < max(one.whole, two.whole)
    # the lowest may be in one part, and the highest in the other
    assert max(one.used, two.used) <= three.used <= one.used + two.used


def test_the_noise_of_a_layer() -> None:
    near = np.array([-2.0, 0.0, 1.0, 4.0], np.float32)
    actual = np.array([-1.0, 0.0, 1.0, 3.0], np.float32)
    noise = energies_of("y", "aten::relu", actual, near, near * 2, 0.5, (-1.0, 3.0)).noise()
    assert noise.local == pytest.approx(10 * np.log10(21 / 2))
    assert noise.whole == pytest.approx(10 * np.log10(84 / 35))
    assert (noise.clipped, noise.used, noise.function) == (0.5, 1.0, "relu")


def test_the_page_has_what_the_report_has(calibrated: Path, tmp_path: Path) -> None:
    report = tmconvert.to_tflite(calibrated, tmp_path / "m.tflite", quantized=True)
    report.write_layers(tmp_path / "r.html")
    report.write_layers(tmp_path / "r.json")
    report.write_layers(tmp_path / "r.nodes.json")
    document = json.loads((tmp_path / "r.json").read_text())
    nodes = json.loads((tmp_path / "r.nodes.json").read_text())
    tensors = {tensor.name for tensor in written_graph(tmp_path / "m.tflite").tensors}
    assert nodes["results"].keys() <= tensors  # by which Model Explorer finds nodes
    ratios = {each["name"]: each["accumulated_db"] for each in document["layers"]}
    assert {name: each["value"] for name, each in nodes["results"].items()} == ratios
    text = (tmp_path / "r.html").read_text("utf-8")
    _, _, rest = text.partition('<script type="application/json" id="document">')
    page = json.loads(rest.partition("</script>")[0])
    assert page["reports"] == [document]
    assert [graph["title"] for graph in page["graphs"]] == ["m.tflite"]
    (output,) = document["outputs"]
    assert output["decibels"] > 20
    assert output["cosine"] > 0.99
    assert output["rows"] == 1
    names = {layer["name"] for layer in document["layers"]}
    assert set(document["histograms"]) == set(document["quantization"]) == names
    first = document["layers"][0]
    assert (first["module"], ".tm:%" in first["source"]) == ("stem", True)
    counts = np.array(document["histograms"][first["name"]]["counts"])
    assert counts.shape == (24, 32)
    assert counts.sum() == 24 * 64


def test_text_and_numbers() -> None:
    first, *others = table(LAYERS).splitlines()
    assert first.split() == ["layer", "op", "local", "dB", "accumulated", "dB", "clipped", "range", "used"]
    assert others[0].split() == ["conv_out", "conv2d", "41.5", "40.2", "0.000%", "93.0%"]
    assert others[2].split()[-2:] == ["float", "float"]
    assert LAYERS[1].to_json()["local_db"] is None


def test_rules_are_tried_and_their_gain_is_measured(tmp_path: Path) -> None:
    report, data = tmp_path / "r.json", tmp_path / "d.npz"
    images = np.load(SAMPLES / "digits_test.npz")["images"][:8, None] / np.float32(16)
    np.savez(data, x=images.astype(np.float32))
    model, given = SAMPLES / "digits.tm", ("--quantized", "--calibration", data, "--method", "minmax")
    outcome = run("tflite", model, tmp_path / "m.tflite", *given, "--try-rules", "--report", report)
    assert outcome.status == 0, outcome.stderr
    found = json.loads(report.read_text())
    (best, *_) = found["advice"]
    rule = best["rule"].split()
    again = run("tflite", model, tmp_path / "n.tflite", *given, *rule, "--report", tmp_path / "s.json")
    assert again.status == 0, again.stderr
    (before,), (after,) = found["outputs"], json.loads((tmp_path / "s.json").read_text())["outputs"]
    assert after["decibels"] - before["decibels"] == pytest.approx(best["gain_db"], abs=0.01)
    assert f"{best['rule']}: {best['gain_db']:+.1f} dB at the output" in " ".join(outcome.stderr.split())
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "d.npz",
        "m.tflite",
        "n.tflite",
        "r.json",
        "s.json",
    ]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--try-rules"], "try_rules requires quantized, calibration and verification"),
        (["--report", "r.html"], "--report requires --quantized"),
        (["--quantized", "--no-verify", "--report", "r.html"], "requires --quantized and verification"),
        (["--quantized", "--report-data", "d.npz"], "--report-data requires --report or --min-sqnr"),
        (["--quantized", "--report", "r.txt", "--report-data", "no.npz"], "no.npz does not exist"),
        (["--quantized", "--report", "r.pdf"], "the report r.pdf has an unknown suffix"),
    ],
)
def test_a_report_that_cannot_be(options: list[str], text: str, calibrated: Path, tmp_path: Path) -> None:
    outcome = run("tflite", calibrated, tmp_path / "m.tflite", *options)
    assert outcome.status != 0
    assert text in " ".join(outcome.stderr.split())
    assert not (tmp_path / "m.tflite").exists()
