"""``tmconvert verify``."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.runner import DATA, model, run
from tmconvert import api

CONV = model("op_s_conv_bn_relu")
LINEAR = model("op_s_flatten_linear")
LINE = (
    r"ok: o\.\w+ verified (in [\w ]+|with the NumPy definitions of Caffe's layers in tmconvert) [\d.]+ "
    r"against tmconvert's own reading of the source: "
    r"(max error \d\.\de-\d\d \(limit 1e-04\)|equal outputs)\n"
)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("out", ["o.onnx", "o.tflite", "o.prototxt"])
def test_verifies(out: str) -> None:
    convert = {"o.onnx": api.to_onnx, "o.tflite": api.to_tflite, "o.prototxt": api.to_caffe}[out]
    convert(CONV, out, verify=False)
    for inputs in ([], ["--inputs", DATA / "op_s_conv_bn_relu.npz"]):
        outcome = run("verify", CONV, out, *inputs)
        assert (outcome.status, outcome.stderr) == (0, "")
        assert re.fullmatch(LINE, outcome.stdout)


def test_json_and_inputs_by_name() -> None:
    api.to_onnx(CONV, "o.onnx", verify=False)
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    np.savez("by_name.npz", x=x, unrelated=np.zeros(3))
    document = run("verify", CONV, "o.onnx", "--inputs", "by_name.npz", "--json").json
    assert document["ok"] is True
    assert (document["model"], document["file"]) == (str(CONV), "o.onnx")
    assert document["outputs"][0]["shape"] == [1, 8, 16, 16]


@pytest.mark.parametrize("out", ["o.onnx", "o.tflite", "o.prototxt"])
@pytest.mark.parametrize("given", [[], ["--rename", "x=image", "--rename", "{end}=result"]])
def test_renamed_inputs_and_outputs(out: str, given: list[str]) -> None:
    convert = {"o.onnx": api.to_onnx, "o.tflite": api.to_tflite, "o.prototxt": api.to_caffe}[out]
    report = convert(CONV, out)
    end = report.verification.comparisons[0].output  # type: ignore[union-attr]
    convert(CONV, out, verify=False, rename={"x": "image", end: "result"})
    given = [each.format(end=end) for each in given]
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    np.savez("renamed.npz", image=x)
    np.savez("as_in_the_model.npz", x=x)
    for inputs in ([], ["--inputs", "renamed.npz"], ["--inputs", "as_in_the_model.npz"]):
        document = run("verify", CONV, out, "--json", *given, *inputs).json
        assert [each["name"] for each in document["outputs"]] == ["result"]
    np.savez("other.npz", picture=x)
    assert run("verify", CONV, out, *given, "--inputs", "other.npz").status == 2


def test_another_models_file() -> None:
    api.to_onnx(LINEAR, "o.onnx", verify=False)
    outcome = run("verify", CONV, "o.onnx", "--json")
    assert outcome.status == 1
    assert outcome.json["error"]["code"] in ("TM4001", "TM4002")
    assert outcome.stderr.startswith("error[TM400")


def test_no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    api.to_onnx(CONV, "o.onnx", verify=False)
    monkeypatch.setattr("tmconvert.targets.onnx.target.OnnxTarget.runtime", lambda self, path=None: None)
    outcome = run("verify", CONV, "o.onnx")
    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("error[TM4003]: no runtime for ONNX is installed\n")


@pytest.mark.parametrize(
    ("content", "code"), [(None, "TM1001"), (b"", "TM1009"), (b"\x89PNG\r\n\x1a\n", "TM1009")]
)
def test_unusable_files(content: bytes | None, code: str) -> None:
    if content is not None:
        Path("o.onnx").write_bytes(content)
    outcome = run("verify", CONV, "o.onnx")
    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith(f"error[{code}]: ")
    assert "o.onnx" in outcome.stderr


def objects() -> bytes:
    file = io.BytesIO()
    np.savez(file, x=np.array([{}], dtype=object))
    return file.getvalue()


def one_array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def archive(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot use the inputs in i.npz: No such file or directory"),
        (b"", "cannot use the inputs in i.npz: "),
        (b"\x89PNG\r\n\x1a\n", "it holds Python objects, which are never loaded, or is not an .npz file"),
        (archive(x=np.zeros(3))[:-30], "cannot use the inputs in i.npz: "),
        (objects(), "it holds Python objects, which are never loaded, or is not an .npz file"),
        (one_array(), "it is one array (.npy)"),
        (archive(), "no array for the input x (in0); it has nothing"),
        (archive(y=np.zeros(3)), "no array for the input x (in0); it has y"),
    ],
)
def test_unusable_inputs(content: bytes | None, said: str) -> None:
    api.to_onnx(CONV, "o.onnx", verify=False)
    if content is not None:
        Path("i.npz").write_bytes(content)
    outcome = run("verify", CONV, "o.onnx", "--inputs", "i.npz")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error[TM6011]: cannot use the inputs in i.npz: ")
    assert said in outcome.stderr


def test_inputs_of_another_shape_or_dtype() -> None:
    api.to_onnx(CONV, "o.onnx", verify=False)
    np.savez("i.npz", x=np.zeros((1, 3, 5, 7)))
    outcome = run("verify", CONV, "o.onnx", "--inputs", "i.npz")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr == "error[TM6003]: input 0 must be f32[1,3,32,32], got f64[1,3,5,7]\n"


def test_outputs_that_show_nothing_are_not_called_ok() -> None:
    x, y = (
        helper.make_tensor_value_info(*each, [4])
        for each in (("x", TensorProto.FLOAT), ("y", TensorProto.BOOL))
    )
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Greater", ["s", "two"], ["y"])]
    graph = helper.make_graph(nodes, "never", [x], [y], [numpy_helper.from_array(np.float32(2), "two")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "n.onnx")
    api.to_tflite("n.onnx", "n.tflite")
    outcome = run("verify", "n.onnx", "n.tflite")
    assert outcome.status == 0
    assert outcome.stdout.startswith("note: n.tflite not verified in LiteRT") and "ok" not in outcome.stdout
    document = run("verify", "n.onnx", "n.tflite", "--json").json
    assert (document["ok"], document["verified"]) == (True, False)
