"""``tmconvert.evaluate``: its numbers are those of the runtimes' own outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

import tmconvert
from tests.cli.runner import run
from tests.frontends.onnx.models import of_nodes
from tests.inspection.conftest import Files
from tmconvert.errors import UsageError

RNG = np.random.default_rng(3)
SAMPLES = RNG.random((12, 3, 12, 16), np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for number, sample in enumerate(SAMPLES[:4]):
        np.save(tmp_path / f"s{number}.npy", sample)
    np.savez(tmp_path / "zrest.npz", image=SAMPLES[4:])
    return tmp_path


def outputs_of(path: Path) -> np.ndarray:
    session = onnxruntime.InferenceSession(path)
    return np.concatenate([session.run(None, {"image": sample[None]})[0] for sample in SAMPLES])


def linear(name: str, weights: np.ndarray, shape: list[int | str] | None = None, **others: object) -> str:
    """Writes a model whose output is a product with weights."""
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    model = of_nodes([node], {"x": shape or ["n", len(weights)]}, ["y"], **others)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights.astype(np.float32), "w"))
    onnx.save(model, name)
    return name


def test_numbers_are_those_of_the_runtime(files: Files, folder: Path) -> None:
    one, other = outputs_of(files.paths["onnx"]), outputs_of(files.paths["qdq"])
    found = tmconvert.evaluate(files.paths["onnx"], files.paths["qdq"], data=folder)
    (output,) = found.outputs
    noise = np.sum((one - other).astype(np.float64) ** 2)
    assert found.ok and found.samples == 12 == output.rows
    assert output.decibels == pytest.approx(10 * np.log10(np.sum(one.astype(np.float64) ** 2) / noise), 1e-3)
    assert output.max_difference == pytest.approx(np.abs(one - other).max(), 1e-5)
    assert output.cosine == pytest.approx(
        np.sum(one * other) / np.linalg.norm(one) / np.linalg.norm(other), 1e-5
    )
    assert output.agreement == np.mean(one.argmax(1) == other.argmax(1))
    ratios = 10 * np.log10(np.sum(one**2, 1) / np.sum((one - other) ** 2, 1))
    names = [f"s{number}.npy" for number in range(4)] + [f"zrest.npz[{number}]" for number in range(8)]
    agreeing = one.argmax(1) == other.argmax(1)
    worst = sorted(zip(agreeing, ratios, names, strict=True))[:5]
    assert [each.name for each in found.worst] == [name for _, _, name in worst]


@pytest.mark.parametrize("kind", ["model", "onnx", "tflite", "prototxt", "half", "int8"])
def test_kinds_of_models(kind: str, files: Files, folder: Path) -> None:
    second = files.model if kind == "model" else files.paths[kind]
    for pair in [(files.paths["onnx"], second), (second, files.paths["tflite"])]:
        is_last = str(pair[0]).endswith(".tflite")
        data = SAMPLES.transpose(0, 2, 3, 1) if is_last else folder
        (output,) = tmconvert.evaluate(*pair, data=data).outputs
        assert output.decibels > {"half": 40, "int8": 20}.get(kind, 100), (kind, output)


def test_limits_end_with_status_1(files: Files, folder: Path) -> None:
    command = ("evaluate", files.paths["onnx"], files.paths["qdq"], "--data", folder)
    assert run(*command, "--min-sqnr", "10", "--min-agreement", "0.1").status == 0
    outcome = run(*command, "--min-sqnr", "90", "--json")
    assert outcome.status == 1 and not outcome.json["ok"]
    assert "less than 90" in outcome.json["failures"][0]
    shown = run(*command, "--min-sqnr", "90").stdout
    assert "FAILED: signal to noise of" in shown and "on 12 samples" in shown


def test_other_best_classes_come_first_among_the_worst(folder: Path) -> None:
    one = linear("one.onnx", np.eye(3))
    other = linear("other.onnx", np.diag([1, 1, 3]))
    np.save("x.npy", np.array([[5, 0, 2], [9, 0, 8], [0, 7, 0]], np.float32))
    found = tmconvert.evaluate(one, other, data="x.npy", min_agreement=0.6)
    assert found.outputs[0].agreement == pytest.approx(2 / 3 - 1 / 3) and not found.ok
    assert [(each.name, each.agrees) for each in found.worst] == [
        ("x.npy[1]", False),
        ("x.npy[0]", False),
        ("x.npy[2]", True),
    ]
    assert found.worst[2].decibels == np.inf and found.to_json()["worst"][2]["decibels"] is None
    assert "another best class" in str(found) and "infinite (equal)" in str(found)


def test_outputs_that_are_not_finite_are_no_noise_of_zero(folder: Path) -> None:
    log = of_nodes([onnx.helper.make_node("Log", ["x"], ["y"])], {"x": [1, 2]}, ["y"])
    relu = of_nodes([onnx.helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 2]}, ["y"])
    onnx.save(log, "log.onnx")
    onnx.save(relu, "relu.onnx")
    for data, first, second, is_equal in [
        ([[0, 1]], "log.onnx", "log.onnx", True),
        ([[-1, 1]], "log.onnx", "log.onnx", True),
        ([[0, 1]], "log.onnx", "relu.onnx", False),
    ]:
        (output,) = tmconvert.evaluate(first, second, data=np.array(data, np.float32)).outputs
        assert output.decibels == (np.inf if is_equal else -np.inf), (data, output)
        assert output.max_difference == (0 if is_equal else np.inf)


def test_integer_outputs_agree_or_not(folder: Path) -> None:
    for name, select_last in [("first.onnx", 0), ("last.onnx", 1)]:
        node = onnx.helper.make_node(
            "ArgMax", ["x"], ["y"], select_last_index=select_last, keepdims=0, axis=1
        )
        onnx.save(of_nodes([node], {"x": ["n", 3]}, {"y": onnx.TensorProto.INT64}), name)
    data = np.array([[1, 1, 0], [0, 2, 1]], np.float32)
    found = tmconvert.evaluate("first.onnx", "last.onnx", data={"x": data}, min_agreement=0.5)
    assert found.ok and found.outputs[0].decibels is None and found.outputs[0].agreement == 0.5
    with pytest.raises(UsageError) as caught:
        tmconvert.evaluate("first.onnx", "last.onnx", data={"x": data}, min_sqnr=10)
    assert caught.value.code == "TM6002"


def test_preprocessing_in_one_of_the_files(files: Files, folder: Path) -> None:
    images = folder / "images"
    images.mkdir()
    for number in range(3):
        pixels = RNG.integers(0, 256, (24, 32, 3), np.uint8)
        Image.fromarray(pixels).save(images / f"{number}.png")
    described = "rgb, nhwc, uint8, mean=0.4,0.5,0.6, std=0.2,0.3,0.25"
    tmconvert.to_tflite(files.model, "pixels.tflite", preprocess=described, verify=False)
    tmconvert.to_onnx(files.model, "pixels.onnx", preprocess=described.replace("rgb", "bgr"), verify=False)
    for pair in [("pixels.tflite", files.paths["onnx"]), (files.paths["onnx"], "pixels.tflite")]:
        (output,) = tmconvert.evaluate(*pair, data=images, resize="crop").outputs
        assert output.decibels > 100 and output.rows == 3
    wrong = tmconvert.evaluate(files.paths["onnx"], "pixels.tflite", data=images, mean=[0.1], std=[1])
    assert wrong.outputs[0].decibels < 20
    with pytest.raises(UsageError, match="takes bgr"):
        tmconvert.evaluate(files.paths["onnx"], "pixels.onnx", data=images)


def test_open_sizes_are_those_of_the_data(folder: Path) -> None:
    one = linear("one.onnx", np.eye(4), ["n", "rows", 4])
    other = linear("other.onnx", np.eye(4), ["n", "rows", 4])
    np.save("x.npy", np.ones((3, 5, 4), np.float32))
    found = tmconvert.evaluate(one, other, data="x.npy")
    assert found.samples == 3 and found.outputs[0].cosine == pytest.approx(1)
    assert found.outputs[0].agreement is None  # five vectors a sample
    with pytest.raises(UsageError) as caught:
        tmconvert.evaluate(linear("low.onnx", np.eye(4), ["n", 4]), other, data="x.npy")
    assert caught.value.code == "TM6033"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"min_agreement": 2}, "a number above 0 and at most 1"),
        ({"min_sqnr": float("nan")}, "must be a positive number"),
        ({"min_agreement": 0.5}, "requires an output of scores"),
    ],
)
def test_limits_that_cannot_apply(folder: Path, limits: dict[str, float], words: str) -> None:
    one = linear("one.onnx", np.eye(1), ["n", 1])
    with pytest.raises(UsageError, match=words):
        tmconvert.evaluate(one, one, data=np.ones((2, 1), np.float32), **limits)


def test_models_that_do_not_fit(files: Files, folder: Path) -> None:
    two = [onnx.helper.make_node("Relu", ["x"], [name]) for name in ("y", "z")]
    onnx.save(of_nodes(two, {"x": [1, 3]}, ["y", "z"]), "two.onnx")
    other_shape = linear("wide.onnx", np.ones((3, 4)), [1, 3])
    one = linear("one.onnx", np.ones((3, 2)), [1, 3])
    data = np.ones((2, 3), np.float32)
    for second, words in [
        ("two.onnx", "one.onnx has 1 output, two.onnx has 2"),
        (other_shape, "has the shapes"),
        (files.paths["onnx"], "got shape"),
    ]:
        with pytest.raises(UsageError, match=words) as caught:
            tmconvert.evaluate(one, second, data=data)
        assert caught.value.code == "TM6003"
    outcome = run("evaluate", one, one, "--data", "nowhere")
    assert outcome.status == 2 and "nowhere does not exist" in outcome.stderr
    assert "help" in outcome.stderr
