"""Conversions with ``score_margin``, whose files are scored in their runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import UsageError

pytest.importorskip("onnxruntime")
TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
classes (float[1,64] x) => (float[1,40] y)
{
    first = MatMul(x, coarse)
    relu_out = Relu(first)
    second = MatMul(relu_out, middle)
    relu_2_out = Relu(second)
    y = MatMul(relu_2_out, last)
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three layers; the weights of the first one have outliers, so that few bits are too coarse for it."""
    random, made = np.random.default_rng(0), onnx.parser.parse_model(TEXT)
    shapes = {"coarse": (64, 64), "middle": (64, 64), "last": (64, 40)}
    for name, shape in shapes.items():
        array = random.standard_normal(shape)
        if name == "coarse":
            array[random.random(shape) < 0.03] *= 60
            array[:, ::2] /= 200
        if name == "middle":
            array[::2] *= 100
        made.graph.initializer.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
    path = tmp_path_factory.mktemp("classes") / "classes.onnx"
    onnx.save(made, path)
    return path


@pytest.fixture(scope="module")
def data(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples in folders by the class that the float model has for them: its accuracy is 1."""
    import onnxruntime

    session, random = onnxruntime.InferenceSession(str(model)), np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("data")
    for number in range(40):
        x = random.standard_normal((1, 64)).astype(np.float32)
        label = folder / str(int(session.run(None, {"x": x})[0].argmax()))
        label.mkdir(exist_ok=True)
        np.save(label / f"{number}.npy", x)
    return folder


def accuracy(path: Path, data: Path) -> float:
    return tmconvert.score(path, data=data, task="top-1").files[0].value


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("kind", ["weights", pytest.param("integers", marks=pytest.mark.slow)])
def test_the_score_stays_within_the_margin(
    target: str, kind: str, model: Path, data: Path, tmp_path: Path
) -> None:
    to = getattr(tmconvert, f"to_{target}")
    samples = [{"x": np.load(file)} for file in sorted(data.rglob("*.npy"))]
    options: dict[str, Any] = {"weights": "int4"} if kind == "weights" else {"quantized": True}
    if kind == "integers":
        options |= {"calibration": samples, "calibration_settings": {"equalization": False}}
    elif target == "onnx":
        options["opset"] = 21
    plain, found = (tmp_path / f"{name}.{target}" for name in ("plain", "found"))
    to(model, plain, **options)
    coarse = accuracy(plain, data)
    assert coarse < 0.95
    report = to(model, found, task="top-1", task_data=data, score_margin=0.05, **options)
    assert report.verified
    assert coarse < accuracy(found, data) >= 0.95
    (note,) = [each for each in report.notes if each.startswith("found for --score-margin 0.05: ")]
    assert note.endswith(", on 40 samples; accuracy 1.0000 in float)")
    rules = dict(each.split("'")[1].split("=") for each in report.notes if each.startswith("  --rule '"))
    assert rules and "*" not in rules
    to(model, plain, rules=rules, **options)
    assert plain.read_bytes() == found.read_bytes()


def test_the_command(model: Path, data: Path, tmp_path: Path) -> None:
    command = ("onnx", model, tmp_path / "m.onnx", "--weights", "int4", "--opset", "21", "--task", "top-1")
    outcome = run(*command, "--task-data", data, "--score-margin", "0.05")
    assert outcome.status == 0, outcome.stderr
    assert "found for --score-margin 0.05: " in " ".join(outcome.stderr.split())
    assert run(*command).status == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"task": "top-1"}, "task is 'top-1', but applies only with task_data"),
        ({"score_margin": 0.1}, "score_margin is 0.1, but applies only with task"),
        ({"task": "top-2", "score_margin": 0.1, "task_data": "x"}, "'top-2'"),
        ({"task": "top-1", "score_margin": -1, "task_data": "x"}, "must be a positive number"),
        (
            {"task": "top-1", "score_margin": 0.1, "task_data": "x", "weights": None},
            "score_margin requires weights, or quantized and calibration",
        ),
        ({"task": "top-1", "score_margin": 0.1, "task_data": "no such folder"}, "does not exist"),
    ],
)
def test_what_the_margin_requires(options: dict[str, Any], text: str, model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=text):
        tmconvert.to_onnx(model, tmp_path / "m.onnx", **{"weights": "int8", **options})


def test_a_score_that_is_better_below(tmp_path: Path) -> None:
    """The perplexity of a model whose last layer has an outlier in each block of weights."""
    tokenizers = pytest.importorskip("tokenizers")
    made = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        text (int64[1,n] input_ids) => (float[1,n,64] logits)
        { found = Gather(table, input_ids) hidden = MatMul(found, first) logits = MatMul(hidden, last) }
        """
    )
    random = np.random.default_rng(0)
    table, first, last = random.standard_normal((3, 64, 64)).astype(np.float32)
    first[:, ::8] /= 8000
    first[:, 1::8] /= 8
    last[::8] *= 1000
    for name, array in {"table": table, "first": first, "last": last}.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(made, tmp_path / "model.onnx")
    words = tokenizers.models.WordLevel({f"w{number}": number for number in range(64)}, unk_token="w0")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokens = [3]
    for _ in range(200):  # one of the two tokens that the model itself expects
        logits = table[tokens[-1]] @ first @ last
        tokens.append(int(logits.argsort()[-1 - len(tokens) % 2]))
    (tmp_path / "text.txt").write_text(" ".join(f"w{token}" for token in tokens))
    options: dict[str, Any] = {"weights": "int4", "opset": 21}
    bound = {"task": "perplexity", "task_data": tmp_path / "text.txt", "score_margin": 0.5}
    files = [tmp_path / f"{name}.onnx" for name in ("model", "plain", "found")]
    tmconvert.to_onnx(files[0], files[1], **options)
    report = tmconvert.to_onnx(files[0], files[2], **options, **bound)
    scored = tmconvert.score(*files, data=tmp_path / "text.txt", task="perplexity").files
    in_float, plain, found = (each.value for each in scored)
    assert found <= in_float + 0.5 < plain
    assert any(f"perplexity {in_float:.4f} in float)" in note for note in report.notes)
